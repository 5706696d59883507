"""Answers of the native interface."""

import base64
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, PlainSerializer

from manifest.schema import AttentionKind, Decoding, Embedding, Limits, Manifest, ModelOrigin, Task
from service.base.contract import FinishReason
from service.schemas.requests import Encoding

Range = Annotated[tuple[int, int], Field(description="Start and end in characters (Unicode code points).")]


Score = Annotated[float, PlainSerializer(lambda score: float(f"{score:.6g}"), float, when_used="json")]
"""A number of which six significant digits are sent; more would be noise."""


class ShownToken(BaseModel):
    """A token or word, and the characters of the text that it covers, without the space before it."""

    token: str = Field(examples=["▁dog"])
    span: Range

    @classmethod
    def of(cls, token: tuple[str, int, int]) -> "ShownToken":
        return cls.model_construct(token=token[0], span=token[1:])


class AttentionMatrix(BaseModel):
    """One head of one layer, or the mean of its heads; every row sums to 1."""

    kind: AttentionKind
    layer: int
    head: int | Literal["mean"]
    rows: Literal["source", "target"] = Field(description="The list of tokens that attend, one for each row.")
    columns: Literal["source", "prefix"] = Field(description="The list of tokens that are attended to.")
    first_row: int = Field(description="Place of the first row's token in its list: a sentence is part of a text.")
    first_column: int
    shape: tuple[int, int]
    weights: list[list[float]] | str


class SourceAttention(BaseModel):
    """Attention matrices of an encoder."""

    source: list[ShownToken]
    matrices: list[AttentionMatrix]


class Attention(SourceAttention):
    """Attention matrices of a translation."""

    target: list[ShownToken]
    prefix: list[ShownToken] = Field(
        description="The token that the decoder had read last when it wrote each target token."
    )


class Links(BaseModel):
    source: list[ShownToken]
    target: list[ShownToken]
    pairs: str = Field(description="source-target, as in Pharaoh's format.", examples=["0-0 1-2"])
    spans: list[tuple[Range, Range]] = Field(description="The same pairs as characters of source and target.")


class Alignment(Links):
    """Links from target tokens to the source tokens that they translate, and the same for words."""

    words: Links


class TokenEvidence(ShownToken):
    contributions: dict[str, Score] = Field(description="What the logit of each label loses without the token.")


class Evidence(BaseModel):
    """Contribution of each token to the logits."""

    logits: dict[str, Score]
    tokens: list[TokenEvidence]


class Segment(BaseModel):
    """A part of a text that was translated on its own."""

    source: Range
    target: Range


class Alternative(BaseModel):
    """One translation of a text."""

    text: str
    score: Score = Field(description="Mean log-probability per target token; 0 where there is none.")
    finish_reason: FinishReason = Field(
        description="length: a sentence reached max_target_tokens; repetition: it went round in circles and was ended."
    )
    target_tokens: int = Field(description="Number of tokens, ends of sequence included.")
    probability: Score | None = Field(
        default=None,
        description="With `target_prefix` and `alternatives`: the probability of the first token behind the prefix, "
        "together with the tokens of the prefix's last word.",
    )


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    language: str = Field(examples=["fr"])
    confidence: float = Field(description="Probability of the language.", examples=[0.98])


class Pivot(BaseModel):
    """The language in between, and the two models that translate into it and from it."""

    language: str = Field(examples=["en"])
    models: tuple[str, str]


CheckKind = Literal["number", "name", "kept", "brackets", "quotes", "end", "repetition", "untranslated"]


class Check(BaseModel):
    """Something that a translation lost, or that looks wrong in it."""

    kind: CheckKind = Field(
        description="number, name: lost or changed. kept: a kept span that the model lost, put back by alignment. "
        "brackets, quotes: not as many as in the source. end: cut at max_target_tokens. repetition: words again and "
        "again. untranslated: the same as the source, or first without a word."
    )
    source: str = Field(description="The piece of the source.", examples=["$344.75"])
    mended: bool = Field(description="Whether the translation in the answer is right in this.")


class WordConfidence(BaseModel):
    """A word of a translation, and how sure the model was of it."""

    text: str
    span: Range
    probability: Score = Field(description="Product over the tokens of the word, with the end of its sentence.")


class MemoryMatch(BaseModel):
    """A stored translation."""

    source: str
    target: str
    similarity: float = Field(description="0 to 100, at which the text is the same, or different in kept spans only.")
    memory: str = Field(description="Id of its memory.")


