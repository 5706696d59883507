"""Do a translator's vectors mean something? Sentences of one meaning must find each other among thousands.

Two sentences with the same translation into a third language mean the same, as far as that translation tells. None of
the sentences compared is in what the model was trained on.

Legend: N sentences, E width, V vocabulary.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from model.checkpoint import Checkpoint, CheckpointError, build_model
from model.data import DataError, Row, load_rows, read_tsv
from model.embedding import states_of
from model.tokenizer import EOS_ID
from model.transformer import Transformer

Vectors = NDArray[np.float32]
"""(N, E), or (N, V) for a bag of word pieces."""

PAIRS = "translation/train/tatoeba-anki.en-de.tsv.xz"
"""English with German: an English-French model has never seen the German, nor the English that it is compared on."""

FEW_WORDS = 1 / 3
"""Of two sentences' words, shared: at most so much is a paraphrase and no rewording."""

N_EXAMPLES = 6
"""Sentences whose nearest neighbours are shown: evenly spaced, so that nobody chose them."""


@dataclass(frozen=True)
class Paraphrases:
    """Sentences, each with at least one other of the same meaning."""

    sentences: list[str]
    group: NDArray[np.int64]
    """(N), equal for those of the same meaning."""
    far: NDArray[np.bool_]
    """(N), whether all of its paraphrases share few words with it."""


@dataclass(frozen=True)
class Retrieval:
    """How a method finds paraphrases."""

    method: str
    accuracy: float
    """Share of sentences whose nearest neighbour is a paraphrase, in percent."""
    mrr: float
    """Mean of 1 / rank of the first paraphrase."""
    accuracy_far: float
    mrr_far: float
    """The same for sentences whose paraphrases share few words with them."""


def embedding_report(checkpoint: Checkpoint, data_dir: Path, corpus: str) -> Iterator[str]:
    """A table of methods, and the nearest neighbours of a few sentences, in Markdown.

    Raises:
        CheckpointError: the checkpoint is not a translator.
        DataError: a corpus is missing or malformed, or has no paraphrases that the model was not trained on.
    """
    paraphrases = find_paraphrases(list(read_tsv(data_dir / corpus)), trained_on(checkpoint, data_dir))
    if not paraphrases.sentences:
        raise DataError(f"{data_dir / corpus}: no two sentences that the model has not seen have one translation")
    n_groups = len(np.unique(paraphrases.group))
    yield (
        f"{len(paraphrases.sentences):,} sentences in {n_groups:,} groups of one meaning, "
        f"{int(paraphrases.far.sum()):,} of them sharing at most a third of their words with any other of theirs."
    )
    yield from (
        "",
        "| vectors | accuracy@1, % | MRR | few shared words: accuracy@1, % | MRR |",
        "|---|---:|---:|---:|---:|",
    )
    made = vectors_of(checkpoint, paraphrases.sentences)
    for method, vectors in made.items():
        found = retrieval(method, vectors, paraphrases)
        yield (
            f"| {method} | {found.accuracy:.1f} | {found.mrr:.3f} | {found.accuracy_far:.1f} | {found.mrr_far:.3f} |"
        )
    yield from (
        "",
        "| sentence | the same in other words | nearest by encoder states | by word pieces |",
        "|---|---|---|---|",
    )
    for i in examples(paraphrases):
        others = [j for j in np.flatnonzero(paraphrases.group == paraphrases.group[i]).tolist() if j != i]
        shown = [[i], others, *([nearest(made[method], i)] for method in (ENCODER, WORD_PIECES))]
        yield f"| {' | '.join(' / '.join(paraphrases.sentences[j] for j in cell) for cell in shown)} |"


def trained_on(checkpoint: Checkpoint, data_dir: Path) -> set[str]:
    """The source sentences of a model's training files, as `same_letters` has them."""
    sources = {(source.file, source.swap): source for source in checkpoint.config.data.train}
    return {same_letters(row.left) for source in sources.values() for row in load_rows(source, data_dir)}


def find_paraphrases(rows: Sequence[Row], seen: set[str]) -> Paraphrases:
    """Of (sentence, translation) rows: different sentences with the same translation that are not among those seen.

    A sentence with several translations stays in the first group that has another sentence for it.
    """
    by_translation: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        letters = same_letters(row.left)
        if letters not in seen:
            by_translation[same_letters(row.right)].setdefault(letters, row.left)
    sentences: list[str] = []
    group: list[int] = []
    far: list[bool] = []
    taken: set[str] = set()
    for number, members in enumerate(by_translation.values()):
        new = [text for letters, text in members.items() if letters not in taken]
        if len(new) < 2:
            continue
        taken |= members.keys()
        sentences += new
        group += [number] * len(new)
        far += [max(shared_words(one, other) for other in new if other != one) <= FEW_WORDS for one in new]
    return Paraphrases(sentences, np.array(group, np.int64), np.array(far, np.bool_))


def same_letters(text: str) -> str:
    """Lower case, letters and digits alone."""
    return re.sub(r"[\W_]+", "", text.lower())


def shared_words(one: str, other: str) -> float:
    """Words in both, over words in either."""
    a, b = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return len(a & b) / len(a | b)


