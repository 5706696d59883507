"""Requests of the native interface."""

import unicodedata
from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from manifest.schema import MAX_BEAM_SIZE, AttentionKind
from service.schemas.patterns import compiled
from service.schemas.sent import SentJson


def _listed(value: object) -> object:
    if not isinstance(value, str | list):
        raise ValueError("must be a string or a list of strings")
    if not value and isinstance(value, str):
        raise ValueError("must not be empty")
    return [value] if isinstance(value, str) else value


def _readable(texts: list[str]) -> list[str]:
    for i, text in enumerate(texts):
        valid_unicode(text, "" if len(texts) == 1 else f" (text number {i})")
    return texts


def _not_empty(texts: list[str]) -> list[str]:
    if "" in texts:
        n = texts.index("")
        raise ValueError("must not be empty" if len(texts) == 1 else f"must not have an empty text (number {n})")
    return _readable(texts)


def valid_unicode(text: str, where: str = "") -> str:
    """Return the text. Raises ValueError: it has half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"must not have half of a surrogate pair{where}") from None
    return text


MAX_FIELDS = 100
"""Most fields of one JSON object. No object of the interface has nearly so many."""
NonEmptyText = Annotated[str, Field(min_length=1)]
AnyTexts = Annotated[
    list[str],
    Field(min_length=1),
    AfterValidator(_readable),
    BeforeValidator(_listed, json_schema_input_type=NonEmptyText | Annotated[list[str], Field(min_length=1)]),
]
"""A text, or a list of texts, some of which may be empty."""
Texts = Annotated[
    list[str],
    Field(min_length=1),
    AfterValidator(_not_empty),
    BeforeValidator(_listed, json_schema_input_type=NonEmptyText | Annotated[list[NonEmptyText], Field(min_length=1)]),
]
Number = Annotated[int, Field(ge=0)]
Encoding = Literal["json", "base64"]
"""Encoding of arrays of numbers in answers."""
Format = Literal["text", "html", "markdown", "xml"]


def _term(term: str) -> str:
    if term.isspace():
        raise ValueError("must not be white space only")
    return _readable([term])[0]


WrittenText = Annotated[NonEmptyText, AfterValidator(_term)]
"""A text that is not only white space."""


def _pattern(pattern: str) -> str:
    compiled(_term(pattern))
    return pattern


def _numbered(*words: str) -> BeforeValidator:
    def check(value: object) -> object:
        is_list = isinstance(value, list) and value != [] and all(type(i) is int and i >= 0 for i in value)
        if not is_list and not (isinstance(value, str) and value in words):
            named = ", ".join(f'"{word}"' for word in words)
            raise ValueError(f"must be {named} or a list of numbers from 0")
        return value

    return BeforeValidator(check)


Numbers = Annotated[list[Number], Field(min_length=1)]
Layers = Annotated[Literal["all", "last"] | Numbers, _numbered("all", "last")]
Heads = Annotated[Literal["all", "mean"] | Numbers, _numbered("all", "mean")]


class Input(SentJson):
    """Base of requests. An object with far too many fields gets one error, not one for each field."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > MAX_FIELDS:
            raise ValueError(f"must have at most {len(cls.model_fields)} fields, not {len(value)}")
        return value


class AttentionSelection(Input):
    """Selection of attention matrices, and their encoding."""

    kinds: Annotated[list[AttentionKind], Field(min_length=1)] | None = Field(
        default=None, description="encoder and decoder are self-attention. By default all kinds of the model."
    )
    layers: Layers = Field(default="all", description="Numbers from 0, last or all.")
    heads: Heads = Field(default="all", description="Numbers from 0, mean or all.")
    encoding: Encoding = Field(default="json", description="base64: little-endian float32, row after row.")


def _selection(value: object) -> object:
    if value is True:
        return AttentionSelection()
    if value is False or value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("must be true, false or an object with kinds, layers, heads and encoding")
    return value


AttentionWish = Annotated[
    AttentionSelection | None, BeforeValidator(_selection, json_schema_input_type=bool | AttentionSelection)
]


