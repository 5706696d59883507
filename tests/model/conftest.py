"""Tiny models with random weights, and a tokenizer."""

import pytest
import torch
from tokenizers import Tokenizer

from model.config import ClassifierConfig, TransformerConfig
from model.networks.transformer import Transformer, TransformerClassifier
from model.tokenizer import train_tokenizer
from tests.model.tiny_configs import CLASSIFIER, TRANSLATOR

torch.set_num_threads(1)  # tensors this small only lose by sharing

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


@pytest.fixture(params=[{"norm": "post"}, {"norm": "pre"}, {"decoder_self": "ssru"}], ids=str)
def transformer(request: pytest.FixtureRequest) -> Transformer:
    return Transformer(TransformerConfig.model_validate(TRANSLATOR | request.param)).eval()


@pytest.fixture(params=["max", "mean"])
def classifier(request: pytest.FixtureRequest) -> TransformerClassifier:
    return TransformerClassifier(ClassifierConfig.model_validate(CLASSIFIER | {"pooling": request.param})).eval()


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, vocab_size=320, end_of_sequence=True)