ENCODER, WORD_PIECES = "encoder states, mean", "word pieces, tf-idf"


def vectors_of(checkpoint: Checkpoint, sentences: Sequence[str]) -> dict[str, Vectors]:
    """Every method's vectors, by its name.

    Raises:
        CheckpointError: the checkpoint is not a translator.
    """
    model, config = checkpoint.model, checkpoint.config
    if not isinstance(model, Transformer):
        raise CheckpointError(f"{config.name} has no sentence pairs: its task is {config.model.task}")
    sequences = [encoding.ids for encoding in checkpoint.tokenizer.encode_batch_fast(list(sentences))]
    states = [rows.numpy() for rows in states_of(checkpoint, sequences)]
    torch.manual_seed(0)
    untrained = replace(checkpoint, model=build_model(config).eval())
    table = model.embedding.tokens.weight.detach().numpy()  # (V, E)
    encoder = means(states)
    return {
        WORD_PIECES: tf_idf(sequences, config.model.vocab_size),
        "embedding layer, mean": means([table[ids] for ids in sequences]),
        "embedding layer, mean, centred": centred(means([table[ids] for ids in sequences])),
        "encoder states of an untrained model, mean": means([rows.numpy() for rows in states_of(untrained, sequences)]),
        ENCODER: encoder,
        "encoder states, mean without </s>": means([rows[:-1] for rows in states]),
        "encoder state of </s> alone": np.stack([rows[-1] for rows in states]),
        "encoder states, mean, centred": centred(encoder),
        "encoder states, mean, whitened": whitened(encoder),
    }


def means(rows: Sequence[Vectors]) -> Vectors:
    """(N, E) of N texts' vectors (S, E)."""
    return np.stack([vectors.mean(axis=0) for vectors in rows])


def tf_idf(sequences: Sequence[list[int]], vocab_size: int) -> Vectors:
    """(N, V): how often a text has each token, weighed down by how many texts have it; </s> does not count."""
    counts = np.zeros((len(sequences), vocab_size), np.float32)
    for row, ids in zip(counts, sequences, strict=True):
        np.add.at(row, [i for i in ids if i != EOS_ID], 1)
    n_with = (counts > 0).sum(axis=0)
    weighed: Vectors = counts * np.log((1 + len(sequences)) / (1 + n_with)).astype(np.float32)
    return weighed


def centred(vectors: Vectors) -> Vectors:
    """Less their mean over all sentences, which says nothing of any one."""
    shifted: Vectors = vectors - vectors.mean(axis=0)
    return shifted


def whitened(vectors: Vectors) -> Vectors:
    """Centred, and with every direction scaled to the same variance (Su et al. 2021)."""
    shifted = centred(vectors)
    variances, directions = np.linalg.eigh(np.cov(shifted.T).astype(np.float64))
    scaled: Vectors = (shifted @ directions / np.sqrt(np.maximum(variances, 1e-9))).astype(np.float32)
    return scaled


def retrieval(method: str, vectors: Vectors, paraphrases: Paraphrases) -> Retrieval:
    """Each sentence asks for its paraphrases among all others, by cosine."""
    ranks = first_ranks(vectors, paraphrases.group)
    correct, reciprocal, far = ranks == 1, 1 / ranks, paraphrases.far

    def share(values: NDArray[np.bool_]) -> float:
        return 100 * float(values.mean()) if len(values) else float("nan")

    mrr_far = float(reciprocal[far].mean()) if far.any() else float("nan")
    return Retrieval(method, share(correct), float(reciprocal.mean()), share(correct[far]), mrr_far)


def first_ranks(vectors: Vectors, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N), from 1 on: where in the order of falling cosine the first of a sentence's own group stands, itself left out.

    Ties count against the method: those that are as near as the first paraphrase come before it.
    """
    ranks = []
    for rows, similarities in by_rows(vectors):
        own = group[rows, None] == group
        similarities[np.arange(len(rows)), rows] = -np.inf
        best = np.where(own, similarities, -np.inf).max(axis=1, keepdims=True)
        ranks.append(1 + ((similarities >= best) & ~own).sum(axis=1))
    return np.concatenate(ranks)


def examples(paraphrases: Paraphrases) -> list[int]:
    """Some of the sentences whose paraphrases share few words with them, evenly spaced."""
    far = np.flatnonzero(paraphrases.far)
    chosen: list[int] = far[np.linspace(0, len(far), N_EXAMPLES + 1)[:-1].astype(int)].tolist() if len(far) else []
    return list(dict.fromkeys(chosen))


def nearest(vectors: Vectors, i: int) -> int:
    """The nearest sentence to sentence i."""
    unit = unit_length(vectors)
    similarities = unit @ unit[i]
    similarities[i] = -np.inf
    return int(similarities.argmax())


def by_rows(vectors: Vectors, size: int = 512) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    """Cosines of some rows with all, a few rows at a time."""
    unit = unit_length(vectors)
    for start in range(0, len(unit), size):
        rows = np.arange(start, min(start + size, len(unit)))
        yield rows, unit[rows] @ unit.T


def unit_length(vectors: Vectors) -> Vectors:
    """Each row at length 1, or 0 where it is 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(lengths, 1e-12)
    return scaled