class BaseRequest(Input):
    text: Texts = Field(description="One text or several; each is answered, in order.", examples=["A dog runs."])
    model: str | None = Field(
        default=None,
        min_length=1,
        description="A name from /models; by default the first translator for the languages. Needed where several "
        "classifiers or encoders could serve.",
    )
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until the request is given up with 504.")

    @property
    def all_texts(self) -> list[str]:
        """Every text that is read."""
        return self.text


class _AttendingRequest(BaseRequest):
    attention: AttentionWish = Field(
        default=None, description="Return attention matrices, which takes one more forward pass.", examples=[False]
    )


class _WithEmptyTexts(BaseRequest):
    text: AnyTexts = Field(
        description="One text or several; each is answered, in order. In a list an empty text stays empty.",
        examples=["A dog runs."],
    )


MAX_KEPT, MAX_PATTERNS, MAX_TERMS = 500, 20, 500
"""Limits of one request."""
Term = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_term)]


class KeepPattern(Input):
    """A regular expression whose matches stay unchanged."""

    pattern: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_pattern)] = Field(
        description="In RE2's syntax, without look-around and back-references.", examples=["[A-Z]{3}-[0-9]+"]
    )


def _few_patterns(keep: list[str | KeepPattern]) -> list[str | KeepPattern]:
    n_patterns = sum(isinstance(text, KeepPattern) for text in keep)
    if n_patterns > MAX_PATTERNS:
        raise ValueError(f"must have at most {MAX_PATTERNS} patterns, not {n_patterns}")
    return keep


Keep = Annotated[
    Annotated[Term, Tag("term")] | Annotated[KeepPattern, Tag("pattern")],
    Discriminator(lambda value: "term" if isinstance(value, str) else "pattern"),
]


MAX_NAMES = 100
Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=MAX_NAMES)]


class TagRules(Input):
    """Rules for elements of HTML and XML. XML names are case-sensitive."""

    keep: Names = Field(default=[], description="Elements that stay unchanged, with their content.")
    blocks: Names = Field(default=[], description="Elements that end a sentence before and after them.")
    inline: Names = Field(default=[], description="Elements that are parts of sentences and stay around their words.")
    detect: bool = Field(
        default=True,
        description="Whether other elements of XML are inline only if text is beside them, or beside an element around "
        "them. false: all are inline.",
    )


NO_RULES = TagRules()


class GlossaryTerm(Input):
    """The translation of a term, and how the term is found."""

    translation: Term = Field(description="What is written for the term.", examples=["clebs"])
    case_sensitive: bool = Field(
        default=False, description="Whether the term is found only as it is written: in these letters, not inflected."
    )


def kind_of_entry(value: object) -> str:
    return "text" if isinstance(value, str) else "term"


GlossaryEntry = Annotated[
    Annotated[Term, Tag("text")] | Annotated[GlossaryTerm, Tag("term")], Discriminator(kind_of_entry)
]


