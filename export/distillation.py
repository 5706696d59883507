"""`python -m export.distillation CORPUS... --service URL --reverse CHECKPOINT --out FILE`: more text for a translator.

A translator learns from what it would say if it searched longer and asked back (sequence-level distillation, Kim and
Rush 2016): a running service gives the best translations of a sentence, a model of the opposite direction tells of
which of them the sentence is the likeliest translation (noisy channel, Yee et al. 2019), and the best by both becomes
a pair. The sentences may be of corpora of other languages: these say much that one's own corpora never do.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import httpx
import numpy as np
import torch
import torch.nn.functional as F
import typer

from export.back_translation import MAX_SOURCE_TOKENS, letters_of, refuse_corpus, rows_of, unknown_texts
from model.batching import TranslationExample, batches_by_length, collate_translations
from model.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from model.config import TransformerConfig
from model.data import DataError, Row, write_tsv
from model.networks.translator import TranslationModel
from model.tokenizer import PAD_ID

SEED = 1
BEAM_SIZE = 6
REVERSE_SHARE = 0.4
"""Of the opposite direction in a candidate's score. With models of 9 million parameters 0.2 to 0.5 were equally good
on four kinds of text (0.3 to 1.0 BLEU above beam search's), 0.7 was worse on all of them."""
LEAST_REVERSE_SCORE = -0.7
"""Mean log-probability per token, in nats, that a sentence needs given its translation. A sixth of everyday English
and of news is below when a model of 9 million parameters puts it into French; there, words are invented or lost."""
AT_ONCE = 128
"""Texts in a request."""
AHEAD = 2
"""Requests in flight."""
PATIENCE_S = 60.0
BATCH_TOKENS = 4096

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Candidate(NamedTuple):
    """A translation that a service offers."""

    text: str
    score: float
    """Mean log-probability per token, in nats."""


@dataclass(frozen=True)
class Service:
    """A running attend that translates from one language into another.

    Args:
        url: as http://127.0.0.1:8000.
    """

    client: httpx.Client
    url: str
    source: str
    target: str

    def candidates(self, texts: Sequence[str]) -> list[list[Candidate]]:
        """Of each text the complete translations that beam search finds, best first.

        Raises:
            DataError: the service cannot be reached, or refuses.
        """
        body = {
            "text": texts,
            "source": self.source,
            "target": self.target,
            "beam_size": BEAM_SIZE,
            "alternatives": BEAM_SIZE - 1,
            "timeout_s": PATIENCE_S,
        }
        try:
            response = self.client.post(f"{self.url}/translate", json=body)
        except httpx.HTTPError as error:
            raise DataError(f"{self.url}: {error}") from error
        if response.is_error:
            raise DataError(f"{self.url}: {response.status_code} {response.text}")
        return [
            [Candidate(c["text"], c["score"]) for c in (best, *best["alternatives"]) if c["finish_reason"] == "eos"]
            for best in response.json()["translations"]
        ]


@app.command()
def main(
    corpora: Annotated[list[Path], typer.Argument(help="Files whose first column is to be translated.")],
    service: Annotated[str, typer.Option(help="A running service, as http://127.0.0.1:8000.")],
    reverse: Annotated[Path, typer.Option(help="Checkpoint of the opposite direction.")],
    out: Annotated[Path, typer.Option(help="text<TAB>translation lines, .tsv.xz; a file there is replaced.")],
    swap: Annotated[bool, typer.Option("--swap", help="Of every file it is the second column.")] = False,
    without: Annotated[list[Path] | None, typer.Option(help="Corpora whose texts are left out.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="So many of the texts, drawn at random.")] = None,
) -> None:
    """Translate the texts of corpora, each text once, and choose with a model of the opposite direction."""
    try:
        n_texts, n_rows = distil(corpora, service, load_checkpoint(reverse), out, swap, without or [], sample)
    except (OSError, CheckpointError, DataError) as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{out}: {n_rows:,} of {n_texts:,} texts")


def distil(
    corpora: Sequence[Path],
    url: str,
    reverse: Checkpoint,
    out: Path,
    swap: bool = False,
    without: Sequence[Path] = (),
    sample: int | None = None,
) -> tuple[int, int]:
    """Write `out` when all is done; how many texts there were, and how many are in it.

    Raises:
        CheckpointError: `reverse` does not translate.
        DataError: a corpus is unusable, or the service cannot be reached or refuses.
        OSError: a file cannot be read or written.
    """
    refuse_corpus(out, (*corpora, *without))
    config = reverse.config.model
    if not isinstance(config, TransformerConfig):
        raise CheckpointError(f"{reverse.config.name} does not translate: its task is {config.task}")
    known = {letters_of(row.left) for row in rows_of(without, swap)}
    unknown = unknown_texts((row.left for row in rows_of(corpora, swap)), known)
    texts = [text for text in unknown if len(reverse.tokenizer.encode(text).ids) <= MAX_SOURCE_TOKENS]
    if sample is not None and sample < len(texts):
        drawn = np.random.default_rng(SEED).choice(len(texts), sample, replace=False)
        texts = [texts[i] for i in sorted(drawn.tolist())]
    chunks = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
    with httpx.Client(timeout=2 * PATIENCE_S) as client, ThreadPoolExecutor(AHEAD) as pool:
        service = Service(client, url, source=config.target, target=config.source)
        try:
            found = zip(chunks, pool.map(service.candidates, chunks), strict=True)
            return len(texts), write_tsv(out, (row for pair in found for row in chosen(reverse, *pair)))
        finally:
            pool.shutdown(cancel_futures=True)  # after an error nothing more is asked


def chosen(reverse: Checkpoint, texts: Sequence[str], offered: Sequence[Sequence[Candidate]]) -> Iterator[Row]:
    """(text, translation) of every text that has a translation which tells enough of it, with the best."""
    pairs = [(candidate.text, text) for text, offers in zip(texts, offered, strict=True) for candidate in offers]
    scores = iter(forced_scores(reverse, pairs))
    for text, offers in zip(texts, offered, strict=True):
        reversed_ = [next(scores) for _ in offers]
        ranks = [
            (1 - REVERSE_SHARE) * offer.score + REVERSE_SHARE * score
            for offer, score in zip(offers, reversed_, strict=True)
        ]
        if not ranks:
            continue
        best = int(np.argmax(ranks))
        translation = " ".join(offers[best].text.split())
        if reversed_[best] >= LEAST_REVERSE_SCORE and letters_of(translation) not in ("", letters_of(text)):
            yield Row(text, translation)


@torch.inference_mode()
def forced_scores(checkpoint: Checkpoint, pairs: Iterable[tuple[str, str]]) -> list[float]:
    """Mean log-probability per target token, </s> counted, in nats, of every (source, target)."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    assert isinstance(model, TranslationModel)
    sides = [[e.ids for e in tokenizer.encode_batch_fast(side)] for side in map(list, zip(*pairs, strict=True))]
    examples = [TranslationExample(source, target[:-1]) for source, target in zip(*sides, strict=True)]
    scores = [0.0] * len(examples)
    for indices in batches_by_length(np.array([len(example) for example in examples]), BATCH_TOKENS):
        batch = collate_translations([examples[i] for i in indices])
        real = batch.target_output != PAD_ID
        logits = model.logits(model(batch.source, batch.source_lengths, batch.target_input)[real])
        losses = torch.zeros(real.shape)
        losses[real] = F.cross_entropy(logits.float(), batch.target_output[real], reduction="none")
        means = losses.sum(dim=1) / real.sum(dim=1)
        for i, mean in zip(indices, means.tolist(), strict=True):
            scores[i] = -mean
    return scores


if __name__ == "__main__":
    app()
