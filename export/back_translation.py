"""`python -m export.back_translation ARTIFACT CORPUS... --out FILE`: more text for the opposite direction.

A translation into English learns to write English from every English sentence, whether a person translated it or a
model: sentences of corpora of other language pairs are translated by an artifact, and become pairs whose target is
real (Sennrich et al. 2016).
"""

import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from export.decoding import Translator
from export.manifest import Manifest, read_manifest
from model.data import DataError, Row, read_tsv
from model.tokenizer import load_tokenizer

MAX_SOURCE_TOKENS = 60
"""A longer sentence is left out: small models translate it badly."""
MAX_TARGET_TOKENS = 120
LEAST_SCORE = -0.6
"""Mean log-probability per token, in nats. Of everyday English put into German by a model of 9 million parameters a
fifth is below; there, words are invented."""

LETTERS = re.compile(r"\w+")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    artifact: Annotated[Path, typer.Argument(help="Artifact directory of a translator.")],
    corpora: Annotated[list[Path], typer.Argument(help="Files whose first column is in its source language.")],
    out: Annotated[Path, typer.Option(help="text<TAB>translation lines, .tsv.xz.")],
    without: Annotated[list[Path] | None, typer.Option(help="Corpora whose texts are left out.")] = None,
    least_score: Annotated[float, typer.Option(help="Mean log-probability that a translation needs.")] = LEAST_SCORE,
    threads: Annotated[int, typer.Option(help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """Translate the texts of corpora, each text once; what the model is not sure of is left out."""
    try:
        manifest = read_manifest(artifact)
        if manifest.task != "translation":
            raise DataError(f"{artifact} does not translate")
        known = {letters_of(text) for text in first_columns(without or [])}
        texts = list(unknown_texts(first_columns(corpora), known))
    except (FileNotFoundError, ValidationError, DataError) as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    out.parent.mkdir(parents=True, exist_ok=True)
    n_rows = 0
    with lzma.open(out, "wt", encoding="utf-8") as file:
        for row in translated(artifact, manifest, texts, least_score, threads):
            file.write(f"{row.left}\t{row.right}\n")
            n_rows += 1
    typer.echo(f"{out}: {n_rows:,} of {len(texts):,} texts")


def first_columns(corpora: Iterable[Path]) -> Iterator[str]:
    """The texts of every corpus in turn.

    Raises:
        DataError: a corpus is missing, empty or malformed.
    """
    return (row.left for corpus in corpora for row in read_tsv(corpus))


def unknown_texts(texts: Iterable[str], known: set[str]) -> Iterator[str]:
    """Each text that has letters, once, unless its letters are among the known ones, to which they are added."""
    for text in texts:
        letters = letters_of(text)
        if letters and letters not in known:
            known.add(letters)
            yield text


def letters_of(text: str) -> str:
    """What two texts have in common that differ in capitals, spaces and punctuation alone."""
    return "".join(LETTERS.findall(text.lower()))


def translated(
    artifact: Path, manifest: Manifest, texts: Sequence[str], least_score: float, threads: int
) -> Iterator[Row]:
    """(text, translation) of every text that is short enough, with a greedy translation that ends and scores enough."""
    tokenizer = load_tokenizer(artifact / "tokenizer.json")
    longest = min(MAX_SOURCE_TOKENS, manifest.limits.max_source_tokens)
    encoded = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
    short = [place for place, ids in enumerate(encoded) if len(ids) <= longest]
    translator = Translator(artifact, manifest, threads=threads)
    limit = min(MAX_TARGET_TOKENS, manifest.limits.max_target_tokens)
    hypotheses = translator.greedy([encoded[place] for place in short], limit)
    for place, hypothesis in zip(short, hypotheses, strict=True):
        translation = " ".join(tokenizer.decode(hypothesis.ids).split())
        if hypothesis.finished and hypothesis.score >= least_score and translation:
            yield Row(texts[place], translation)


if __name__ == "__main__":
    app()