class TranslationOptions(Input):
    """Options of a translation, of texts and of documents."""

    source: str | None = Field(
        default=None,
        min_length=1,
        description="Language code. auto: detected for each text. Without it, the source is detected if several "
        "languages are translated into the target.",
        examples=["en", "auto"],
    )
    target: str | None = Field(
        default=None,
        min_length=1,
        description="Language code; required if several targets are possible.",
        examples=["fr"],
    )
    pivot: bool = Field(
        default=True,
        description="Whether two models may translate through a third language, if no model has the direction.",
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
        description="A hypothesis is dropped when it is so many nats less probable than the best one, or than the last "
        "requested alternative; the model's own by default.",
    )
    max_target_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of one translated sentence; the model's limit by default."
    )
    split_sentences: bool = Field(default=True, description="false: each text is one sentence.")
    keep: Annotated[list[Keep], Field(max_length=MAX_KEPT), AfterValidator(_few_patterns)] = Field(
        default_factory=list,  # pydantic copies a default, which takes as long as all the rest
        json_schema_extra={"default": []},
        description="Strings (whole words) and regular expressions that stay unchanged.",
        examples=[["Attend", {"pattern": "[A-Z]{3}-[0-9]+"}]],
    )
    glossary: Annotated[dict[Term, GlossaryEntry], Field(max_length=MAX_TERMS)] = Field(
        default_factory=dict,
        description="Terms of the source (whole words) and their translations, each a string or an object.",
        examples=[{"dog": "clebs"}],
    )
    glossary_id: str | None = Field(
        default=None,
        min_length=1,
        description="Id of a stored glossary from /glossaries, or several ids separated by commas. Terms of `glossary` "
        "come first.",
    )
    memory_id: str | None = Field(
        default=None,
        min_length=1,
        description="Id of a translation memory from /memories, or several ids separated by commas.",
    )
    memory_threshold: float = Field(
        default=75, ge=0, le=100, description="Least similarity of a stored translation that is listed in `matches`."
    )
    confidence: bool = Field(
        default=False,
        description="Return how sure the model is of each translation, and of each word of it. A document lists its "
        "least sure passages.",
    )
    case_sensitive: bool = Field(
        default=False,
        description="Whether all terms of glossaries are found only as they are written: in these letters, not "
        "inflected.",
    )


class DocumentOptions(Input):
    """Options of a document beside those of its translation. Kinds of files that have no use for one ignore it, except
    `fuzzy_below`."""

    only_missing: bool = Field(
        default=False, description="Translate only what the file has no translation for, if it can hold both languages."
    )
    columns: Names = Field(
        default=[],
        description="Columns of a table to translate, by name. en=fr: from the column en into the column fr.",
        examples=[["text"]],
    )
    fuzzy_below: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Mark only translations with less confidence as fuzzy, or for review. For kinds of files with such "
        "states, and models whose confidence is calibrated.",
        examples=[0.5],
    )


def _listed_prefixes(value: object) -> object:
    if not isinstance(value, str | list | None):
        raise ValueError("must be a string, or a list of strings and null")
    return [value] if isinstance(value, str) else value


def _prefix(prefix: str) -> str:
    controls = (c for c in valid_unicode(prefix) if unicodedata.category(c) == "Cc" and c not in "\t\n\r")
    if control := next(controls, ""):
        raise ValueError(f"must not have the control character {control!r}")
    return prefix


Prefix = Annotated[str, Field(max_length=10_000), AfterValidator(_prefix)]
PrefixesAsSent = Prefix | list[Prefix | None]


class TranslateRequest(_WithEmptyTexts, _AttendingRequest, TranslationOptions):
    format: Format = Field(
        default="text",
        description="html, xml, markdown: tags and marks stay, inline ones move with the aligned words, and code is "
        "not translated.",
    )
    tags: TagRules | None = Field(default=None, description="Rules for elements, if `format` is html or xml.")
    prompt: str | None = Field(
        default=None,
        min_length=1,
        description="Name of one of the model's prompts, which goes in front of each text. What comes back is no "
        "translation, so `source` and `target` are left out.",
        examples=["summarization"],
    )
    alternatives: int = Field(
        default=0,
        ge=0,
        lt=MAX_BEAM_SIZE,
        description="Number of further translations of each text; less than `beam_size`.",
    )
    target_prefix: Annotated[list[Prefix | None], BeforeValidator(_listed_prefixes, PrefixesAsSent)] | None = Field(
        default=None,
        description="The characters with which the translation begins, or a list with those of each text, null where "
        "there are none. A prefix may end inside a word. Alternatives differ in the first token behind it.",
        examples=["Un ch"],
    )
    alignment: bool = Field(default=False, description="Return the alignment of words and tokens.")
    checks: bool = Field(
        default=False, description="Return what each translation lost or has wrong, and whether that was mended."
    )

    @field_validator("target_prefix")
    @classmethod
    def _is_one_for_each_text(cls, prefixes: list[str | None] | None, info: ValidationInfo) -> list[str | None] | None:
        n_texts = len(info.data.get("text", ()))
        if prefixes is not None and "text" in info.data and len(prefixes) != n_texts:
            raise ValueError(f"must have as many prefixes as `text` has texts, {n_texts}, not {len(prefixes)}")
        return prefixes


