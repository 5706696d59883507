"""What is translated: real test sentences where the data is at hand, a few of our own otherwise."""

import random
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.engines import Work
from model.data import read_tsv

TEST_SETS = ("tatoeba-challenge-2021", "multi30k-test-2016-flickr")
OWN = Path(__file__).parent / "sentences.txt"
MAX_TARGET_TOKENS = 256
GROUP = 64
"""Works of a fixed length share it with so many others: the largest batch that is measured."""


@dataclass(frozen=True)
class Sentence:
    text: str
    reference: str | None
    """A human translation, for BLEU; sentences of our own have none."""


def load_sentences(data: Path | None, count: int | None, seed: int = 1) -> list[Sentence]:
    """`count` sentences, short (Tatoeba) and longer (Multi30k) in equal parts and shuffled; None for all there are.

    Raises:
        DataError: a test set is missing below `data`.
    """
    if data is None:
        own = [Sentence(line, None) for line in OWN.read_text(encoding="utf-8").splitlines()]
        return [own[i % len(own)] for i in range(count or len(own))]
    sentences: list[Sentence] = []
    for name in TEST_SETS:
        rows = [Sentence(*row) for row in read_tsv(data / "translation" / "test" / f"{name}.en-fr.tsv.xz")]
        sentences += rows if count is None else rows[: -(-count // len(TEST_SETS))]
    random.Random(seed).shuffle(sentences)
    return sentences[:count]


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Every token, its id being its place."""
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def works_of(sentences: list[Sentence], tokenizer: Tokenizer) -> list[Work]:
    """The sentences tokenized, free to end when the model ends them."""
    return [Work(tokenizer.encode(sentence.text).ids, MAX_TARGET_TOKENS) for sentence in sentences]


def works_of_random_ids(
    sentences: list[Sentence], tokenizer: Tokenizer, choices: range, eos: int, seed: int = 1
) -> list[Work]:
    """Random tokens, as long as the sentences and their translations really are.

    CTranslate2 has one limit per call. So each group of sentences of similar length shares its mean target length: all
    rows of a batch end together there, which favours CTranslate2.
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
