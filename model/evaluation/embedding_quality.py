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
from model.evaluation.retrieval import Retrieval, Vectors, centred, first_ranks, nearest, tf_idf, whitened
from model.networks.transformer import Transformer

PAIRS = "translation/train/tatoeba-anki.en-de.tsv.xz"
"""English with German: an English-French model has never seen the German, nor the English that it is compared on."""

FEW_WORDS = 1 / 3
"""Of two sentences' words, shared: at most so much is a paraphrase and no rewording."""

N_EXAMPLES = 6
"""Sentences whose nearest neighbours are shown: evenly spaced, so that nobody chose them."""


ENCODER, WORD_PIECES = "encoder states, mean", "word pieces, tf-idf"
"""The methods whose neighbours are shown."""


@dataclass(frozen=True)
class Paraphrases:
    """Sentences, each with at least one other of the same meaning."""

    sentences: list[str]
    group: NDArray[np.int64]
    """(N), equal for those of the same meaning."""
    far: NDArray[np.bool_]
    """(N), whether all of its paraphrases share few words with it."""


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
        ranks = first_ranks(vectors, paraphrases.group)
        every, far = Retrieval.of(ranks), Retrieval.of(ranks[paraphrases.far])
        yield f"| {method} | {every.accuracy:.1f} | {every.mrr:.3f} | {far.accuracy:.1f} | {far.mrr:.3f} |"
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
    train = [source.model_copy(update={"prefix": ""}) for source in checkpoint.config.data.train]
    sources = {(source.file, source.swap): source for source in train}
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


def examples(paraphrases: Paraphrases) -> list[int]:
    """Some of the sentences whose paraphrases share few words with them, evenly spaced."""
    far = np.flatnonzero(paraphrases.far)
    chosen: list[int] = far[np.linspace(0, len(far), N_EXAMPLES + 1)[:-1].astype(int)].tolist() if len(far) else []
    return list(dict.fromkeys(chosen))