class Translation(Alternative):
    """The best translation of a text."""

    source_tokens: int = Field(description="Number of tokens, ends of sequence included.")
    detected: DetectedLanguage | None = Field(
        default=None, description="The source language, if it was detected. A text without words has none."
    )
    model: str | None = Field(
        default=None, description="The model, if the source was detected and differs from the target."
    )
    pivot: Pivot | None = Field(default=None, description="In place of `model`, if two models translated.")
    alternatives: list[Alternative] | None = Field(
        default=None, description="The next best translations, if requested."
    )
    segments: list[Segment] | None = Field(
        default=None, description="The parts, if the text was translated in several."
    )
    attention: Attention | None = Field(default=None, description="If requested.")
    alignment: Alignment | None = Field(default=None, description="If requested.")
    checks: list[Check] | None = Field(default=None, description="If requested: what was lost or looks wrong.")
    confidence: Score | None = Field(
        default=None,
        description="If requested: the probability that the least sure sentence is translated well. Absent for a model "
        "that was not calibrated.",
        examples=[0.82],
    )
    words: list[WordConfidence] | None = Field(default=None, description="If `confidence` is requested.")
    memory: list[MemoryMatch] | None = Field(
        default=None, description="The stored translations in the answer, if `memory_id` has some."
    )
    matches: list[MemoryMatch] | None = Field(
        default=None, description="Stored translations of similar texts, the best first, if `memory_id` has some."
    )


class TranslationUsage(BaseModel):
    characters: int = Field(description="Characters of all texts.")
    source_tokens: int = Field(description="With a pivot, those of both models together.")
    target_tokens: int


class TranslateResponse(BaseModel):
    model: str | None = Field(
        default=None,
        description="The model. Absent if sources were detected, the source is the target, or two models translated.",
    )
    pivot: Pivot | None = Field(default=None, description="In place of `model`, if two models translated.")
    source: str = Field(description="auto: each translation has its detected language.")
    target: str
    translations: list[Translation] = Field(description="One per input text, in order.")
    usage: TranslationUsage


class StreamedPiece(BaseModel):
    """A part of a translation, sent as soon as it and those before it are done."""

    index: int = Field(description="Number of the text, from 0.")
    piece: str = Field(description="Text of the piece. Together the pieces of a text are its translation.")


class Reachable(BaseModel):
    """A language, and the languages into which it is translated."""

    language: str = Field(examples=["fr"])
    name: str = Field(description="English name.", examples=["French"])
    targets: list[str] = Field(description="Targets of one model.")
    through_pivot: list[str] = Field(description="Targets of two models together, through another language.")

    @property
    def all_targets(self) -> list[str]:
        """The targets of one model, then those of two."""
        return self.targets + self.through_pivot


class LanguagesResponse(BaseModel):
    languages: list[Reachable] = Field(description="All languages of the translators.")


class Detection(BaseModel):
    """Possible languages of a text."""

    languages: list[DetectedLanguage] = Field(
        description="Languages that translators here read, the most probable first; none for a text without words."
    )


class DetectResponse(BaseModel):
    detections: list[Detection] = Field(description="One per input text, in order.")


class Prediction(BaseModel):
    label: str
    score: Score = Field(description="Probability of the label; its logit if `label_activation` is identity.")
    scores: dict[str, Score] = Field(description="Score of every label, by falling score.")
    tokens: int
    truncated: bool | None = Field(default=None, description="Of a pair: whether tokens were cut off.")
    logits: dict[str, Score] | None = Field(default=None, description="If requested: the logit of every label.")
    attention: SourceAttention | None = Field(default=None, description="If requested.")
    evidence: Evidence | None = Field(default=None, description="If requested.")


class ClassificationUsage(BaseModel):
    tokens: int


class ClassifyResponse(BaseModel):
    model: str
    predictions: list[Prediction] = Field(description="One per input text, in order.")
    usage: ClassificationUsage


class Ranked(BaseModel):
    """A text, and how well it answers a query."""

    index: int = Field(description="Number of the text in the request, from 0.")
    score: Score = Field(description="From 0 to 1; with `raw_scores` the logit.")
    text: str | None = Field(default=None, description="If requested.")


class RerankResponse(BaseModel):
    """Texts in the order of their scores, the best one first, and the model that read them."""

    model: str
    ranked: list[Ranked]
    usage: ClassificationUsage


class TextEmbedding(BaseModel):
    """Embedding of a text."""

    embedding: list[float] | str
    attention: SourceAttention | None = Field(default=None, description="If requested.")


class TokenEmbeddings(BaseModel):
    """Embeddings of the tokens of a text."""

    tokens: list[ShownToken] = Field(description="Tokens that the model reads, ends of sequence included.")
    embeddings: list[list[float]] | str = Field(description="One row for each token.")
    attention: SourceAttention | None = Field(default=None, description="If requested.")


class EmbedUsage(BaseModel):
    tokens: int


class EmbedResponse(BaseModel):
    model: str
    embeddings: list[TextEmbedding | TokenEmbeddings] = Field(description="One per input text, in order.")
    dimensions: int = Field(description="Numbers in one embedding.")
    usage: EmbedUsage


LEAST_BLEU = {"good": 30.0, "fair": 20.0, "rough": 0.0}
"""What translations of a kind of text are called, from this BLEU on; docs/models.md explains it."""
KINDS = "kinds"
"""The key of a translator's evaluation with BLEU by kind of text."""


