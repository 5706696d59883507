"""Inputs of the GPU benchmarks with the answers of float32 on the CPU, written once where the corpora are."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tokenizers import Tokenizer

from benchmarks.engines import Work
from benchmarks.engines.attend import AttendEngine
from benchmarks.models import RANDOM, SHIPPED, BenchmarkModel
from benchmarks.results import commit as checked_out
from benchmarks.texts import load_sentences, works_of, works_of_random_ids
from benchmarks.workspace import ROOT, WORKSPACE, workspace
from export.artifact import kept_tensors, served_models
from manifest.layout import MANIFEST, WEIGHTS
from manifest.sums import sum_of_file
from model.checkpoint import load_checkpoint
from model.weights import write_weights

ProviderName = Literal["cpu", "cuda"]
CLASSIFIER = "sentiment-imdb"
SENTENCES, COMPARED = 512, 200
BEAM_SIZES = (1, 4)
PACKED = WORKSPACE / "gpu" / "packed"
COMMIT = WORKSPACE / "gpu" / "commit"
"""Files that only an archive has: the random model without weights, and the commit that it was made from."""


@dataclass(frozen=True)
class Inputs:
    texts: list[str]
    works: dict[str, list[Work]]
    """Works by model."""
    reference: dict[int, list[list[int]]]
    """Answers of the shipped model to its first works, in float32 on the CPU, by beam size."""

    def agreement(self, model: str, beam_size: int, answers: list[list[int]]) -> str | None:
        """Return how many answers equal the reference."""
        if model != SHIPPED:
            return None
        pairs = list(zip(self.reference[beam_size], answers, strict=False))
        return f"{sum(wanted == actual for wanted, actual in pairs)} of {len(pairs)}"


def prepare_inputs(data: Path | None) -> Path:
    """Write the inputs, with sentences of the corpora or our own."""
    sentences = load_sentences(data, SENTENCES)
    tokenizer = Tokenizer.from_file(str(ROOT / "artifacts" / SHIPPED / "tokenizer.json"))
    shipped = works_of(sentences, tokenizer)
    random = BenchmarkModel(RANDOM)
    random_works = works_of_random_ids(sentences, tokenizer, random.random_ids, random.eos)
    works = {SHIPPED: shipped, RANDOM: random_works[: SENTENCES // 2]}
    engine = AttendEngine(BenchmarkModel(SHIPPED).artifacts("fp32"), workers=1)
    try:
        reference = {beam_size: engine.translate(shipped[:COMPARED], beam_size, 16) for beam_size in BEAM_SIZES}
    finally:
        engine.close()
    _path().write_text(json.dumps(asdict(Inputs([sentence.text for sentence in sentences], works, reference))))
    return _path()


def read_inputs() -> Inputs:
    """Read the prepared inputs."""
    content = json.loads(_path().read_text())
    works = {model: [Work(**work) for work in works] for model, works in content["works"].items()}
    return Inputs(content["texts"], works, {int(size): answers for size, answers in content["reference"].items()})


def prepare_models() -> list[Path]:
    """Write every missing model in the format of each engine."""
    return [artifacts(RANDOM), *(BenchmarkModel(name).ctranslate2("fp32") for name in (SHIPPED, RANDOM))]


def artifacts(*models: str) -> Path:
    """Return a directory with only these artifacts: shipped ones, or the random one, exported here or packed."""
    if RANDOM in models:
        return _with_weights(PACKED / RANDOM) if PACKED.exists() else BenchmarkModel(RANDOM).artifacts("fp32")
    directory = workspace("gpu", "+".join(models))
    for model in models:
        link = directory / model
        if not link.is_symlink():
            link.symlink_to(ROOT / "artifacts" / model)
    return directory


def _with_weights(artifact: Path) -> Path:
    """Draw random weights, which are not packed; another version of PyTorch may draw others."""
    weights = artifact / WEIGHTS
    if not weights.exists():
        checkpoint = load_checkpoint(BenchmarkModel(RANDOM).checkpoint())
        write_weights(weights, kept_tensors(served_models(checkpoint, "fp32")["cpu"], "fp32"))
        manifest = json.loads((artifact / MANIFEST).read_text(encoding="utf-8"))
        manifest["files"][WEIGHTS] = sum_of_file(weights).model_dump()
        (artifact / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return artifact.parent


def commit() -> str:
    """Return the measured commit; in an archive a file names it."""
    return COMMIT.read_text(encoding="utf-8") if COMMIT.exists() else checked_out()


def say(**fields: object) -> None:
    """Print a line of JSON."""
    print(json.dumps({name: value for name, value in fields.items() if value is not None}), flush=True)


def _path() -> Path:
    return workspace("gpu") / "inputs.json"
