"""What a model is, as written in its config.yaml; how it was trained is another file (model/recipe.py).

Unknown keys are refused, and every value is checked where it is read, so that a typing error is found before an hour of
training, not after.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from model.batching import bucket
from model.checked_yaml import Strict, load_yaml, save_yaml

CONFIG = "config.yaml"


class ConfigError(ValueError):
    """A configuration file is missing, is not YAML, or holds a value that cannot be used."""


Positions = Literal["none", "sinusoidal", "learned", "rotary"]
Activation = Literal["relu", "gelu", "swiglu"]
Norm = Literal["post", "pre"]
Cell = Literal["rnn", "gru", "lstm"]


class LayerConfig(Strict):
    """What encoder and decoder layers are made of."""

    vocab_size: PositiveInt
    d_model: PositiveInt
    n_heads: PositiveInt
    d_ff: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    norm: Norm = "post"
    positions: Positions = "sinusoidal"
    activation: Activation = "relu"
    attention: Literal["soft", "hard"] = "soft"
    beta: PositiveFloat | None = None
    """Inverse temperature of soft attention, and of the gradient of hard attention; None is 1 / sqrt(head_dim)."""

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        self._check_heads("d_model", self.d_model)
        return self

    def _check_heads(self, name: str, width: int) -> None:
        if width % self.n_heads != 0:
            raise ValueError(f"{name} {width} is not a multiple of n_heads {self.n_heads}")
        head_dim = width // self.n_heads
        if self.positions == "rotary" and head_dim % 2 != 0:
            raise ValueError(
                f"rotary positions need an even head_dim, and {name} {width} / n_heads {self.n_heads} is {head_dim}"
            )


class TransformerConfig(LayerConfig):
    """An encoder-decoder Transformer."""

    task: Literal["translation"] = "translation"
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    d_encoder: PositiveInt | None = None
    """Width of the encoder, with an embedding of its own; None is d_model, with one embedding for both sides."""
    source: str
    target: str

    @model_validator(mode="after")
    def _heads_divide_the_encoder(self) -> Self:
        self._check_heads("d_encoder", self.encoder_layer.d_model)
        return self

    @property
    def encoder_layer(self) -> LayerConfig:
        """What the encoder's layers are made of: the decoder's, of the encoder's width."""
        return self.model_copy(update={"d_model": self.d_encoder or self.d_model})


class RecurrentConfig(Strict):
    """A recurrent encoder-decoder, the Transformer's ancestor, without attention or with additive attention."""

    task: Literal["recurrent_translation"] = "recurrent_translation"
    vocab_size: PositiveInt
    d_model: PositiveInt = Field(multiple_of=2)
    """Width of the embedding and of every state; each direction of the encoder is half as wide."""
    cell: Cell = "gru"
    attention: Literal["none", "before_cell", "after_cell"] = "after_cell"
    """Additive attention: of the state before the cell, which reads the context too, or of what the cell gives."""
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    source: str
    target: str


class LanguageModelConfig(LayerConfig):
    """A decoder-only Transformer, which continues a text."""

    task: Literal["language_model"] = "language_model"
    n_decoder_layers: PositiveInt


class NGramConfig(Strict):
    """Words and hashed runs of words whose own weights a classifier's logits get too (model/networks/ngrams.py)."""

    buckets: PositiveInt
    longest: int = Field(default=2, ge=2, le=3)
    """Tokens of the longest run."""


class RegionConfig(Strict):
    """Regions, of which a classifier's logits get what their strongest say (model/networks/regions.py)."""

    width: PositiveInt
    """Of a region's vector."""
    detectors: PositiveInt
    radius: PositiveInt = 2
    """Tokens on either side of the one in the middle."""
    labelled_radius: PositiveInt = 1
    """The same, of tokens that are learnt from labels."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Of what the detectors found, in training."""


class ClassifierConfig(LayerConfig):
    """An encoder classifier; `labels` in the order of its logits."""

    task: Literal["classification"] = "classification"
    n_encoder_layers: PositiveInt
    labels: tuple[str, ...] = Field(min_length=2)
    lower_case: bool = False
    """Read A to Z as a to z: fewer word pieces, each seen more often."""
    pooling: Literal["max", "mean"] = "max"
    n_grams: NGramConfig | None = None
    regions: RegionConfig | None = None
    """With neither, the encoder is alone."""

    @model_validator(mode="after")
    def _parts_add_up(self) -> Self:
        for name in ("n_grams", "regions"):
            if getattr(self, name) is not None and self.pooling != "mean":
                raise ValueError(f"{name} need mean pooling: beside a maximum their logits would not be their own")
        return self


ModelConfig = Annotated[
    TransformerConfig | RecurrentConfig | LanguageModelConfig | ClassifierConfig, Field(discriminator="task")
]


class Config(Strict):
    """A model by its name, and what its weights are the weights of."""

    name: str
    description: str
    max_tokens: PositiveInt
    """Of the longest text that it was trained on: longer translation pairs were left out, longer reviews cut to their
    first and last tokens. The service reads nothing longer at once."""
    model: ModelConfig

    @model_validator(mode="after")
    def _the_longest_batch_has_positions(self) -> Self:
        padded, limit = bucket(self.max_tokens), self.model.max_positions
        if padded > limit:
            raise ValueError(
                f"max_tokens {self.max_tokens} is more than model.max_positions {limit} allows: a batch of sequences "
                f"of {self.max_tokens} tokens is padded to {padded}"
            )
        return self


def load_config(directory: Path) -> Config:
    """Read and check the config.yaml of a model's directory.

    Raises:
        ConfigError: with the file's name and each offending key.
    """
    return load_yaml(directory / CONFIG, Config.model_validate, ConfigError)


def save_config(directory: Path, config: Config) -> None:
    """Write every value of a configuration, so that another default changes no model."""
    save_yaml(directory / CONFIG, config.model_dump(mode="json", include=set(Config.model_fields)))