def expected(evaluation: dict[str, dict[str, float]]) -> dict[str, list[str]] | None:
    """Return kinds of text by what to expect of them, the best first; None if no kind was scored."""
    kinds: dict[str, list[str]] = {}
    for kind, bleu in sorted(evaluation.get(KINDS, {}).items(), key=lambda score: -score[1]):
        word = next(word for word, least in LEAST_BLEU.items() if bleu >= least)
        kinds.setdefault(word, []).append(kind.replace("_", " "))
    return kinds or None


UnnamedRequest = Literal["translate", "classify", "classify_pairs", "rerank", "embed"]
"""A kind of request that may name no model."""


class ModelCard(BaseModel):
    """Description of a model, from its manifest, and where it runs."""

    name: str
    task: Task
    sources: list[str] = Field(
        description="Languages that the model reads; it translates each into every other of `targets`."
    )
    targets: list[str]
    prompts: dict[str, str] | None = Field(
        default=None, description="Texts that `/translate` may put before a request's own, by name."
    )
    labels: list[str]
    label_activation: Literal["softmax", "sigmoid", "identity"] | None = Field(
        default=None,
        description="Of a classifier. sigmoid: labels do not exclude each other. identity: scores are logits.",
    )
    pairs: bool | None = Field(default=None, description="Of a classifier: whether it reads pairs of texts.")
    layers: dict[Literal["encoder", "decoder"], int] = Field(description="Number of attention layers.")
    attention: dict[AttentionKind, int] = Field(
        description="Number of layers that have matrices, by kind of attention."
    )
    heads: int = Field(description="Attention heads in one layer.")
    limits: Limits = Field(description="Limits of one sentence or window; longer texts are split, never cut off.")
    precision: Literal["fp32", "int8", "fp16"]
    provider: Literal["cpu", "cuda"]
    parameters: int | None = Field(default=None, description="Number of trained numbers; absent if it is not recorded.")
    small: bool = Field(
        description="Trained with attend, and of fewer than 50 million parameters: a larger model is usually better."
    )
    origin: ModelOrigin | None = Field(default=None, description="Of an imported model.")
    licence: str | None = Field(default=None, description="Licence that the owner of an imported model names.")
    decoding: Decoding | None = Field(default=None, description="Default options of a translation.")
    embedding: Embedding | None = Field(
        default=None, description="Of a sentence encoder: its pooling, and its prompts by name."
    )
    evaluation: dict[str, dict[str, float]] = Field(description="Test set -> metric -> score.")
    expect: dict[str, list[str]] | None = Field(
        default=None,
        description="What to expect by kind of text, where kinds were scored.",
        examples=[{"good": ["interface"], "rough": ["news"]}],
    )
    default_for: list[UnnamedRequest] = Field(
        description="Requests without `model` that this model answers. translate: in its directions that no model "
        "before it in the list has. classify_pairs: /classify with `text_pair`. embed: without `source`."
    )

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        provider: Literal["cpu", "cuda"],
        sources: Iterable[str],
        targets: Iterable[str],
        default_for: Iterable[UnnamedRequest],
    ) -> "ModelCard":
        dimensions = manifest.dimensions
        layers = {"encoder": dimensions.n_encoder_layers, "decoder": dimensions.n_decoder_layers}
        described = {
            "provider": provider,
            "small": manifest.is_small,
            "heads": dimensions.n_heads,
            "layers": {k: n for k, n in layers.items() if n},
            "attention": manifest.attention_layers,
            "sources": [*sources],
            "targets": [*targets],
            "default_for": [*default_for],
            "expect": expected(manifest.evaluation),
            "pairs": manifest.pairs if manifest.task == "classification" else None,
            "prompts": manifest.prompts or None,
        }
        return cls(**described, **manifest.model_dump(include=cls.model_fields.keys() - described.keys()))


class ModelsResponse(BaseModel):
    models: list[ModelCard] = Field(
        description="In the order in which they answer: of several models that can do what a request asks, the first."
    )


class Status(BaseModel):
    status: Literal["live", "ready"]


class Readiness(Status):
    proof_ages_s: dict[str, float] = Field(
        description="Seconds since the last forward pass of each loaded model that succeeded."
    )
    lost_devices: dict[str, str] | None = Field(
        default=None, description="Why GPUs take no requests, by their names; their requests go to the others."
    )


def encoded(numbers: NDArray[np.float32], encoding: Encoding) -> Any:
    """Encode numbers as nested lists, or as base64 of little-endian float32, row after row. Lists have seven decimals,
    as exact as float32 for numbers around 1, and half as long as all digits."""
    if encoding == "base64":
        return base64.b64encode(numbers.astype("<f4").tobytes()).decode()
    return np.round(numbers.astype(np.float64), 7).tolist()
