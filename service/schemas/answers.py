"""What clients get."""

import base64
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from service.base.artifact import Decoding, Embedding, Limits, Manifest, Task
from service.base.contract import AttentionKind, FinishReason
from service.schemas.requests import Encoding

Range = Annotated[tuple[int, int], Field(description="Start and end in characters (Unicode code points).")]


class ShownToken(BaseModel):
    """A token or word, and the characters of the text that it covers, without the space before it."""

    token: str = Field(examples=["▁dog"])
    span: Range

    @classmethod
    def of(cls, token: tuple[str, int, int]) -> "ShownToken":
        """Of a token, its start and its end."""
        return cls.model_construct(token=token[0], span=token[1:])


class AttentionMatrix(BaseModel):
    """One head of one layer, or the mean of its heads; every row sums to 1."""

    kind: AttentionKind
    layer: int
    head: int | Literal["mean"]
    rows: Literal["source", "target"] = Field(description="Who attends: the list of tokens that the rows belong to.")
    columns: Literal["source", "prefix"] = Field(description="What is attended to.")
    first_row: int = Field(description="Place of the first row's token in its list: a sentence is part of a text.")
    first_column: int
    shape: tuple[int, int]
    weights: list[list[float]] | str


class SourceAttention(BaseModel):
    """What an encoder attended to."""

    source: list[ShownToken]
    matrices: list[AttentionMatrix]


class Attention(SourceAttention):
    """What a translation attended to."""

    target: list[ShownToken]
    prefix: list[ShownToken] = Field(description="What the decoder had read when it wrote each target token.")


class Links(BaseModel):
    source: list[ShownToken]
    target: list[ShownToken]
    pairs: str = Field(description="source-target, as in Pharaoh's format.", examples=["0-0 1-2"])
    spans: list[tuple[Range, Range]] = Field(description="The same pairs as characters of source and target.")


class Alignment(Links):
    """The source token that each target token was made of, and the same of words."""

    words: Links


class TokenEvidence(ShownToken):
    contributions: dict[str, float] = Field(description="What the logit of each label loses without the token.")


class Evidence(BaseModel):
    """What the logits owe to each token."""

    logits: dict[str, float]
    tokens: list[TokenEvidence]


class Segment(BaseModel):
    """One piece that was translated on its own."""

    source: Range
    target: Range


class Alternative(BaseModel):
    """One translation of a text."""

    text: str
    score: float = Field(description="Mean log-probability per target token; 0 where there is none.")
    finish_reason: FinishReason = Field(
        description="length: a sentence reached max_target_tokens; repetition: it went round in circles and was ended."
    )
    target_tokens: int = Field(description="Ends of sequence included.")


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    language: str = Field(examples=["fr"])
    confidence: float = Field(description="Probability of the language.", examples=[0.98])


class Pivot(BaseModel):
    """A language in between, and the two models that translate into it and from it."""

    language: str = Field(examples=["en"])
    models: tuple[str, str]


class Translation(Alternative):
    """The best translation of a text."""

    source_tokens: int = Field(description="Ends of sequence included.")
    detected: DetectedLanguage | None = Field(
        default=None, description="The source, where it was detected. A text without words has none."
    )
    model: str | None = Field(
        default=None, description="Which translated, where the source was detected and is not the target."
    )
    pivot: Pivot | None = Field(default=None, description="In place of a model, where two translated.")
    alternatives: list[Alternative] | None = Field(
        default=None, description="The next best, where they were asked for."
    )
    segments: list[Segment] | None = Field(default=None, description="Where the text was translated in several pieces.")
    attention: Attention | None = Field(default=None, description="Where it was asked for.")
    alignment: Alignment | None = Field(default=None, description="Where it was asked for.")


class TranslationUsage(BaseModel):
    characters: int = Field(description="Of the texts.")
    source_tokens: int = Field(description="With a pivot those of both models together.")
    target_tokens: int


class TranslateResponse(BaseModel):
    model: str | None = Field(
        default=None,
        description="Which translated. None where sources were detected, the source is the target, or two did.",
    )
    pivot: Pivot | None = Field(default=None, description="In place of a model, where two translated.")
    source: str = Field(description="auto: detected, and told of each text.")
    target: str
    translations: list[Translation] = Field(description="One per input text, in order.")
    usage: TranslationUsage


class StreamedPiece(BaseModel):
    """A part of a translation, told as soon as it and those before it are done."""

    index: int = Field(description="Of the text.")
    piece: str = Field(description="The pieces of a text make its translation.")


