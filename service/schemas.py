"""What goes in and out over HTTP. What this version cannot do yet is refused here, and nowhere else."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from service.artifact import Decoding, Direction, Limits, Manifest
from service.decoding import MAX_BEAM_SIZE, FinishReason


def _listed(value: object) -> object:
    if not isinstance(value, str | list):
        raise ValueError("must be a string or a list of strings")
    return [value] if isinstance(value, str) else value


def _readable(texts: list[str]) -> list[str]:
    for i, text in enumerate(texts):
        if not text:
            raise ValueError("must not be empty" if len(texts) == 1 else f"text {i} of {len(texts)} is empty")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("has half of a surrogate pair, which is no character")
    return texts


def _refused(value: object) -> object:
    if value is not False:
        raise ValueError("is not available in this version; only false is")
    return value


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    list[str],
    Field(min_length=1),
    AfterValidator(_readable),
    BeforeValidator(_listed, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]),
]
NotYet = Annotated[Literal[False], BeforeValidator(_refused, json_schema_input_type=Literal[False])]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    text: Texts = Field(description="One text or several; each is answered, in order.", examples=["A dog runs."])
    model: str | None = Field(default=None, description="A name from /models; needed only where several could serve.")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until the request is given up with 504.")
    attention: NotYet = Field(default=False, description="Not available in this version.")


class TranslateRequest(_Request):
    source: str | None = Field(
        default=None, description="Language code; needed only where several could serve.", examples=["en"]
    )
    target: str | None = Field(
        default=None, description="Language code; needed only where several could serve.", examples=["fr"]
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
    alternatives: int = Field(
        default=0, ge=0, lt=MAX_BEAM_SIZE, description="Further translations of each text; fewer than beam_size."
    )
    max_target_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of one translated sentence; the model's limit by default."
    )
    split_sentences: bool = Field(default=True, description="False: each text is one sentence.")
    alignment: NotYet = Field(default=False, description="Not available in this version.")


class ClassifyRequest(_Request):
    evidence: NotYet = Field(default=False, description="Not available in this version.")


Range = Annotated[tuple[int, int], Field(description="Start and end in characters (Unicode code points).")]


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


class ClassificationUsage(BaseModel):
    tokens: int


class ClassifyResponse(BaseModel):
    model: str
    predictions: list[Prediction] = Field(description="One per input text, in order.")
    usage: ClassificationUsage


class ModelCard(BaseModel):
    """What a model's manifest says to its users, and where it runs."""

    name: str
    task: Literal["translation", "classification"]
    directions: list[Direction]
    labels: list[str]
    limits: Limits = Field(description="Of one sentence or window; longer texts are split, never cut off.")
    precision: Literal["fp32", "int8", "fp16"]
    provider: Literal["cpu", "cuda"]
    decoding: Decoding | None = Field(default=None, description="Of a translation that asks for nothing else.")
    evaluation: dict[str, dict[str, float]] = Field(description="Test set -> metric -> score.")

    @classmethod
    def of(cls, manifest: Manifest, provider: Literal["cpu", "cuda"]) -> "ModelCard":
        return cls(provider=provider, **manifest.model_dump(include=cls.model_fields.keys() - {"provider"}))


class ModelsResponse(BaseModel):
    models: list[ModelCard]


class Status(BaseModel):
    status: Literal["live", "ready"]


class Index(BaseModel):
    """Where to go from the root."""

    name: str
    docs: str
    models: str


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
