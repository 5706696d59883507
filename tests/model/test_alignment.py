"""The choice of heads, on made-up matrices and with a tiny model from end to end."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from manifest.schema import AlignmentChoice
from model import __main__
from model.alignment import heads
from model.alignment.heads import Reference, agreement, among_words, compare, compare_heads, hard_links, word_attention
from model.alignment.word_aligner import Links
from model.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from model.data import Row
from model.networks.matrices import translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier
from model.recipe import DataSource, load_recipe, save_recipe
from model.tokenizer import BOS_ID
from model.words import word_columns, word_spans
from tests.model.tiny_configs import configured

Array = NDArray[np.float32]

DIAGONAL = Reference(sure={(0, 0), (1, 1), (2, 2)}, possible={(0, 0), (1, 1), (2, 2), (1, 2)})
SHIFTED = np.eye(3, 4, 1, dtype=np.float32)
"""Attention of each target word to the next source word; the last attends to none."""


def test_a_source_words_tokens_add_up_and_a_target_words_are_averaged() -> None:
    of_source = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)  # two words, and </s>
    of_target = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], np.float32)
    tokens = np.array([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]], np.float32)
    produced, read = among_words(tokens[None, None], of_source, of_target)
    assert produced[0, 0] == pytest.approx(np.array([[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]))
    assert read[0, 0] == pytest.approx(np.array([[1, 0, 0], [0, 0.25, 0.75]]))


def test_a_target_word_has_its_best_source_word_unless_the_end_is_better() -> None:
    attention = np.array([[0.5, 0.3, 0.2], [0.1, 0.4, 0.5], [0.1, 0.6, 0.3]], np.float32)
    assert hard_links(attention) == {(0, 0), (1, 2)}


def test_agreement_is_that_of_och_and_ney() -> None:
    attention = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]], np.float32)  # 0-0, 0-1, 1-2
    result = agreement(AlignmentChoice(layer=0, heads=(0,), next_row=False), [attention[None]], [DIAGONAL])
    assert result.precision == pytest.approx(100 * 2 / 3)
    assert result.recall == pytest.approx(100 * 1 / 3)
    assert result.aer == pytest.approx(100 * (1 - (1 + 2) / (3 + 3)))


def test_the_head_that_aligns_is_found_with_its_layer_and_row() -> None:
    attention = np.stack([[[SHIFTED] * 3] * 2] * 2)  # (2, Ld, H, V, W + 1)
    attention[1, 0, 2] = np.eye(3, 4)
    best, *others = compare([attention], [DIAGONAL])
    assert best.alignment == AlignmentChoice(layer=0, heads=(2,), next_row=True)
    assert (best.precision, best.recall, best.aer) == (100, 100, 0)
    assert all(other.aer > 0 for other in others)


def test_two_heads_that_know_a_half_each_are_taken_together() -> None:
    attention = np.zeros((2, 1, 3, 3, 4), np.float32)
    attention[..., 3] = 0.4  # whoever does not know looks to the end
    attention[0, 0, 0, :2, :2] = np.eye(2)
    attention[0, 0, 2, 2, 2] = 1
    attention[0, 0, 1, :, 0] = 5
    best, *_ = compare([attention], [DIAGONAL])
    assert best.alignment == AlignmentChoice(layer=0, heads=(0, 2), next_row=False)
    assert best.aer == 0


def test_batches_and_padding_change_nothing(transformer: Transformer, tokenizer: Tokenizer) -> None:
    rows = [Row("A dog.", "Un chien court."), Row("I don't.", "Je."), Row("Two men are here.", "Deux.")]
    model = big_enough(transformer)
    together = list(word_attention(model, tokenizer, rows))
    for row, attention in zip(rows, together, strict=True):
        source, target = tokenizer.encode(row.left), tokenizer.encode(row.right)
        ids = torch.tensor([source.ids]), torch.tensor([len(source)]), torch.tensor([[BOS_ID, *target.ids[:-1]]])
        with torch.inference_mode():
            cross = translation_matrices(model, *ids).cross[0].numpy()
        [alone] = word_attention(model, tokenizer, [row])
        np.testing.assert_allclose(attention, alone, atol=1e-6)
        assert attention.sum(axis=-1) == pytest.approx(1, abs=1e-5)
        # The last token of a text is its last word: read in the last row, produced in the one before.
        nowhere = word_columns(row.left, word_spans(row.left), source.offsets)[:, -1] == 1
        ends = cross[..., nowhere].sum(axis=-1)
        np.testing.assert_allclose(attention[:, :, :, -1, -1], [ends[..., -2], ends[..., -1]], atol=1e-6)


def big_enough(model: Transformer) -> Transformer:
    """The translator with an embedding of the size of the tokenizer."""
    return Transformer(model.config.model_copy(update={"vocab_size": 320})).eval()


@pytest.fixture
def checkpoint(transformer: Transformer, tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """A checkpoint with a French-English training corpus, swapped."""
    model = big_enough(transformer)
    corpus = {"file": "translation/train/some.fr-en.tsv", "licence": "none", "swap": True}
    data = {"train": [corpus, corpus | {"rewrite": "no_capitals"}]}
    for file in ("train/some", "test/multi30k-val"):
        path = tmp_path / f"translation/{file}.fr-en.tsv"
        path.parent.mkdir(parents=True)
        path.write_text("Un chien.\tA dog.\nDeux hommes jouent.\tTwo men play.\n" + "Je " * 64 + "\tI\n")
    experiment = configured(model.config.model_dump(), data=data, max_tokens=60)
    save_checkpoint(tmp_path / "checkpoint", experiment, model.state_dict(), tokenizer)
    save_recipe(tmp_path / "checkpoint", experiment)
    return tmp_path / "checkpoint"


def test_other_pairs_may_be_configured(checkpoint: Path) -> None:
    data = load_recipe(checkpoint).data
    news = DataSource(file="news.en-fr.tsv", licence="none")
    assert heads.compared_source(data.model_copy(update={"aligned": news})) == news
    assert heads.compared_source(data).file == "translation/test/multi30k-val.fr-en.tsv"


def test_a_choice_is_written_with_its_grounds_and_is_read_again(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Row] = []

    def links(rows: list[Row], n: int) -> list[tuple[Links, Links]]:
        read.extend(rows)
        return [({(0, 0), (1, 1)}, {(0, 0)})] * n

    monkeypatch.setattr(heads, "statistical_links", links)
    __main__.align(checkpoint, checkpoint.parent)
    assert read[:2] == [("A dog.", "Un chien."), ("Two men play.", "Deux hommes jouent.")]
    assert len(read) == 2 + 3, "what is longer than the model reads is not compared, and each corpus is read once"
    content = json.loads((checkpoint / "alignment.json").read_text())
    measured = content["measured"]
    assert (measured["compared_on"], measured["pairs"]) == ("translation/test/multi30k-val.fr-en.tsv", 2)
    assert {key: measured["candidates"][0][key] for key in content["choice"]} == content["choice"]
    found = load_checkpoint(checkpoint).alignment
    assert found is not None
    assert found.model_dump(mode="json") == content["choice"]


def test_a_classifier_is_not_asked(checkpoint: Path, classifier: TransformerClassifier) -> None:
    loaded = replace(load_checkpoint(checkpoint), model=classifier)
    with pytest.raises(CheckpointError, match="tiny is no Transformer for translation"):
        compare_heads(loaded, load_recipe(checkpoint).data, checkpoint.parent, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"choice": {"layer": 2, "heads": [0], "next_row": True}},
            r"layer 2, heads \[0\] are not among .* 2 decoder layers",
        ),
        ({"choice": {"layer": 0, "heads": [0, 3], "next_row": True}}, r"heads \[0, 3\] are not among .* of 3 heads"),
        ({"choice": {"layer": 0, "heads": [], "next_row": True}}, r"heads\n  Tuple should have at least 1 item"),
        ({"choice": {"layer": 0, "heads": [1]}}, "must have `choice` with `layer`, `heads` and `next_row`"),
        ({"layer": 0}, "must have `choice` with `layer`, `heads` and `next_row`"),
    ],
)
def test_a_choice_that_the_model_has_not_is_refused(checkpoint: Path, content: dict[str, Any], message: str) -> None:
    (checkpoint / "alignment.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(checkpoint)
