"""The architecture of a model, as written in config.yaml; its training is in another file (model/recipe.py).

Unknown keys are refused and every value is checked when it is read, so that a typing error is found before training.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from manifest import schema
from manifest.schema import DecoderSelf, Language, Pooling, Stop, TokenPooling
from model.batching import bucket
from model.checked_yaml import Strict, load_yaml, save_yaml
from model.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

CONFIG = "config.yaml"


class ConfigError(ValueError):
    """A configuration file is missing, is not YAML, or holds a value that cannot be used."""


Positions = Literal["none", "sinusoidal", "learned", "rotary"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu", "geglu_tanh", "reglu"]
Norm = Literal["post", "pre"]
NormType = Literal["layer", "rms"]
Cell = Literal["rnn", "gru", "lstm"]
Pooler = Literal["tanh", "relu", "gelu"]


class SpecialTokens(schema.SpecialTokens):
    """Ids of special tokens; by default those of tokenizers that are trained here (model/tokenizer.py)."""

    pad: schema.TokenId = PAD_ID
    unk: schema.TokenId = UNK_ID
    bos: schema.TokenId = BOS_ID
    """First token of a target: </s> or <pad> in some models."""
    eos: schema.TokenId = EOS_ID


class Disentangled(Strict):
    """Self-attention whose scores also depend on products of tokens with distances (He et al. 2021, "DeBERTa")."""

    buckets: NonNegativeInt
    """Number of buckets for distances in one direction; 0 if each distance has a row of its own."""
    max_distance: PositiveInt
    """Distances from here on are the same."""
    query_to_distance: bool = True
    distance_to_key: bool = True

    @property
    def n_rows(self) -> int:
        """Number of rows in a table of distances, for both directions."""
        return 2 * (self.buckets or self.max_distance)


class LocalAttention(Strict):
    """Self-attention of some layers to neighbours only."""

    layers: tuple[NonNegativeInt, ...]
    """Numbers of these layers, from 0."""
    reach: PositiveInt
    """Largest distance of a token that is attended to."""
    rotary_base: PositiveFloat = 10000.0
    """`rotary_base` of these layers."""


class RelativePositions(Strict):
    """A bias of self-attention's scores by the distance of query and key (Raffel et al. 2020, "T5", section 2.1).

    Near distances have a bias each. Farther ones share one, in ranges that grow up to `max_distance`, and all beyond it
    share the last. Encoders use half of the buckets for each direction.
    """

    buckets: PositiveInt = 32
    max_distance: PositiveInt = 128
    per_layer: bool = False
    """Whether each layer has biases of its own; otherwise all layers of encoder or decoder share them."""

    @model_validator(mode="after")
    def _some_distances_have_a_bucket_each(self) -> Self:
        if self.buckets % 4 != 0 or self.buckets // 2 >= self.max_distance:
            raise ValueError(
                f"`buckets` is {self.buckets}; it must be a multiple of 4, and less than twice `max_distance`, "
                f"{self.max_distance}"
            )
        return self


class LayerConfig(Strict):
    """Settings of encoder and decoder layers."""

    vocab_size: PositiveInt
    special_tokens: SpecialTokens = SpecialTokens()
    d_model: PositiveInt
    n_heads: PositiveInt
    head_dim: PositiveInt | None = None
    """Width of a head; None is d_model / n_heads."""
    d_ff: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    norm: Norm = "post"
    norm_type: NormType = "layer"
    """`rms` divides by the root mean square, without subtracting the mean (Zhang and Sennrich 2019)."""
    norm_eps: PositiveFloat = 1e-5
    """Added to the variance in every normalization."""
    bias: bool = True
    """Whether normalizations and the dense layers of attention, feed-forward and a pooler have biases."""
    positions: Positions = "sinusoidal"
    """`learned` is a table in the weights, also if it was computed."""
    rotary_base: PositiveFloat = 10000.0
    """The slowest pair of numbers turns by about 1 / rotary_base from one position to the next."""
    disentangled: Disentangled | None = None
    """Scores of an encoder's self-attention that depend on distances."""
    local_attention: LocalAttention | None = None
    """Layers of an encoder that attend to neighbours only."""
    first_norm: bool = True
    """Whether pre-norm layers begin with a normalization in the first one, too."""
    relative_positions: RelativePositions | None = None
    """Biases of self-attention by distance, beside `positions`."""
    embedding_scale: PositiveFloat | None = None
    """Factor of token embeddings; None is sqrt(d_model)."""
    embedding_norm: bool = False
    """Whether the sum of token and position embedding is normalized."""
    activation: Activation = "relu"
    attention: Literal["soft", "hard"] = "soft"
    beta: PositiveFloat | None = None
    """Inverse temperature of soft attention, and of the gradient of hard attention; None is 1 / sqrt(head_dim)."""

    @property
    def width_of_head(self) -> int:
        """Width of a head."""
        return self.head_dim or self.d_model // self.n_heads

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        self._check_heads("d_model", self.d_model)
        if self.relative_positions is not None and self.attention == "hard":
            raise ValueError("`relative_positions` need soft `attention`")
        return self

    def of_layer(self, i: int) -> Self:
        """Return the settings of one encoder layer, counted from 0."""
        local = self.local_attention if self.local_attention and i in self.local_attention.layers else None
        options = {
            "local_attention": local,
            "rotary_base": local.rotary_base if local else self.rotary_base,
            "first_norm": self.first_norm or i > 0,
        }
        return self.model_copy(update=options)

    def _check_heads(self, name: str, width: int) -> None:
        if self.head_dim is None and width % self.n_heads != 0:
            raise ValueError(f"`{name}` is {width}; it must be a multiple of `n_heads`, {self.n_heads}")
        head_dim = self.head_dim or width // self.n_heads
        if self.positions == "rotary" and head_dim % 2 != 0:
            said = f"`{name}` / `n_heads`" if self.head_dim is None else "`head_dim`"
            raise ValueError(f"{said} is {head_dim}; rotary `positions` need an even number")


