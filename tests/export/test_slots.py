"""Pairs of words that a translator copies, found in translations that a test makes up."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from export import slots
from export.slots import MIN_SHARE_TOGETHER, PROBES, PROBES_FOR_SEVERAL, find_slots
from manifest.schema import Language
from model.decoding.search import Hypothesis

COPIED = ["Paris", "Boston", "Kyoto"]
GARBLED = ["London", "Street"]
OTHERS = ["Stree", "the", "un", "deux", "tree", "7"]


def tokenizer() -> Tokenizer:
    """One token for each word of the probes, with the space before it."""
    texts = [sentence.format(*"ABCD") for sentence in (*PROBES["en"], *PROBES_FOR_SEVERAL["en"])]
    split = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="always"), pre_tokenizers.Punctuation("isolated")]
    )
    words = {piece for text in texts for piece, _ in split.pre_tokenize_str(text)}
    names = {f"▁{word}" for word in (*COPIED, *GARBLED, *OTHERS)}
    made = Tokenizer(models.WordLevel({token: i for i, token in enumerate(["</s>", *sorted(words | names)])}, "▁the"))
    made.pre_tokenizer = split
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    return made


TOKENIZER = tokenizer()


class Copying:
    """Translator that copies every token, but turns some words into one and the same."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._vocabulary = tokenizer().get_vocab()

    def greedy(self, sources: Sequence[Sequence[int]], _: int) -> list[Hypothesis]:
        lost = {self._vocabulary[f"▁{word}"] for word in GARBLED}
        return [Hypothesis([self._vocabulary["▁un"] if i in lost else i for i in ids], -0.1, True) for ids in sources]


class Manifest:
    class limits:  # noqa: N801
        max_source_tokens = max_target_tokens = 60

    class dimensions:  # noqa: N801
        vocab_size = tokenizer().get_vocab_size()

    sources, targets = (Language(code="en"),), (Language(code="fr"),)


class Checkpoint:
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer().encode_batch(list(texts))]

    def decode(self, ids: list[int], of: str = "target") -> str:
        return str(TOKENIZER.decode(ids))


@pytest.fixture(autouse=True)
def artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(slots, "Translator", Copying)
    return tmp_path


def test_names_that_come_through_are_pairs_and_then_digits(artifact: Path) -> None:
    vocabulary = tokenizer().get_vocab()
    pairs = find_slots(artifact, Manifest(), Checkpoint())  # type: ignore[arg-type]
    assert all(source == target for source, target in pairs)
    names = {word for word, i in vocabulary.items() if (i, i) in pairs}
    assert names >= {"▁7", *(f"▁{word}" for word in COPIED)}
    assert not names & {f"▁{word}" for word in (*GARBLED, "Stree", "tree", "the")}, "lost, a part of a word, no name"
    assert pairs[-1] == (vocabulary["▁7"],) * 2
    assert 0 < MIN_SHARE_TOGETHER < 1


def test_a_language_without_probes_has_no_pairs(artifact: Path) -> None:
    manifest = Manifest()
    manifest.sources = (Language(code="xx"),)
    assert find_slots(artifact, manifest, Checkpoint()) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize("sentences", [PROBES, PROBES_FOR_SEVERAL])
def test_every_language_has_as_many_probes(sentences: dict[str, list[str]]) -> None:
    assert {len(some) for some in sentences.values()} == {8}
    assert PROBES.keys() == PROBES_FOR_SEVERAL.keys()
