"""manifest.json of an artifact: what a model is, what it needs, and which files it has."""

import math
from bisect import bisect_right
from pathlib import PureWindowsPath
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, model_validator

from manifest.layout import DENSE, GRAPHS, TOKENIZER, WEIGHTS
from manifest.stops_early import StopsEarly
from manifest.sums import FileSum

FORMAT_VERSION: Literal[9] = 9

SMALL_PARAMETERS = 50_000_000
"""A model with fewer parameters that was trained with attend is called small: better ones can be imported."""
MAX_BEAM_SIZE = 8
"""The widest beam that is served."""
MAX_CONFIDENCE_POINTS = 20
"""The most points of the map from a translation's score to its confidence."""
AttentionKind = Literal["cross", "encoder", "decoder"]

Precision = Literal["fp32", "int8", "fp16"]
Provider = Literal["cpu", "cuda"]
"""ONNX Runtime providers, which are also the folders of their graphs."""
Dtype = Literal["bool", "uint8", "int8", "int32", "int64", "float16", "float32"]

Pooling = Literal["max", "mean", "first", "mean_states"]
TokenPooling = Literal["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]

Stop = Literal["empty", "no_better", "full", "full_no_better"]
"""When a beam search ends; model/decoding/search.py describes each rule."""
DecoderSelf = Literal["attention", "ssru"]

Task = Literal["translation", "classification", "embedding"]

ANY_LANGUAGE = "mul"
"""Code (ISO 639) of sources in languages that the model is not told."""
NO_LANGUAGE = "und"
"""Target language of what is no translation: summaries, answers, whatever a model writes."""
Count = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]


class Section(StopsEarly):
    """Base class of sections: immutable, and without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dimensions(Section):
    d_model: Count
    d_encoder: Count | None = None
    """Width of the encoder; None if it is d_model."""
    n_heads: Count
    head_dim: Count
    d_ff: Count
    n_encoder_layers: Count
    n_decoder_layers: int = Field(ge=0)
    vocab_size: Count
    target_vocab_size: Count

    @property
    def d_states(self) -> int:
        """Width of the encoder's states."""
        return self.d_encoder or self.d_model


class SpecialTokens(Section):
    pad: TokenId
    unk: TokenId
    bos: TokenId
    eos: TokenId


class Language(Section):
    code: str = Field(min_length=1)
    """Code that the model uses, such as fr or fra_Latn."""
    source_prefix: tuple[TokenId, ...] = ()
    """Tokens before a source that is in this language, or is to be translated into it."""
    target_prefix: tuple[TokenId, ...] = ()
    """Tokens with which a target in this language begins."""


class Limits(Section):
    max_source_tokens: Count
    max_target_tokens: int = Field(ge=0)


class Decoding(Section):
    beam_size: int = Field(ge=1, le=MAX_BEAM_SIZE)
    length_penalty: float = Field(ge=0, allow_inf_nan=False)
    beam_threshold: float = Field(ge=0, allow_inf_nan=False)
    stop: Stop


class Embedding(Section):
    """How the states of a text's tokens become its embedding."""

    dimensions: Count
    pooling: tuple[TokenPooling, ...] = Field(min_length=1)
    normalize: bool
    prompts: dict[str, str]
    default_prompt: str | None = None
    pool_prompt: bool
    cut_to: tuple[Count, ...] = ()
    """Numbers of dimensions to which embeddings may be cut, as the model was trained for that."""


class AlignmentChoice(Section):
    """The cross-attention that tells best which source token a target token translates."""

    layer: int = Field(ge=0)
    heads: tuple[int, ...] = Field(min_length=1)
    next_row: bool
    """Whether the row counts in which the target token is read, instead of the row in which it is written."""


