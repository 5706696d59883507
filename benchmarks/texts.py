"""Texts to translate: test sentences from the corpora, or a few of our own."""

import random
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.engines import Work
from model.data import read_tsv

TEST_SETS = ("tatoeba-challenge-2021", "multi30k-test-2016-flickr")
OWN_SENTENCES = Path(__file__).parent / "sentences.txt"
MAX_TARGET_TOKENS = 256
GROUP = 64
"""Number of works that share a fixed length: the largest measured batch."""


@dataclass(frozen=True)
class Sentence:
    text: str
    reference: str | None
    """A human translation, for BLEU; our own sentences have none."""


def load_sentences(data: Path | None, count: int | None, seed: int = 1) -> list[Sentence]:
    """Load `count` sentences, short (Tatoeba) and longer ones (Multi30k) in equal parts and shuffled; None for all.
    Raises DataError: a test set is missing below `data`."""
    if data is None:
        ours = [Sentence(line, None) for line in OWN_SENTENCES.read_text(encoding="utf-8").splitlines()]
        return [ours[i % len(ours)] for i in range(count or len(ours))]
    sentences: list[Sentence] = []
    for name in TEST_SETS:
        rows = [Sentence(*row) for row in read_tsv(data / "translation" / "test" / f"{name}.en-fr.tsv.xz")]
        sentences += rows if count is None else rows[: -(-count // len(TEST_SETS))]
    random.Random(seed).shuffle(sentences)
    return sentences[:count]


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Return the tokens in the order of their ids."""
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def works_of(sentences: list[Sentence], tokenizer: Tokenizer) -> list[Work]:
    """Tokenize sentences; the model may end each translation."""
    return [Work(tokenizer.encode(sentence.text).ids, MAX_TARGET_TOKENS) for sentence in sentences]


def works_of_random_ids(
    sentences: list[Sentence], tokenizer: Tokenizer, choices: range, eos: int, seed: int = 1
) -> list[Work]:
    """Return works of random tokens, as long as the sentences and their translations.

    CTranslate2 has one limit per call. So each group of sentences of similar length shares its mean target length: all
    rows of a batch end together, which favours CTranslate2.
    """
    draw = random.Random(seed)
    sources = [tokenizer.encode(sentence.text).ids for sentence in sentences]
    targets = [len(tokenizer.encode(sentence.reference or sentence.text).ids) for sentence in sentences]
    order = sorted(range(len(sources)), key=lambda i: (len(sources[i]), targets[i]))
    works: dict[int, Work] = {}
    for start in range(0, len(order), GROUP):
        group = order[start : start + GROUP]
        length = round(sum(targets[i] for i in group) / len(group))
        for i in group:
            ids = [draw.choice(choices) for _ in sources[i][1:]]
            works[i] = Work([*ids, eos], length, fixed_length=True)
    return [works[i] for i in range(len(sources))]
