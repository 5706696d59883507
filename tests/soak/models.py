"""The models of a storm: tiny ones, whose answers come in milliseconds, and which compute NaN for one word.

Of one translator there are two versions with different answers, for what is replaced while requests go on.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.service.tiny_artifacts import PUNCTUATION, SPECIAL, WORDS, TinyTranslator, language
from tests.service.tiny_classifier import TinyClassifier
from tests.soak.texts import NAN_WORD, REAL_WORDS, TINY_WORDS


@dataclass(frozen=True)
class Served:
    """The models that a service has, by what they are for."""

    translator: str
    classifier: str
    embedder: str
    """Another model than the translator."""
    words: list[str]
    pivot: tuple[str, str] | None = None
    """Source and target for which there are two models."""
    ranker: str | None = None
    versioned: str | None = None
    """A translator into Spanish that is replaced."""
    has_nan: bool = False


TINY = Served(
    "tiny-en-fr",
    "tiny-sentiment",
    "tiny-vectors",
    TINY_WORDS,
    ("en", "de"),
    ranker="tiny-ranker",
    versioned="tiny-en-es",
    has_nan=True,
)
SHIPPED = Served("translate-en-fr", "sentiment-imdb", "translate-fr-en", REAL_WORDS, ("fr", "de"))
VERSION_SEEDS = 21, 22


def save_tiny_models(root: Path) -> None:
    """Write the artifacts of `TINY`, one of them in its second version."""
    translator = TinyTranslator(seed=3)
    _poison(translator.weights["embedding"])
    translator.weights["vocabulary"][:, _token(NAN_WORD)] = 0  # it is read, and never written
    translator.save(root / TINY.translator, TINY.translator)
    TinyTranslator(seed=4).save(root / "tiny-fr-de", "tiny-fr-de", sources=[language("fr")], targets=[language("de")])
    classifier = TinyClassifier(seed=5, pooling="mean")
    _poison(classifier.weights["token_logits_table"])
    classifier.save(root / TINY.classifier)
    TinyClassifier(seed=6, pooling="mean").save_for_embeddings(root / TINY.embedder)
    ranker = TinyClassifier(seed=7, pooling="mean", labels=["near"], pairs=True)
    assert TINY.ranker is not None
    ranker.save(root / TINY.ranker, TINY.ranker, label_activation="identity")
    save_version(root, VERSION_SEEDS[1])


def save_version(root: Path, seed: int) -> None:
    """Put a version of the translator into Spanish in the place of the one before."""
    name = TINY.versioned
    assert name is not None
    new, former = root.parent / f"{name}.new", root.parent / f"{name}.former"
    TinyTranslator(seed).save(new, name, sources=[language("en")], targets=[language("es")])
    if (root / name).exists():
        os.rename(root / name, former)
    os.rename(new, root / name)
    shutil.rmtree(former, ignore_errors=True)


def _token(word: str) -> int:
    return len(SPECIAL) + WORDS.index(word)


def _poison(table: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> None:
    """Let the model compute NaN for one word."""
    assert NAN_WORD not in PUNCTUATION
    table[_token(NAN_WORD)] = np.nan
