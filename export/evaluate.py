"""`python -m export.evaluate ARTIFACT TEST.tsv.xz`: score an artifact, decoded greedily with ONNX Runtime.

Run it on an int8 and on an fp32 artifact of one checkpoint to see what the precision costs.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pydantic import ValidationError

from export.classifying import Classifier
from export.decoding import Translator
from manifest.file import read_manifest
from manifest.schema import Manifest, Provider
from model.checkpoint import Checkpoint, load_checkpoint
from model.data import DataError, Row, read_tsv
from model.evaluation.scoring import accuracy, score_translations
from model.tokenizer import cut_source, special_around, windows_of

MAX_TARGET_TOKENS = 256

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    artifact: Annotated[Path, typer.Argument(help="Artifact directory.")],
    test: Annotated[Path, typer.Argument(help="TSV file (or .tsv.xz) of source and target, or label and text.")],
    provider: Annotated[Provider, typer.Option(help="Provider whose graphs are run, here on the CPU.")] = "cpu",
    threads: Annotated[int, typer.Option(help="Number of ONNX Runtime threads.")] = 1,
    limit: Annotated[int | None, typer.Option(help="Number of rows to read; by default all.")] = None,
    swap: Annotated[bool, typer.Option("--swap", help="Read the first column as the target.")] = False,
    label: Annotated[
        list[str] | None, typer.Option(help="Label in the file=in the model: --label neg=negative.")
    ] = None,
) -> None:
    """Score an artifact on a test set: BLEU (of characters for Japanese) and chrF, or accuracy."""
    try:
        manifest = read_manifest(artifact)
        rows = list(read_tsv(test))[:limit]
        rows = [Row(row.right, row.left) for row in rows] if swap else rows
        if manifest.task == "embedding":
            raise DataError(f"{manifest.name} embeds texts; only translators and classifiers can be scored")
        if manifest.task == "classification":
            rows = rename_labels(rows, dict(pair.split("=", 1) for pair in label or []), manifest.labels)
    except (FileNotFoundError, ValidationError, DataError) as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    checkpoint = load_checkpoint(artifact)
    start = time.monotonic()
    if manifest.task == "translation":
        outputs = translate(artifact, manifest, checkpoint, [row.left for row in rows], provider, threads)
        scores, signatures = score_translations(outputs, [row.right for row in rows], manifest.targets[0].code)
    else:
        outputs = classify(artifact, manifest, checkpoint, [row.right for row in rows], provider, threads)
        scores, signatures = {"accuracy": accuracy(outputs, [row.left for row in rows])}, {}
    seconds = time.monotonic() - start
    for metric, score in scores.items():
        typer.echo(f"{metric} {score} {signatures.get(metric, '')}".rstrip())
    done = f"{len(rows)} texts in {seconds:.0f} s, {len(rows) / seconds:.0f}/s"
    typer.echo(f"{manifest.name} {manifest.precision}, {provider}: {done}")


def rename_labels(rows: Sequence[Row], names: dict[str, str], labels: Sequence[str]) -> list[Row]:
    """Rename the labels of (label, text) rows to those of the model. Raises DataError: the model has no such label."""
    renamed = [Row(names.get(row.left, row.left), row.right) for row in rows]
    unknown = {row.left for row in renamed} - set(labels)
    if unknown:
        raise DataError(f"unknown labels {', '.join(sorted(unknown))}; the model has {', '.join(labels)}")
    return renamed


def translate(
    artifact: Path, manifest: Manifest, checkpoint: Checkpoint, texts: Sequence[str], provider: Provider, threads: int
) -> list[str]:
    """Return greedy translations. A source over the limit loses its end; `service` would translate it in parts."""
    limits = manifest.limits
    sources = [cut_source(ids, limits.max_source_tokens) for ids in checkpoint.encode(texts)]
    translator = Translator(artifact, manifest, provider=provider, threads=threads)
    limit = min(MAX_TARGET_TOKENS, limits.max_target_tokens)
    hypotheses = translator.greedy(sources, limit, prefix=manifest.targets[0].target_prefix)
    return [checkpoint.decode(hypothesis.ids) for hypothesis in hypotheses]


def classify(
    artifact: Path, manifest: Manifest, checkpoint: Checkpoint, texts: Sequence[str], provider: Provider, threads: int
) -> list[str]:
    """Return the most probable labels. A long text is read in windows, and logits are pooled over all its tokens."""
    size = manifest.limits.max_source_tokens
    windows: list[list[int]] = []
    text_of_window: list[int] = []
    around = special_around(checkpoint.tokenizer)
    for i, ids in enumerate(checkpoint.encode(texts)):
        parts = windows_of(ids, size, around)
        windows += parts
        text_of_window += [i] * len(parts)
    results = Classifier(artifact, manifest, provider, threads).classify(windows)
    window_logits = np.stack([result.logits for result in results])
    if manifest.pooling == "max":
        logits = np.full((len(texts), len(manifest.labels)), -np.inf)
        np.maximum.at(logits, text_of_window, window_logits)
    else:
        # The largest sum over tokens is also the largest mean.
        logits = np.zeros((len(texts), len(manifest.labels)))
        np.add.at(logits, text_of_window, window_logits * np.array([[len(window)] for window in windows]))
    return [manifest.labels[i] for i in logits.argmax(axis=1)]


if __name__ == "__main__":
    app()
