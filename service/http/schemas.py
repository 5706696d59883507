"""What goes in and out over HTTP."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from service.artifact import Decoding, Direction, Limits, Manifest
from service.batching.decoding import MAX_BEAM_SIZE, FinishReason
from service.http.numbers import Encoding
from service.text.tokens import Token


def _listed(value: object) -> object:
    if not isinstance(value, str | list):
        raise ValueError("must be a string or a list of strings")
    return [value] if isinstance(value, str) else value


def _readable(texts: list[str]) -> list[str]:
    for i, text in enumerate(texts):
        if not text:
            raise ValueError("must not be empty" if len(texts) == 1 else f"text {i} of {len(texts)} is empty")
        try:
            text.encode()
        except UnicodeEncodeError:
            which = "" if len(texts) == 1 else f"text {i} of {len(texts)} "
            raise ValueError(f"{which}has half of a surrogate pair, which is no character") from None
    return texts


MOST_FIELDS = 100
"""Of one object that a client sends; far more than there are."""

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    list[str],
    Field(min_length=1, fail_fast=True),
    AfterValidator(_readable),
    BeforeValidator(_listed, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]),
]
Kind = Literal["cross", "encoder", "decoder"]
Number = Annotated[int, Field(ge=0)]


def _numbered(*words: str) -> BeforeValidator:
    def check(value: object) -> object:
        is_list = isinstance(value, list) and value != [] and all(type(i) is int and i >= 0 for i in value)
        if not is_list and not (isinstance(value, str) and value in words):
            named = ", ".join(f'"{word}"' for word in words)
            raise ValueError(f"must be {named} or a list of numbers from 0 on")
        return value

    return BeforeValidator(check)


Layers = Annotated[Literal["all", "last"] | list[Number], _numbered("all", "last")]
Heads = Annotated[Literal["all", "mean"] | list[Number], _numbered("all", "mean")]


class _Input(BaseModel):
    """What a client sends. An object of a hundred thousand mistakes gets one error, not one for each."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"has {len(value)} fields, there are {len(cls.model_fields)}")
        return value


class AttentionSelection(_Input):
    """Which attention matrices to return, and how."""

    kinds: Annotated[list[Kind], Field(min_length=1, fail_fast=True)] | None = Field(
        default=None, description="encoder and decoder are self-attention; all that the model has."
    )
    layers: Layers = "all"
    heads: Heads = "all"
    encoding: Encoding = Field(default="json", description="base64: little-endian float32, row after row.")


def _selection(value: object) -> object:
    if value is True:
        return AttentionSelection()
    if value is False or value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("must be true, false or an object that selects kinds, layers, heads and encoding")
    return value


AttentionWish = Annotated[
    AttentionSelection | None, BeforeValidator(_selection, json_schema_input_type=bool | AttentionSelection)
]


class _Request(_Input):
    text: Texts = Field(description="One text or several; each is answered, in order.", examples=["A dog runs."])
    model: str | None = Field(
        default=None, min_length=1, description="A name from /models; needed only where several could serve."
    )
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until the request is given up with 504.")


class _AttendingRequest(_Request):
    attention: AttentionWish = Field(
        default=None, description="Return what was attended to; one further forward pass.", examples=[False]
    )


class TranslateRequest(_AttendingRequest):
    source: str | None = Field(
        default=None, min_length=1, description="Language code; needed only where several could serve.", examples=["en"]
    )
    target: str | None = Field(
        default=None, min_length=1, description="Language code; needed only where several could serve.", examples=["fr"]
    )
    beam_size: int | None = Field(
        default=None, ge=1, le=MAX_BEAM_SIZE, description="Width of the search; the model's own by default."
    )
    length_penalty: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Hypotheses rank by log-probability / tokens^this; the model's own by default.",
    )
    beam_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="A hypothesis is given up that is so many nats less probable than the best, or than the last one "
        "that is asked for; the model's own by default.",
    )
    alternatives: int = Field(
        default=0, ge=0, lt=MAX_BEAM_SIZE, description="Further translations of each text; fewer than beam_size."
    )
    max_target_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of one translated sentence; the model's limit by default."
    )
    split_sentences: bool = Field(default=True, description="False: each text is one sentence.")
    format: Literal["text", "html"] = Field(
        default="text", description="html: tags stay, and inline ones go where the aligned words went."
    )
    alignment: bool = Field(default=False, description="Return which words and tokens were made of which.")


class ClassifyRequest(_AttendingRequest):
    evidence: bool = Field(default=False, description="Return what each token contributed to each label's logit.")


class EmbedRequest(_Request):
    source: str | None = Field(
        default=None, min_length=1, description="Language code, which chooses among translators.", examples=["en"]
    )
    pooling: Literal["mean", "none"] = Field(
        default="mean", description="mean: one embedding for each text, over all its tokens. none: one for each token."
    )
    normalize: bool = Field(default=True, description="Scale each to length 1, so that a product is a cosine.")
    encoding: Encoding = Field(default="json", description="base64: little-endian float32, row after row.")


