"""The fields of DeepL's requests for a translation, of texts or of a document."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from service.dialects.shared.fields import Refused, Texts
from service.schemas.sent import Sent


def _listed(value: Any) -> Any:
    """Names may be sent as a list, with commas between them, or both."""
    parts = [value] if isinstance(value, str) else value
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return [name.strip() for part in parts for name in part.split(",") if name.strip()]
    return value


def lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _digit(value: Any) -> Any:
    return str(int(value)) if isinstance(value, bool | int) else value


Flag = Annotated[bool, BeforeValidator(lambda value: value, json_schema_input_type=bool | int | str)]
"""true or false. Forms have 0 and 1, and so has the JSON of some clients."""
Listed = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str])]
Formality = Annotated[
    Literal["default", "prefer_more", "prefer_less", "more", "less"], BeforeValidator(lower, json_schema_input_type=str)
]
Splitting = Annotated[Literal["0", "1", "nonewlines"], BeforeValidator(_digit, json_schema_input_type=str | int | bool)]


class DeepLFields(Sent):
    target_lang: str = Field(examples=["FR"])
    source_lang: str | None = Field(default=None, description="Without it, the language of each text is detected.")
    formality: Formality | None = Field(default=None, description="more and less are refused.")
    glossary_id: str | None = None
    glossary_ids: Listed = Field(default=[])
    style_id: Refused = Field(default=None, description="Refused.")
    translation_memory_id: str | None = None
    custom_instructions: Refused = Field(default=None, description="Refused.")


class DeepLTexts(DeepLFields):
    text: Texts = Field(examples=[["A dog runs."]])
    show_billed_characters: Flag | None = None
    split_sentences: Splitting | None = None
    tag_handling: Literal["html", "xml"] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = Field(
        default=None, description="v2 refuses XML that is not well-formed."
    )
    outline_detection: Flag | None = None
    splitting_tags: Listed = Field(default=[])
    non_splitting_tags: Listed = Field(default=[])
    ignore_tags: Listed = Field(default=[])
    preserve_formatting: Flag | None = Field(default=None, description="Has no effect.")
    context: Any = Field(default=None, description="Has no effect.")
    model_type: Literal["latency_optimized", "quality_optimized", "prefer_quality_optimized"] | None = Field(
        default=None, description="Has no effect."
    )
