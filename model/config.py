"""What a model is, as written in its config.yaml; how it was trained is another file (model/recipe.py).

Unknown keys are refused, and every value is checked where it is read, so that a typing error is found before an hour of
training, not after.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from model.batching import bucket
from model.checked_yaml import Strict, load_yaml, save_yaml
from model.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

CONFIG = "config.yaml"


class ConfigError(ValueError):
    """A configuration file is missing, is not YAML, or holds a value that cannot be used."""


Positions = Literal["none", "sinusoidal", "learned", "rotary"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"]
Norm = Literal["post", "pre"]
Stop = Literal["empty", "no_better", "full", "full_no_better"]
Cell = Literal["rnn", "gru", "lstm"]
TokenPooling = Literal["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]


class SpecialTokens(Strict):
    """Ids of tokens that are no words. By default those of tokenizers that are learned here (model/tokenizer.py)."""

    pad: NonNegativeInt = PAD_ID
    unk: NonNegativeInt = UNK_ID
    bos: NonNegativeInt = BOS_ID
    """With which a target begins: </s> or <pad> in some models."""
    eos: NonNegativeInt = EOS_ID


class LayerConfig(Strict):
    """What encoder and decoder layers are made of."""

    vocab_size: PositiveInt
    special_tokens: SpecialTokens = SpecialTokens()
    d_model: PositiveInt
    n_heads: PositiveInt
    d_ff: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    norm: Norm = "post"
    norm_eps: PositiveFloat = 1e-5
    """Added to the variance in every layer normalization."""
    positions: Positions = "sinusoidal"
    """`learned` is a table in the weights, wherever it comes from."""
    embedding_scale: PositiveFloat | None = None
    """What the embedding of a token is multiplied by; None is sqrt(d_model)."""
    embedding_norm: bool = False
    """Whether the sum of token and position is normalized."""
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


class Language(Strict):
    """A language of a translator that has several, and the tokens that tell the model about it."""

    code: str
    """As the model has it: fr, fra, fra_Latn."""
    source_prefix: tuple[int, ...] = ()
    """Tokens put in front of a source: in this language, or to be translated into it."""
    target_prefix: tuple[int, ...] = ()
    """Tokens with which a target in this language begins."""


class TransformerConfig(LayerConfig):
    """An encoder-decoder Transformer."""

    task: Literal["translation"] = "translation"
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    d_encoder: PositiveInt | None = None
    """Width of the encoder, with an embedding of its own; None is d_model, with one embedding for both sides."""
    source_vocab_size: PositiveInt | None = None
    """Of an encoder with tokens, and so an embedding, of its own."""
    tied_output: bool = True
    """Whether the decoder's embedding is also what projects to the vocabulary."""
    output_bias: bool = False
    """Whether each token's logit has a bias."""
    source: str | tuple[Language, ...]
    target: str | tuple[Language, ...]

    @property
    def sources(self) -> tuple[Language, ...]:
        """The languages that it reads."""
        return _languages(self.source)

    @property
    def targets(self) -> tuple[Language, ...]:
        """The languages that it writes."""
        return _languages(self.target)

    @property
    def has_source_embedding(self) -> bool:
        """Whether the encoder has an embedding of its own."""
        return self.d_encoder is not None or self.source_vocab_size is not None

    @model_validator(mode="after")
    def _heads_divide_the_encoder(self) -> Self:
        self._check_heads("d_encoder", self.encoder_layer.d_model)
        return self

    @property
    def encoder_layer(self) -> LayerConfig:
        """What the encoder's layers are made of: the decoder's, of the encoder's width and vocabulary."""
        own = {
            "d_model": self.d_encoder or self.d_model,
            "vocab_size": self.source_vocab_size or self.vocab_size,
        }
        return self.model_copy(update=own)


def _languages(given: str | tuple[Language, ...]) -> tuple[Language, ...]:
    return (Language(code=given),) if isinstance(given, str) else given


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
    special_tokens: SpecialTokens = SpecialTokens()
    source: str
    target: str