Range = Annotated[tuple[int, int], Field(description="Start and end in characters (Unicode code points).")]


class ShownToken(BaseModel):
    """A token or word, and the characters of the text that it covers, without the space before it."""

    token: str = Field(examples=["▁dog"])
    span: Range

    @classmethod
    def of(cls, token: Token) -> "ShownToken":
        return cls.model_construct(token=token.token, span=(token.start, token.end))


class AttentionMatrix(BaseModel):
    """One head of one layer, or the mean of its heads; every row sums to 1."""

    kind: Kind
    layer: int
    head: int | Literal["mean"]
    rows: Literal["source", "target"] = Field(description="Who attends: the list of tokens that the rows belong to.")
    columns: Literal["source", "prefix"] = Field(description="What is attended to.")
    first_row: int = Field(description="Place of the first row's token in its list: a sentence is part of a text.")
    first_column: int
    shape: tuple[int, int]
    weights: list[list[float]] | str


class ClassifierAttention(BaseModel):
    """What a classifier attended to."""

    source: list[ShownToken]
    matrices: list[AttentionMatrix]


class Attention(ClassifierAttention):
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
    contributions: dict[str, float] = Field(description="To the logit of each label.")


class Evidence(BaseModel):
    """What the logits are made of: the contributions of all tokens, and the bias."""

    pooling: Literal["mean", "max"]
    logits: dict[str, float]
    bias: dict[str, float]
    winners: dict[str, int] | None = Field(
        default=None, description="Max pooling: the token that decides each label's logit, the others contribute 0."
    )
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


class Translation(Alternative):
    """The best translation of a text."""

    source_tokens: int = Field(description="Ends of sequence included.")
    alternatives: list[Alternative] | None = Field(
        default=None, description="The next best, where they were asked for."
    )
    segments: list[Segment] | None = Field(default=None, description="Where the text was translated in several pieces.")
    attention: Attention | None = Field(default=None, description="Where it was asked for.")
    alignment: Alignment | None = Field(default=None, description="Where it was asked for.")


class TranslationUsage(BaseModel):
    source_tokens: int
    target_tokens: int


class TranslateResponse(BaseModel):
    model: str
    source: str
    target: str
    translations: list[Translation] = Field(description="One per input text, in order.")
    usage: TranslationUsage


class Prediction(BaseModel):
    label: str
    score: float = Field(description="Probability of the label.")
    scores: dict[str, float] = Field(description="Probability of every label, by falling score.")
    tokens: int
    attention: ClassifierAttention | None = Field(default=None, description="Where it was asked for.")
    evidence: Evidence | None = Field(default=None, description="Where it was asked for.")


class ClassificationUsage(BaseModel):
    tokens: int


class ClassifyResponse(BaseModel):
    model: str
    predictions: list[Prediction] = Field(description="One per input text, in order.")
    usage: ClassificationUsage


class TextEmbedding(BaseModel):
    """What the encoder makes of a text: the mean over its tokens."""

    embedding: list[float] | str


class TokenEmbeddings(BaseModel):
    """What the encoder makes of each token."""

    tokens: list[ShownToken] = Field(description="As the model reads them, ends of sequence included.")
    embeddings: list[list[float]] | str = Field(description="One row for each token.")


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
    task: Literal["translation", "classification"]
    directions: list[Direction]
    labels: list[str]
    layers: dict[Literal["encoder", "decoder"], int] = Field(description="Attention layers.")
    heads: int = Field(description="Attention heads of one layer.")
    limits: Limits = Field(description="Of one sentence or window; longer texts are split, never cut off.")
    precision: Literal["fp32", "int8", "fp16"]
    provider: Literal["cpu", "cuda"]
    decoding: Decoding | None = Field(default=None, description="Of a translation that asks for nothing else.")
    evaluation: dict[str, dict[str, float]] = Field(description="Test set -> metric -> score.")

    @classmethod
    def of(cls, manifest: Manifest, provider: Literal["cpu", "cuda"]) -> "ModelCard":
        dimensions = manifest.dimensions
        layers = {"encoder": dimensions.n_encoder_layers, "decoder": dimensions.n_decoder_layers}
        own = {"provider": provider, "heads": dimensions.n_heads, "layers": {k: n for k, n in layers.items() if n}}
        return cls(**own, **manifest.model_dump(include=cls.model_fields.keys() - own.keys()))


class ModelsResponse(BaseModel):
    models: list[ModelCard]


class Status(BaseModel):
    status: Literal["live", "ready"]


class FieldProblem(BaseModel):
    loc: list[str | int]
    msg: str


class Problem(BaseModel):
    """RFC 9457 problem details."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="One sentence.")
    request_id: str
    errors: list[FieldProblem] | None = Field(default=None, description="What is wrong with which field.")

    def body(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)