class Nearness(Section):
    """How near graphs are to the model in float32; `export` measured it."""

    precision: Precision = "fp32"
    float_layers: tuple[str, ...] = ()
    """Layers in float32 in spite of the precision."""
    same: float | None = None
    """Share of the same next tokens, or of the same labels."""
    difference: float | None = None
    """Mean difference of a classifier's probabilities."""
    cosine: float | None = None
    """Mean cosine between embeddings."""
    of: int
    """Number of answers that were compared."""

    @property
    def value(self) -> float:
        """The share or cosine: 1 for a model that answers the same; 0 for one that does not compute numbers."""
        value = self.cosine if self.same is None else self.same
        return value if value is not None and math.isfinite(value) else 0.0

    def line(self) -> str:
        """Return a sentence for people."""
        if self.cosine is not None:
            finding = f"mean cosine {self.cosine:.4f} to the embeddings of float32, over {self.of} texts"
        else:
            of_probabilities = "" if self.difference is None else f", probabilities differ by {self.difference:.4f}"
            what = "next tokens" if self.difference is None else "labels"
            finding = f"{100 * self.value:.1f} % of {self.of} {what} are those of float32{of_probabilities}"
        in_floats = f", {len(self.float_layers)} layers in float32" * bool(self.float_layers)
        return f"{self.precision}{in_floats}: {finding}"


class ModelOrigin(Section):
    """Where an imported model came from."""

    source: str
    """Id of the hub, or a file name."""
    revision: str | None = None
    imported: str | None = None
    """When it was imported (ISO 8601, UTC); None where that was not recorded."""


class Confidence(Section):
    """How probable a good translation is, by the mean log-probability of a sentence's tokens. Good is a chrF of 60 or
    more; model/evaluation/confidence.py measures it on test sets."""

    points: tuple[tuple[float, float], ...] = Field(min_length=1, max_length=MAX_CONFIDENCE_POINTS)
    """Scores, and the confidence at each. Both rise; between two points the confidence is linear."""
    error: float
    """Expected calibration error in percent, of sentences that the map was not fitted to."""
    sentences: Count
    """Number of sentences that were translated."""

    def of(self, score: float) -> float:
        """Return the confidence of a sentence with this score, from 0 to 1."""
        after = bisect_right(self.points, score, key=lambda point: point[0])
        (x0, y0), (x1, y1) = self.points[max(0, after - 1)], self.points[min(after, len(self.points) - 1)]
        return y0 if x0 == x1 or score <= x0 else y0 + (y1 - y0) * (score - x0) / (x1 - x0)

    @model_validator(mode="after")
    def _rises(self) -> "Confidence":
        values = [value for _, value in self.points]
        scores = [score for score, _ in self.points]
        if scores != sorted(set(scores)) or values != sorted(values) or not 0 <= values[0] <= values[-1] <= 1:
            raise ValueError("`points` must have rising scores, and confidences from 0 to 1 that never fall")
        return self


class ShortlistSettings(Section):
    """Which target tokens a translation may have: those in the lists of its source's tokens, which are tensors of the
    weights, and the first ones."""

    first: int = Field(ge=0)
    """Tokens below it are always allowed."""
    own: bool
    """Whether the tokens of the source are allowed too."""


