"""A classifier of pairs adds a vector to the tokens after the first separator, and to no others."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from model.checkpoint import initialize_from, load_checkpoint, save_checkpoint
from model.config import ClassifierConfig
from model.networks.transformer import TransformerClassifier
from model.tokenizer import EOS_ID
from tests.model.tiny_configs import CLASSIFIER, configured

FIRST = {"pooling": "first", "positions": "learned"}


def classifier(**changes: Any) -> TransformerClassifier:
    torch.manual_seed(3)
    return TransformerClassifier(ClassifierConfig.model_validate(CLASSIFIER | FIRST | changes)).eval()


@torch.inference_mode()
def test_only_tokens_after_the_first_separator_get_the_vector() -> None:
    model = classifier(pairs="segments")
    ids = torch.tensor([[2, 9, 8, EOS_ID, 7, EOS_ID, 0], [2, 9, 8, 7, 6, 5, EOS_ID]])
    with_vector = model.embedding(ids)
    assert model.embedding.second is not None
    vector = model.embedding.second.clone()
    model.embedding.second.zero_()
    added = with_vector - model.embedding(ids)
    torch.testing.assert_close(added[0, 4:], vector.expand(3, -1))
    assert not added[0, :4].any()
    assert not added[1].any(), "a single text"


@torch.inference_mode()
def test_a_pair_has_the_same_logits_alone_and_beside_longer_ones() -> None:
    model = classifier(pairs="segments")
    pair = [2, 9, EOS_ID, 7, EOS_ID]
    together, _ = model(torch.tensor([[*pair, 0, 0], [2, *[8] * 5, EOS_ID]]), torch.tensor([5, 7]))
    alone, _ = model(torch.tensor([pair]), torch.tensor([5]))
    torch.testing.assert_close(together[:1], alone)


def test_training_may_begin_with_a_classifier_of_pairs(tmp_path: Path, tokenizer: Tokenizer) -> None:
    vocabulary = {"vocab_size": tokenizer.get_vocab_size()}
    start = classifier(pairs="segments", **vocabulary)
    config = configured(CLASSIFIER | FIRST | vocabulary | {"pairs": "segments"})
    save_checkpoint(tmp_path, config, start.state_dict(), tokenizer, dtype=None)
    model = classifier(labels=["near", "far"], **vocabulary)
    initialize_from(model, load_checkpoint(tmp_path), tokenizer)
    torch.testing.assert_close(model.embedding.encoding, start.embedding.encoding)


@pytest.mark.parametrize(("pairs", "n"), [(None, 0), ("separated", 2), ("segments", 2)])
def test_a_checkpoint_makes_pairs_only_of_texts_that_it_reads_in_pairs(
    tmp_path: Path, tokenizer: Tokenizer, pairs: str | None, n: int
) -> None:
    settings = CLASSIFIER | FIRST | {"vocab_size": tokenizer.get_vocab_size(), "pairs": pairs}
    model = TransformerClassifier(ClassifierConfig.model_validate(settings))
    save_checkpoint(tmp_path, configured(settings), model.state_dict(), tokenizer)
    assert len(load_checkpoint(tmp_path).pairs_of(["a", "b", "c"])) == n
