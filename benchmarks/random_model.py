"""Writes a Transformer of the original size with random weights, which costs as much as a trained one.

With plain random weights and tied embeddings a model repeats its last token for ever, and ends at random. So the
outputs of sublayers are made strong enough to outweigh the token that was read, and </s> is excluded: every sequence
ends at its limit.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models

from model.checkpoint import build_model, save_checkpoint
from model.config import Config, TransformerConfig
from model.networks.transformer import Transformer
from model.tokenizer import EOS_ID, SPECIAL_TOKENS

VOCAB_SIZE = 32_000
SEED = 20
OUTPUT_GAIN = 4.0
"""Factor of the last weight of each sublayer."""
EOS_NORM, EOS_BIAS = 40.0, 4.0
"""These make </s> score about -160, far below all other tokens, which score around 0."""


def save_random_checkpoint(directory: Path) -> None:
    """Write a checkpoint of 6 + 6 layers, d_model 512, d_ff 2048, 8 heads and a vocabulary of 32,000."""
    config = _config()
    torch.manual_seed(SEED)
    model = build_model(config)
    assert isinstance(model, Transformer)
    _never_repeat_never_end(model)
    save_checkpoint(directory, config, model.state_dict(), random_tokenizer())


@torch.no_grad()
def _never_repeat_never_end(model: Transformer) -> None:
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        for name, weight in layer.named_parameters():
            if name.endswith("output.weight"):
                weight *= OUTPUT_GAIN
    direction = torch.nn.functional.normalize(torch.randn(model.config.d_model), dim=0)
    model.embedding.tokens.weight[EOS_ID] = -EOS_NORM * direction
    norm = model.decoder.final_norm
    assert isinstance(norm, torch.nn.LayerNorm)
    norm.bias.copy_(EOS_BIAS * direction)


def _config() -> Config:
    model = TransformerConfig(
        vocab_size=VOCAB_SIZE,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_encoder_layers=6,
        n_decoder_layers=6,
        max_positions=512,
        dropout=0.0,
        norm="pre",
        source="en",
        target="fr",
    )
    return Config(name="random-6-6", description="Random weights, to measure speed.", max_tokens=512, model=model)


def random_tokenizer() -> Tokenizer:
    tokens = [*SPECIAL_TOKENS, *(f"t{i}" for i in range(len(SPECIAL_TOKENS), VOCAB_SIZE))]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=SPECIAL_TOKENS[1]))
    tokenizer.decoder = decoders.Metaspace()  # the service reads tokens that are written in a known way
    return tokenizer