class ShortlistConfig(Strict):
    """Which target tokens a translation may have: those in the lists of its source's tokens, and the first ones."""

    first: NonNegativeInt
    """Tokens below it are always allowed."""
    own: bool
    """Whether the tokens of the source are allowed too."""
    n_entries: PositiveInt
    """Number of entries of all lists."""


class TransformerConfig(LayerConfig):
    """An encoder-decoder Transformer."""

    task: Literal["translation"] = "translation"
    disentangled: None = None
    local_attention: None = None
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    d_encoder: PositiveInt | None = None
    """Width of an encoder with its own embedding; None is d_model, with one embedding for both sides."""
    source_vocab_size: PositiveInt | None = None
    """Vocabulary size of an encoder with its own vocabulary and embedding."""
    encoder_positions: bool = False
    """Whether an encoder that shares the decoder's table of tokens has learned positions, and an embedding norm, of its
    own."""
    decoder_self: DecoderSelf = "attention"
    """How the decoder reads the target tokens before: by self-attention, or by an SSRU in its place (Kim et al. 2019).
    """
    tied_output: bool = True
    """Whether the decoder's embedding is also the output projection."""
    output_bias: bool = False
    """Whether each token's logit has a bias."""
    shortlist: ShortlistConfig | None = None
    """Lists of target tokens for each source token; None if a translation may have all tokens of the language."""
    source: str | tuple[Language, ...]
    target: str | tuple[Language, ...]
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put before a source, by name; what they ask for is no translation."""

    @property
    def sources(self) -> tuple[Language, ...]:
        """Languages that the model reads."""
        return _languages(self.source)

    @property
    def targets(self) -> tuple[Language, ...]:
        """Languages that the model writes."""
        return _languages(self.target)

    @property
    def has_source_embedding(self) -> bool:
        """Whether the encoder has an embedding of its own."""
        return self.d_encoder is not None or self.source_vocab_size is not None

    @model_validator(mode="after")
    def _positions_of_the_encoder_are_learned(self) -> Self:
        if self.encoder_positions and (self.has_source_embedding or self.positions != "learned"):
            raise ValueError("`encoder_positions` need learned `positions`, and one table of tokens for both sides")
        return self

    @model_validator(mode="after")
    def _heads_divide_the_encoder(self) -> Self:
        self._check_heads("d_encoder", self.encoder_layer.d_model)
        return self

    @property
    def encoder_layer(self) -> LayerConfig:
        """Settings of the encoder layers: those of the decoder, with the encoder's width and vocabulary."""
        options = {
            "d_model": self.d_encoder or self.d_model,
            "vocab_size": self.source_vocab_size or self.vocab_size,
        }
        return self.model_copy(update=options)


def _languages(given: str | tuple[Language, ...]) -> tuple[Language, ...]:
    return (Language(code=given),) if isinstance(given, str) else given


class RecurrentConfig(Strict):
    """A recurrent encoder-decoder, the Transformer's ancestor, without attention or with additive attention."""

    task: Literal["recurrent_translation"] = "recurrent_translation"
    vocab_size: PositiveInt
    d_model: PositiveInt = Field(multiple_of=2)
    """Width of the embedding and every state; each direction of the encoder has half of it."""
    cell: Cell = "gru"
    attention: Literal["none", "before_cell", "after_cell"] = "after_cell"
    """Additive attention: from the state before the cell, which also reads the context, or from its output."""
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
    disentangled: None = None
    local_attention: None = None
    n_decoder_layers: PositiveInt
    relative_positions: None = None


