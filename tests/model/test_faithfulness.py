"""Faithfulness of evidence, on a classifier that adds up the weights of its words."""

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from model.checkpoint import Checkpoint, CheckpointError, build_model
from model.evaluation.faithfulness import faithfulness
from model.networks.transformer import TransformerClassifier
from tests.model.tiny_training import classifier_experiment

TEXTS = ["a dog and a cat run on the road", "the dog sleeps and a man runs"]


def counting(tokenizer: Tokenizer, weights: Tensor) -> Checkpoint:
    """Classifier whose logit is the mean of given weights of tokens, so that the evidence is known."""
    experiment = classifier_experiment()
    model = build_model(experiment)
    assert isinstance(model, TransformerClassifier)

    def forward(ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        said = weights[ids] * (torch.arange(ids.shape[1]) < lengths.unsqueeze(1))
        token_logits = torch.stack([-said, said], dim=-1)
        return token_logits.sum(dim=1), token_logits

    model.forward = forward  # type: ignore[method-assign]
    return Checkpoint(experiment, model, tokenizer, {})


def test_evidence_that_tells_what_counts_is_several_times_as_faithful_as_chance(tokenizer: Tokenizer) -> None:
    weights = torch.full((320,), 0.001)
    weights[tokenizer.encode(" dog").ids[0]] = weights[tokenizer.encode(" cat").ids[0]] = 1.0
    found = faithfulness(counting(tokenizer, weights), TEXTS)
    assert found.n_texts == 2
    assert found.by_evidence > 20
    assert found.ratio > 2


def test_where_all_tokens_say_the_same_it_is_chance(tokenizer: Tokenizer) -> None:
    assert faithfulness(counting(tokenizer, torch.full((320,), 0.1)), TEXTS).ratio == pytest.approx(1)


def test_texts_of_few_and_of_many_tokens_are_left_out_and_no_more_than_asked_for_are_read(tokenizer: Tokenizer) -> None:
    checkpoint = counting(tokenizer, torch.full((320,), 0.1))
    with pytest.raises(CheckpointError, match="no text has more than 4 and at most 4 tokens"):
        faithfulness(checkpoint, TEXTS, longest=4)
    assert faithfulness(checkpoint, ["a", *TEXTS * 3], n_texts=4).n_texts == 4
