"""Checks that engines compute the same: BLEU of each at each precision, and how many translations agree."""

from pathlib import Path

from rich.console import Console
from sacrebleu.metrics.bleu import BLEU
from tokenizers import Tokenizer

from benchmarks.engines import ATTEND, ATTEND_EXACT
from benchmarks.models import SHIPPED, BenchmarkModel, Precision
from benchmarks.processes import Candidate, EngineProcess
from benchmarks.results import command, save
from benchmarks.texts import Sentence, load_sentences, works_of

KEY = ["engine", "precision", "beam_size"]
BATCH = 64
ALONE = 1000
"""Sentences that are also translated alone."""
COMPUTE_TYPE = {"fp32": "float32", "int8": "int8"}


def measure(
    precisions: list[Precision], beam_sizes: list[int], data: Path | None, quick: bool, console: Console
) -> None:
    """Translate the test sets, or 256 sentences if quick, with every engine, and save the scores."""
    sentences = load_sentences(data, 256 if quick else None)
    model = BenchmarkModel(SHIPPED)
    tokenizer = Tokenizer.from_file(str(model.checkpoint() / "tokenizer.json"))
    works = works_of(sentences, tokenizer)

    def translate(candidate: Candidate, precision: Precision, sizes: list[int]) -> None:
        with EngineProcess(candidate, model.path(candidate.engine, precision), works) as engine:
            for beam_size in sizes:
                key = candidate.engine, precision, beam_size
                targets[key] = engine.run(beam_size, BATCH).targets
                alone[key] = engine.run(beam_size, 1, min(ALONE, len(works))).targets

    targets: dict[tuple[str, Precision, int], list[list[int]]] = {}
    alone: dict[tuple[str, Precision, int], list[list[int]]] = {}
    translate(Candidate("pytorch", "", {"threads": 2}), "fp32", [1])
    for precision in precisions:
        ctranslate2 = {"compute_type": COMPUTE_TYPE[precision], "inter_threads": 2, "intra_threads": 1}
        translate(Candidate("ctranslate2", "", ctranslate2), precision, beam_sizes)
        translate(Candidate(ATTEND, "", {}), precision, beam_sizes)
        translate(Candidate(ATTEND_EXACT, "", {}), precision, [size for size in beam_sizes if size > 1])
    reference = targets["pytorch", "fp32", 1]
    for (engine, precision, beam_size), of_engine in targets.items():
        record = {
            "engine": engine,
            "precision": precision,
            "beam_size": beam_size,
            "sentences": len(of_engine),
            "bleu": bleu(tokenizer.decode_batch(of_engine), sentences),
            "equal": _equal(of_engine, reference) if beam_size == 1 else None,
            "alone": len(alone[engine, precision, beam_size]),
            "equal_alone": _equal(alone[engine, precision, beam_size], of_engine),
            "command": command(),
        }
        console.print("quality", record)
        save("quality", KEY, [record], quick)


def _equal(some: list[list[int]], others: list[list[int]]) -> int:
    return sum(a == b for a, b in zip(some, others, strict=False))


def bleu(outputs: list[str], sentences: list[Sentence]) -> float | None:
    """Return the BLEU of translations of the first sentences; None without references."""
    references = [sentence.reference for sentence in sentences[: len(outputs)] if sentence.reference is not None]
    return float(BLEU().corpus_score(outputs, [references]).score) if len(references) == len(outputs) else None