class DetectRequest(_WithEmptyTexts):
    format: Format = Field(default="text", description="html, xml, markdown: tags, marks and code are not read.")


CutEnd = Literal["left", "right"]
"""The end at which a text is cut."""


class _PairOptions(Input):
    truncate: bool = Field(
        default=True, description="Cut pairs of texts that are too long, the longer text first. false: refuse them."
    )
    truncation_direction: Annotated[
        CutEnd, BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
    ] = Field(default="right", description="The end at which texts are cut.")


class ClassifyRequest(_AttendingRequest, _PairOptions):
    pair_fields: ClassVar[tuple[str, str]] = ("text", "text_pair")
    """The client's fields of both texts of a pair."""

    text_pair: Texts | None = Field(
        default=None,
        description="The second text of each pair, as many as `text`, for models that read pairs.",
        examples=[None],
    )
    logits: bool = Field(default=False, description="Return the logit of every label.")
    evidence: bool = Field(default=False, description="Return how much each label's logit loses without each token.")

    @field_validator("text_pair")
    @classmethod
    def _is_as_long(cls, pair: list[str] | None, info: ValidationInfo) -> list[str] | None:
        n_texts, n_pair = len(info.data.get("text", ())), len(pair or ())
        if "text" in info.data and pair is not None and n_pair != n_texts:
            raise ValueError(f"must have as many texts as `text`, {n_texts}, not {n_pair}")
        return pair

    @property
    def all_texts(self) -> list[str]:
        return [*self.text, *(self.text_pair or ())]


class _RankedPairs(ClassifyRequest):
    pair_fields: ClassVar[tuple[str, str]] = ("query", "texts")


class RerankRequest(_PairOptions):
    """As text-embeddings-inference has it, with `model`, `top_n` and `timeout_s`."""

    query: WrittenText = Field(description="A question, or what is looked for.", examples=["Which animals sleep?"])
    texts: Texts = Field(description="Texts to rank.", examples=[["Two cats sleep.", "A dog runs."]])
    model: str | None = Field(
        default=None, min_length=1, description="A name from /models; by default the only model that scores pairs."
    )
    raw_scores: bool = Field(default=False, description="Return logits as scores, instead of numbers from 0 to 1.")
    return_text: bool = Field(default=False, description="Return each text with its score.")
    top_n: int | None = Field(default=None, ge=1, description="Number of texts in the answer; all by default.")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until the request is given up with 504.")

    def as_pairs(self) -> ClassifyRequest:
        """Return the request to classify the query with each text."""
        options = self.model_dump(include={"model", "timeout_s", "truncate", "truncation_direction"})
        return _RankedPairs(text=[self.query] * len(self.texts), text_pair=self.texts, logits=True, **options)


class EmbedRequest(_AttendingRequest):
    source: str | None = Field(
        default=None, min_length=1, description="Language code; chooses among translators.", examples=["en"]
    )
    prompt: str | None = Field(
        default=None, min_length=1, description="Name of one of the model's prompts, which goes in front of each text."
    )
    pooling: Literal["mean", "none"] | None = Field(
        default=None,
        description="mean: one embedding for each text, over all its tokens. none: one for each token. By default the "
        "model's own pooling; for translators and classifiers the mean.",
    )
    normalize: bool | None = Field(
        default=None,
        description="Scale each embedding to length 1, so that a product is a cosine. By default as the model does; "
        "translators and classifiers do.",
    )
    dimensions: int | None = Field(
        default=None,
        ge=1,
        description="Return only so many numbers of each embedding, from its first one on. Only for models that were "
        "trained for that; `cut_to` in /models has the numbers.",
    )
    encoding: Encoding = Field(default="json", description="base64: little-endian float32, row after row.")
