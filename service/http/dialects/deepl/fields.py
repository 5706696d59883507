"""What DeepL's clients send for a translation, of texts or of a document."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator


def _listed(value: Any) -> Any:
    """Of names: a list, names with commas between them, or both."""
    parts = [value] if isinstance(value, str) else value
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return [name.strip() for part in parts for name in part.split(",") if name.strip()]
    return value


def _refused(_: Any) -> Any:
    raise ValueError("there are none here")


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _digit(value: Any) -> Any:
    return str(int(value)) if isinstance(value, bool | int) else value


def _one_listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Listed = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=str | list[str])]
Refused = Annotated[Any, AfterValidator(_refused)]
Code = Annotated[str, Field(max_length=100)]


class DeepLFields(BaseModel):
    """Fields without a value are as if they were not there: forms have such."""

    target_lang: Code = Field(examples=["FR"])
    source_lang: Code | None = Field(default=None, description="Detected for each text, if none is named.")
    formality: Annotated[Literal["default", "prefer_more", "prefer_less", "more", "less"], BeforeValidator(_lower)] = (
        Field(default="default", description="more and less are refused.")
    )
    glossary_id: str | None = None
    glossary_ids: Listed = []
    style_id: Refused = Field(default=None, description="Refused.")
    translation_memory_id: Refused = Field(default=None, description="Refused.")
    custom_instructions: Refused = Field(default=None, description="Refused.")

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, value: Any) -> Any:
        return {name: one for name, one in value.items() if one not in (None, "", []) or name == "text"}


class DeepLTexts(DeepLFields):
    text: Annotated[
        list[str], Field(min_length=1), BeforeValidator(_one_listed, json_schema_input_type=str | list[str])
    ] = Field(examples=[["A dog runs."]])
    show_billed_characters: bool = False
    split_sentences: Annotated[Literal["0", "1", "nonewlines"], BeforeValidator(_digit)] = "1"
    tag_handling: Literal["html", "xml"] | None = None
    tag_handling_version: Literal["v1", "v2"] = Field(
        default="v1", description="v2 refuses XML that is not well-formed."
    )
    outline_detection: bool = True
    splitting_tags: Listed = []
    non_splitting_tags: Listed = []
    ignore_tags: Listed = []
    preserve_formatting: bool = Field(default=False, description="Has no effect.")
    context: Any = Field(default=None, description="Has no effect.")
    model_type: Literal["latency_optimized", "quality_optimized", "prefer_quality_optimized"] | None = Field(
        default=None, description="Has no effect."
    )
