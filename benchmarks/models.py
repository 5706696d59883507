"""The measured models in the format of each engine, with the same weights everywhere."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.conversion import convert
from benchmarks.engines import ATTEND, ATTEND_EXACT, CTRANSLATE2, PYTORCH
from benchmarks.random_model import VOCAB_SIZE, save_random_checkpoint
from benchmarks.texts import vocabulary
from benchmarks.workspace import ROOT, made_from, workspace
from export.artifact import write
from manifest.layout import WEIGHTS
from model.checkpoint import load_checkpoint
from model.networks.transformer import Transformer
from model.tokenizer import EOS_ID

Precision = Literal["fp32", "int8"]
SHIPPED, RANDOM, OPUS = "translate-en-fr", "random-6-6", "opus-mt-en-fr"


@dataclass(frozen=True)
class BenchmarkModel:
    """A model in the format of each engine, written when first needed."""

    name: str
    random_ids: range = range(EOS_ID + 1, VOCAB_SIZE)
    """Ids that a model with random weights reads, before `eos`."""
    eos: int = EOS_ID

    @property
    def engines(self) -> tuple[str, ...]:
        """Compared engines; beam search drops no hypothesis of random weights, so one attend is enough."""
        return (ATTEND, ATTEND_EXACT, CTRANSLATE2, PYTORCH) if self.name == SHIPPED else (ATTEND, CTRANSLATE2, PYTORCH)

    def checkpoint(self) -> Path:
        """The checkpoint or artifact that PyTorch loads."""
        if self.name == SHIPPED:
            return ROOT / "artifacts" / SHIPPED
        files = (
            "benchmarks/random_model.py",
            "model/networks/attention.py",
            "model/networks/layers.py",
            "model/networks/transformer.py",
        )
        return made_from([ROOT / file for file in files], workspace("models") / self.name, save_random_checkpoint)

    def artifacts(self, precision: Precision) -> Path:
        """A directory with only this artifact, exported from the checkpoint."""
        checkpoint = self.checkpoint()

        def make(directory: Path) -> None:
            target = directory / self.name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            write(checkpoint, load_checkpoint(checkpoint), precision, target, least=0)  # speed, of whole layers in int8

        sources = [*weights(checkpoint), *sorted((ROOT / "export").glob("*.py"))]
        return made_from(sources, workspace("models", "attend") / f"{self.name}.{precision}", make)

    def ctranslate2(self, precision: Precision) -> Path:
        """The directory of a CTranslate2 model."""
        checkpoint = self.checkpoint()

        def make(directory: Path) -> None:
            loaded = load_checkpoint(checkpoint)
            assert isinstance(loaded.model, Transformer)
            convert(loaded.model, vocabulary(loaded.tokenizer), directory, precision)

        sources = [*weights(checkpoint), ROOT / "benchmarks" / "conversion.py"]
        return made_from(sources, workspace("models", "ctranslate2") / f"{self.name}.{precision}", make)

    def path(self, engine: str, precision: Precision) -> Path:
        """The model in the format of an engine."""
        if engine in (ATTEND, ATTEND_EXACT):
            return self.artifacts(precision)
        if engine == CTRANSLATE2:
            return self.ctranslate2(precision)
        return self.checkpoint()


def weights(checkpoint: Path) -> list[Path]:
    """The files of a checkpoint that determine its translations."""
    return [checkpoint / name for name in ("config.yaml", WEIGHTS, "tokenizer.json")]
