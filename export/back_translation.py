"""`python -m export.back_translation ARTIFACT CORPUS... --out FILE`: more text for the opposite direction.

A translation into English learns to write English from every English sentence, whether a person translated it or a
model: sentences of corpora of other language pairs are translated by an artifact, and become pairs whose target is
real (Sennrich et al. 2016). Those of its own corpora become pairs of other sources: the same is said in more than
one way (Nguyen et al. 2020).
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from tokenizers import Tokenizer

from export.decoding import Translator
from export.manifest import read_manifest
from model.data import DataError, NoRowsError, Row, read_tsv, write_tsv
from model.tokenizer import load_tokenizer

MAX_SOURCE_TOKENS = 60
"""A longer sentence is left out: small models translate it badly."""
MAX_TARGET_TOKENS = 120
LEAST_SCORE = -0.6
"""Mean log-probability per token, in nats. Of everyday English put into German by a model of 9 million parameters a
fifth is below; there, words are invented."""
AT_ONCE = 10_000
"""Texts in memory as tokens."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    artifact: Annotated[Path, typer.Argument(help="Artifact directory of a translator.")],
    corpora: Annotated[list[Path], typer.Argument(help="Files whose first column is in its source language.")],
    out: Annotated[Path, typer.Option(help="text<TAB>translation lines, .tsv.xz; a file there is replaced.")],
    swap: Annotated[bool, typer.Option("--swap", help="Of every file it is the second column.")] = False,
    without: Annotated[list[Path] | None, typer.Option(help="Corpora whose texts are left out.")] = None,
    least_score: Annotated[float, typer.Option(help="Mean log-probability that a translation needs.")] = LEAST_SCORE,
    threads: Annotated[int, typer.Option(help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """Translate the texts of corpora, each text once.

    What the model is not sure of is left out, as is a translation that the corpora have.
    """
    try:
        n_texts, n_rows = back_translate(artifact, corpora, out, swap, without or [], least_score, threads)
    except (OSError, ValidationError, DataError) as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{out}: {n_rows:,} of {n_texts:,} texts")


def back_translate(
    artifact: Path,
    corpora: Sequence[Path],
    out: Path,
    swap: bool,
    without: Sequence[Path],
    least_score: float,
    threads: int,
) -> tuple[int, int]:
    """Write `out` when all is done; how many texts there were, and how many are in it.

    Raises:
        DataError: the artifact does not translate, a corpus is unusable, or no translation is left.
        OSError: a file cannot be read or written.
    """
    if out.resolve() in {path.resolve() for path in (*corpora, *without)}:
        raise DataError(f"{out}: is one of the corpora")
    manifest = read_manifest(artifact)
    if manifest.task != "translation":
        raise DataError(f"{artifact} does not translate")
    translator = Translator(artifact, manifest, threads=threads)
    tokenizer = load_tokenizer(artifact / "tokenizer.json")
    rows = list(rows_of(corpora, swap))
    pairs = {(letters_of(row.left), letters_of(row.right)) for row in rows}
    known = {letters_of(row.left) for row in rows_of(without, swap)}
    texts = list(unknown_texts((row.left for row in rows), known))

    def new_rows() -> Iterator[Row]:
        for start in range(0, len(texts), AT_ONCE):
            for row in translated(translator, tokenizer, texts[start : start + AT_ONCE], least_score):
                if (letters_of(row.left), letters_of(row.right)) not in pairs:
                    yield row

    try:
        return len(texts), write_tsv(out, new_rows())
    except NoRowsError:
        raise DataError(f"{out}: of {len(texts):,} texts none has a translation that is kept") from None


def rows_of(corpora: Iterable[Path], swap: bool) -> Iterator[Row]:
    """The rows of every corpus in turn, with their columns exchanged if `swap`.

    Raises:
        DataError: a corpus is missing, empty or malformed.
    """
    rows = (row for corpus in corpora for row in read_tsv(corpus))
    return (Row(row.right, row.left) for row in rows) if swap else rows


def unknown_texts(texts: Iterable[str], known: set[str]) -> Iterator[str]:
    """Each text that has letters, once, unless its letters are among the known ones, to which they are added."""
    for text in texts:
        letters = letters_of(text)
        if letters not in known and any(map(str.isalpha, letters)):
            known.add(letters)
            yield text


def letters_of(text: str) -> str:
    """Letters, with their marks, and digits: what two texts have in common that differ in capitals, spaces and
    punctuation alone."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c).startswith("M"))


def translated(translator: Translator, tokenizer: Tokenizer, texts: Sequence[str], least_score: float) -> Iterator[Row]:
    """(text, translation) of every text that is short enough, with a greedy translation that ends, scores enough and is
    no copy."""
    limits = translator.manifest.limits
    encoded = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
    short = [place for place, ids in enumerate(encoded) if len(ids) <= min(MAX_SOURCE_TOKENS, limits.max_source_tokens)]
    hypotheses = translator.greedy(
        [encoded[place] for place in short], min(MAX_TARGET_TOKENS, limits.max_target_tokens)
    )
    for place, hypothesis in zip(short, hypotheses, strict=True):
        translation = " ".join(tokenizer.decode(hypothesis.ids).split())
        sure = hypothesis.finished and hypothesis.score >= least_score
        if sure and letters_of(translation) not in ("", letters_of(texts[place])):
            yield Row(texts[place], translation)


if __name__ == "__main__":
    app()
