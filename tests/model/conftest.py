"""Tiny models with all dimensions different, so that a transposed axis cannot hide."""

import pytest
import torch
from tokenizers import Tokenizer

from model.config import ClassifierConfig, TransformerConfig
from model.tokenizer import train_tokenizer
from model.transformer import Transformer, TransformerClassifier

TEXTS = [
    "A dog runs on the beach.",
    "Un chien court sur la plage.",
    "Two men are playing chess in the park, and it rains.",
    "Deux hommes jouent aux échecs dans le parc, et il pleut.",
    "I don't like this film at all!",
    "Je n'aime pas du tout ce film !",
]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(7)


@pytest.fixture(params=["post", "pre"])
def transformer(request: pytest.FixtureRequest) -> Transformer:
    config = TransformerConfig(
        vocab_size=50,
        d_model=24,
        n_heads=3,
        d_ff=40,
        n_encoder_layers=3,
        n_decoder_layers=2,
        max_positions=64,
        norm=request.param,
        source="en",
        target="fr",
    )
    return Transformer(config).eval()


@pytest.fixture(params=["max", "mean"])
def classifier(request: pytest.FixtureRequest) -> TransformerClassifier:
    config = ClassifierConfig(
        vocab_size=50,
        d_model=24,
        n_heads=3,
        d_ff=40,
        n_encoder_layers=2,
        max_positions=64,
        labels=("negative", "neutral", "positive"),
        pooling=request.param,
    )
    return TransformerClassifier(config).eval()


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, vocab_size=320, end_of_sequence=True)