class Reachable(BaseModel):
    """Languages into which one is translated."""

    language: str = Field(examples=["fr"])
    name: str = Field(description="In English.", examples=["French"])
    targets: list[str] = Field(description="By one model.")
    through_pivot: list[str] = Field(description="By two models, through another language.")


class LanguagesResponse(BaseModel):
    languages: list[Reachable] = Field(description="Those that are translated from or into.")


class Detection(BaseModel):
    """What the language of a text may be."""

    languages: list[DetectedLanguage] = Field(
        description="Of those that translators here read, the most probable first; none where there are no words."
    )


class DetectResponse(BaseModel):
    detections: list[Detection] = Field(description="One per input text, in order.")


class Prediction(BaseModel):
    label: str
    score: float = Field(description="Probability of the label.")
    scores: dict[str, float] = Field(description="Probability of every label, by falling score.")
    tokens: int
    attention: SourceAttention | None = Field(default=None, description="Where it was asked for.")
    evidence: Evidence | None = Field(default=None, description="Where it was asked for.")


class ClassificationUsage(BaseModel):
    tokens: int


class ClassifyResponse(BaseModel):
    model: str
    predictions: list[Prediction] = Field(description="One per input text, in order.")
    usage: ClassificationUsage


class TextEmbedding(BaseModel):
    """What the model makes of a text, or the mean of what its encoder makes of its tokens."""

    embedding: list[float] | str
    attention: SourceAttention | None = Field(default=None, description="Where it was asked for.")


class TokenEmbeddings(BaseModel):
    """What the encoder makes of each token."""

    tokens: list[ShownToken] = Field(description="As the model reads them, ends of sequence included.")
    embeddings: list[list[float]] | str = Field(description="One row for each token.")
    attention: SourceAttention | None = Field(default=None, description="Where it was asked for.")


class EmbedUsage(BaseModel):
    tokens: int


class EmbedResponse(BaseModel):
    model: str
    embeddings: list[TextEmbedding | TokenEmbeddings] = Field(description="One per input text, in order.")
    dimensions: int = Field(description="Of one embedding.")
    usage: EmbedUsage


class ModelCard(BaseModel):
    """What a model's manifest says to its users, and where it runs."""

    name: str
    task: Task
    sources: list[str] = Field(description="Languages that it reads; each is translated into every other of targets.")
    targets: list[str]
    labels: list[str]
    label_activation: Literal["softmax", "sigmoid"] | None = Field(
        default=None, description="sigmoid: each label is true or not by itself. Of a classifier."
    )
    layers: dict[Literal["encoder", "decoder"], int] = Field(description="Attention layers.")
    heads: int = Field(description="Attention heads of one layer.")
    limits: Limits = Field(description="Of one sentence or window; longer texts are split, never cut off.")
    precision: Literal["fp32", "int8", "fp16"]
    provider: Literal["cpu", "cuda"]
    decoding: Decoding | None = Field(default=None, description="Of a translation that asks for nothing else.")
    embedding: Embedding | None = Field(
        default=None, description="Of a model that was made for embeddings: how it pools, and its prompts by name."
    )
    evaluation: dict[str, dict[str, float]] = Field(description="Test set -> metric -> score.")

    @classmethod
    def of(
        cls, manifest: Manifest, provider: Literal["cpu", "cuda"], sources: Iterable[str], targets: Iterable[str]
    ) -> "ModelCard":
        dimensions = manifest.dimensions
        layers = {"encoder": dimensions.n_encoder_layers, "decoder": dimensions.n_decoder_layers}
        own = {
            "provider": provider,
            "heads": dimensions.n_heads,
            "layers": {k: n for k, n in layers.items() if n},
            "sources": [*sources],
            "targets": [*targets],
        }
        return cls(**own, **manifest.model_dump(include=cls.model_fields.keys() - own.keys()))


class ModelsResponse(BaseModel):
    models: list[ModelCard]


class Status(BaseModel):
    status: Literal["live", "ready"]


def encoded(numbers: NDArray[np.float32], encoding: Encoding) -> Any:
    """Nested lists, or little-endian float32, row after row, in base64.

    For numbers around 1 seven decimals are as exact as float32; all its digits would be twice as long.
    """
    if encoding == "base64":
        return base64.b64encode(numbers.astype("<f4").tobytes()).decode()
    return np.round(numbers.astype(np.float64), 7).tolist()
