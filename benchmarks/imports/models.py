"""An imported model in the format of each engine: by our import, and by CTranslate2's converter."""

import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conversion import QUANTIZATION
from benchmarks.engines import ATTEND, CTRANSLATE2, TRANSFORMERS
from benchmarks.imports.random_marian import EOS_ID, PAD_ID, UNK_ID, save_random_marian
from benchmarks.models import OPUS, BenchmarkModel, Precision
from benchmarks.workspace import ROOT, made_from, workspace
from model.importing.families import import_model
from model.importing.imported import Options


@dataclass(frozen=True)
class ImportedModel(BenchmarkModel):
    """Random weights of the size of Helsinki-NLP/opus-mt-en-fr, from a directory that transformers wrote."""

    name: str = OPUS
    random_ids: range = range(UNK_ID + 1, PAD_ID)
    eos: int = EOS_ID

    @property
    def engines(self) -> tuple[str, ...]:
        return (ATTEND, CTRANSLATE2, TRANSFORMERS)

    def directory(self) -> Path:
        """The directory that transformers wrote."""
        sources = [ROOT / "benchmarks" / "imports" / "random_marian.py"]
        return made_from(sources, workspace("models", "transformers") / self.name, save_random_marian)

    def checkpoint(self) -> Path:
        """The checkpoint that our import writes."""
        directory = self.directory()

        def make(checkpoint: Path) -> None:
            shutil.rmtree(checkpoint)
            import_model(str(directory), checkpoint, Options(name=self.name))

        sources = [*files(directory), *sorted((ROOT / "model" / "importing").glob("*.py"))]
        return made_from(sources, workspace("models") / self.name, make)

    def ctranslate2(self, precision: Precision) -> Path:
        """The directory that CTranslate2's own converter writes."""
        directory = self.directory()

        def make(converted: Path) -> None:
            from ctranslate2.converters import TransformersConverter

            converter = TransformersConverter(str(directory))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                converter.convert(str(converted), quantization=QUANTIZATION[precision], force=True)

        sources = [*files(directory), ROOT / "benchmarks" / "imports" / "models.py"]
        return made_from(sources, workspace("models", "ctranslate2") / f"{self.name}.{precision}", make)

    def path(self, engine: str, precision: Precision) -> Path:
        """The model in the format of an engine."""
        return self.directory() if engine == TRANSFORMERS else super().path(engine, precision)


def files(directory: Path) -> list[Path]:
    """The files with weights and vocabularies."""
    return [directory / name for name in ("model.safetensors", "vocab.json", "target.spm")]