class LanguageModelConfig(LayerConfig):
    """A decoder-only Transformer, which continues a text."""

    task: Literal["language_model"] = "language_model"
    n_decoder_layers: PositiveInt


class ClassifierConfig(LayerConfig):
    """An encoder classifier; `labels` in the order of its logits."""

    task: Literal["classification"] = "classification"
    n_encoder_layers: PositiveInt
    labels: tuple[str, ...] = Field(min_length=1)
    label_activation: Literal["softmax", "sigmoid"] = "softmax"
    """Of logits: one label of all, or each label by itself."""
    one_form: bool = False
    """Whether the tokenizer reads what differs in form alone as one: capitals, full-width letters, typographic marks.
    There are fewer word pieces then, each seen more often."""
    pooling: Literal["max", "mean", "first"] = "max"
    """Of the logits of all tokens; or `first`, the logits of the first token alone."""
    pooler: Literal["tanh", "relu"] | None = None
    """Activation of a dense layer before the last one, where the first token alone decides."""

    @model_validator(mode="after")
    def _pooler_reads_one_token(self) -> Self:
        if self.pooler is not None and self.pooling != "first":
            raise ValueError(f"a pooler reads the first token, and pooling is {self.pooling}")
        return self


class DenseConfig(Strict):
    """A layer through which an embedding goes."""

    d_output: PositiveInt
    bias: bool = True
    activation: Literal["identity", "tanh"] = "identity"


class EmbedderConfig(LayerConfig):
    """An encoder of texts, whose pooled states are compared (Reimers and Gurevych 2019, "Sentence-BERT")."""

    task: Literal["embedding"] = "embedding"
    n_encoder_layers: PositiveInt
    pooling: tuple[TokenPooling, ...] = Field(default=("mean",), min_length=1)
    """Several are joined in this order."""
    dense: tuple[DenseConfig, ...] = ()
    normalize: bool = True
    """Whether an embedding has length 1 unless a request says otherwise."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put in front of a text, by name."""
    default_prompt: str | None = None
    pool_prompt: bool = True
    """Whether the tokens of a prompt are pooled too."""


ModelConfig = Annotated[
    TransformerConfig | RecurrentConfig | LanguageModelConfig | ClassifierConfig | EmbedderConfig,
    Field(discriminator="task"),
]


class Decoding(Strict):
    """How a translator searches unless asked otherwise."""

    beam_size: PositiveInt = 4
    length_penalty: NonNegativeFloat = 1.0
    beam_threshold: NonNegativeFloat = 2.0
    stop: Stop = "empty"
    """When a beam search ends.

    A hypothesis that ends makes the beam narrower: the search ends when the beam is `empty`, as Marian's does; or
    already when no live hypothesis is better, at its present length, than the best that have ended (`no_better`).

    The beam keeps its width: the search ends when as many as that have ended (`full`), as CTranslate2's does; or when
    no live hypothesis is better either, at its present length, than the worst of these (`full_no_better`), as in
    transformers.
    """
    max_target_tokens: PositiveInt | None = None
    """With </s>; None is what the positions allow."""


class Provenance(Strict):
    """Where a model that was not trained here comes from."""

    source: str
    """What was imported: the id of a hub, or a file's name."""
    family: str
    """MarianMT, BERT, ..."""
    revision: str | None = None
    """Of a hub's repository, a commit."""
    licence: str | None = None
    """As its owner says; None where none is known."""


class Config(Strict):
    """A model by its name, and what its weights are the weights of."""

    name: str
    description: str
    max_tokens: PositiveInt
    """Of the longest text that it was trained on: longer translation pairs were left out, longer reviews cut to their
    first and last tokens. The service reads nothing longer at once."""
    model: ModelConfig
    decoding: Decoding = Decoding()
    """Of a translator."""
    provenance: Provenance | None = None
    """Of a model that was brought from elsewhere."""

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