class ClassifierConfig(LayerConfig):
    """An encoder classifier; `labels` in the order of its logits."""

    task: Literal["classification"] = "classification"
    n_encoder_layers: PositiveInt
    labels: tuple[str, ...] = Field(min_length=1)
    label_activation: Literal["softmax", "sigmoid", "identity"] = "softmax"
    """How logits become scores: softmax over all labels, sigmoid for each, or not at all (identity)."""
    pairs: Literal["separated", "segments"] | None = None
    """How the model reads two texts at once: with special tokens between them (separated), and perhaps also with a
    vector that is added to each token of the second one (segments, as in BERT). None: it reads single texts only."""
    one_form: bool = False
    """Whether the tokenizer ignores differences of form: capitals, full-width letters, typographic marks. There are
    fewer word pieces then, each seen more often."""
    pooling: Pooling = "max"
    """Pooling over the logits of all tokens; or one state decides: that of the first token, or the mean of all."""
    pooler: Pooler | None = None
    """Activation of a dense layer between that state and the output."""
    pooler_norm: bool = False
    """Whether what the pooler gives is normalized."""

    @property
    def pools_states(self) -> bool:
        """Whether one state decides, so that no token has logits of its own."""
        return self.pooling in ("first", "mean_states")

    @model_validator(mode="after")
    def _pooler_reads_one_state(self) -> Self:
        if self.pooler is not None and not self.pools_states:
            raise ValueError(f"`pooler` requires `pooling: first` or `mean_states`, not {self.pooling}")
        return self


class DenseConfig(Strict):
    """A dense layer after the pooling of an embedding."""

    d_output: PositiveInt
    bias: bool = True
    activation: Literal["identity", "tanh"] = "identity"


class EmbedderConfig(LayerConfig):
    """An encoder of texts, whose pooled states are compared (Reimers and Gurevych 2019, "Sentence-BERT")."""

    task: Literal["embedding"] = "embedding"
    n_encoder_layers: PositiveInt
    pooling: tuple[TokenPooling, ...] = Field(default=("mean",), min_length=1)
    """Kinds of pooling, concatenated in this order."""
    dense: tuple[DenseConfig, ...] = ()
    normalize: bool = True
    """Whether embeddings have length 1 unless a request says otherwise."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put before an input, by name."""
    default_prompt: str | None = None
    pool_prompt: bool = True
    """Whether the tokens of a prompt are pooled too."""
    cut_to: tuple[PositiveInt, ...] = ()
    """Numbers of dimensions to which embeddings may be cut, as the model was trained for that (Kusupati et al. 2022,
    "Matryoshka Representation Learning")."""


ModelConfig = Annotated[
    TransformerConfig | RecurrentConfig | LanguageModelConfig | ClassifierConfig | EmbedderConfig,
    Field(discriminator="task"),
]


class Decoding(Strict):
    """Default search settings of a translator."""

    beam_size: PositiveInt = 4
    length_penalty: NonNegativeFloat = 1.0
    beam_threshold: NonNegativeFloat = 2.0
    stop: Stop = "empty"
    """When a beam search ends.

    A hypothesis that ends narrows the beam. The search ends when the beam is `empty`, as in Marian; or already when no
    live hypothesis is better, at its present length, than the best ended one (`no_better`).

    Or the beam keeps its width. The search ends when as many hypotheses have ended (`full`), as in CTranslate2; or
    when, too, no live one is better, at its present length, than the worst of these (`full_no_better`), as in
    transformers.
    """
    max_target_tokens: PositiveInt | None = None
    """Most target tokens with </s>; None is as many as there are positions."""


class Provenance(Strict):
    """Origin of an imported model."""

    source: str
    """Imported source: an id of the hub, or a file name."""
    family: str
    """Kind of model: MarianMT, BERT, ..."""
    revision: str | None = None
    """Commit of a hub's repository."""
    licence: str | None = None
    """Licence named by its owner; None if unknown."""
    imported: str | None = None
    """When it was imported (ISO 8601, UTC); None in models that were imported before this was recorded."""


class Config(Strict):
    """Name, limits and architecture of a model."""

    name: str
    description: str
    max_tokens: PositiveInt
    """Longest training text. Longer translation pairs were left out, longer reviews cut to their first and last tokens.
    The service reads at most this many tokens at once."""
    model: ModelConfig
    decoding: Decoding = Decoding()
    """Search settings of a translator."""
    provenance: Provenance | None = None
    """Origin of an imported model."""

    @model_validator(mode="after")
    def _the_longest_batch_has_positions(self) -> Self:
        padded, limit = bucket(self.max_tokens), self.model.max_positions
        if padded > limit:
            raise ValueError(
                f"`max_tokens` is {self.max_tokens}: a batch of such sequences is padded to {padded}, which must be at "
                f"most {limit}, `model.max_positions`"
            )
        return self


def load_config(directory: Path) -> Config:
    """Read and check the config.yaml of a model's directory. Raises ConfigError: the file is missing, or a value is
    wrong; the message names each key."""
    return load_yaml(directory / CONFIG, Config.model_validate, ConfigError)


def save_config(directory: Path, config: Config) -> None:
    """Write every value of a configuration, so that a changed default changes no model."""
    save_yaml(directory / CONFIG, config.model_dump(mode="json", include=set(Config.model_fields)))