class Manifest(Section):
    """The content of manifest.json; its fields are written in this order."""

    format_version: Literal[9] = FORMAT_VERSION
    name: str = Field(min_length=1)
    task: Task
    precision: Precision
    parameters: Count | None = None
    """Number of trained numbers; None in artifacts that were written before this was recorded."""
    origin: ModelOrigin | None = None
    """None if the model was trained with attend."""
    licence: str | None = None
    """Licence that the owner of an imported model names."""
    opset: int
    dimensions: Dimensions
    decoder_self: DecoderSelf = "attention"
    """How a translator's decoder reads the target tokens before: an SSRU has one state in place of keys and values."""
    special_tokens: SpecialTokens
    sources: tuple[Language, ...]
    """Languages that a translator reads; it translates each into every other language of `targets`."""
    targets: tuple[Language, ...]
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put before a source, by name; what they ask for is no translation."""
    labels: tuple[str, ...]
    label_activation: Literal["softmax", "sigmoid", "identity"] | None
    pairs: bool = False
    """Whether a classifier reads pairs of texts."""
    limits: Limits
    pooling: Pooling | None
    embedding: Embedding | None
    decoding: Decoding | None
    alignment: AlignmentChoice | None
    nearness: dict[Provider, Nearness] = Field(default_factory=dict)
    """By provider; empty if it was not measured."""
    slots: tuple[tuple[TokenId, TokenId], ...] = ()
    """Pairs of a source token and the target token that it becomes, the surest first."""
    shortlist: ShortlistSettings | None = None
    """None if a translation may have all tokens of its language."""
    evaluation: dict[str, dict[str, float]]
    confidence: Confidence | None = None
    """None if a translator's confidence was not measured."""
    files: dict[str, FileSum]
    """All files that are read; others in the directory are ignored."""
    graphs: dict[str, dict[Dtype, tuple[str, ...]]]
    """The tensors that each graph takes from the weights, by graph and by the type that the graph declares."""

    @property
    def is_small(self) -> bool:
        """Whether better models of its kind can usually be imported."""
        return self.origin is None and (self.parameters or SMALL_PARAMETERS) < SMALL_PARAMETERS

    @property
    def writes_no_language(self) -> bool:
        """Whether what a translator writes is no translation."""
        return [language.code for language in self.targets] == [NO_LANGUAGE]

    @property
    def providers(self) -> list[Provider]:
        """The providers that there are graphs for: all that the task needs, or none."""
        return [provider for provider in get_args(Provider) if any(g.startswith(f"{provider}/") for g in self.graphs)]

    @property
    def pools_states(self) -> bool:
        """Whether one state of a text decides its class, so that no token has logits of its own."""
        return self.pooling in ("first", "mean_states")

    @property
    def attention_layers(self) -> dict[AttentionKind, int]:
        """Number of layers that have matrices, by kind of attention."""
        depth: dict[AttentionKind, int] = {"encoder": self.dimensions.n_encoder_layers}
        if self.task == "translation":
            depth["cross"] = self.dimensions.n_decoder_layers
            if self.decoder_self == "attention":
                depth["decoder"] = self.dimensions.n_decoder_layers
        return depth

    @property
    def has_dense(self) -> bool:
        """Whether pooled states go through dense layers."""
        return f"cpu/{DENSE}" in self.graphs

    @model_validator(mode="after")
    def _fits_its_task(self) -> "Manifest":
        if self.task == "translation":
            wanted = {
                "sources": bool(self.sources),
                "targets": bool(self.targets),
                "decoding": self.decoding is not None,
                "alignment": self._alignment_exists(),
                "n_decoder_layers": self.dimensions.n_decoder_layers > 0,
                "max_target_tokens": self.limits.max_target_tokens > 0,
            }
        elif self.task == "classification":
            wanted = {
                "labels": bool(self.labels),
                "label_activation": self.label_activation is not None,
                "pooling": self.pooling is not None,
            }
        else:
            wanted = {"embedding": self.embedding is not None}
        missing = [name for name, given in wanted.items() if not given]
        needed = (*GRAPHS[self.task], DENSE) if self.has_dense else GRAPHS[self.task]
        graphs = [f"{provider}/{graph}" for provider in sorted({"cpu", *self.providers}) for graph in needed]
        missing += [f"graphs.{graph}" for graph in graphs if graph not in self.graphs]
        missing += [f"files.{file}" for file in (TOKENIZER, WEIGHTS, *graphs) if file not in self.files]
        if missing:
            raise ValueError(f"{self.task} needs {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _stays_in_its_directory(self) -> "Manifest":
        for file in self.files:
            if PureWindowsPath(file).anchor or ".." in PureWindowsPath(file).parts:
                raise ValueError(f"files.{file} is not in the artifact's directory")
        return self

    @model_validator(mode="after")
    def _has_its_special_tokens(self) -> "Manifest":
        size = max(self.dimensions.vocab_size, self.dimensions.target_vocab_size)
        for name, token_id in self.special_tokens.model_dump().items():
            if token_id >= size:
                raise ValueError(f"special_tokens.{name} is {token_id}, the vocabulary has {size:,} tokens")
        return self

    def _alignment_exists(self) -> bool:
        choice, dimensions = self.alignment, self.dimensions
        return (
            choice is not None
            and choice.layer < dimensions.n_decoder_layers
            and all(0 <= head < dimensions.n_heads for head in choice.heads)
        )
