"""Requests and answers of DeepL's glossaries."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from service.dialects.deepl.fields import lower
from service.schemas.glossaries import Name
from service.schemas.sent import Sent

FORM_FIELD = re.compile(r"dictionaries\[([0-9]+)\](?:\.|\[)(\w+)\]?")
"""Names of fields by which forms send dictionaries: `dictionaries[0].entries` or `dictionaries[0][entries]`."""


class DeepLDictionary(Sent):
    source_lang: str = Field(examples=["en"])
    target_lang: str = Field(examples=["fr"])
    entries: str = Field(examples=["dog\tclebs"])
    entries_format: Annotated[Literal["tsv", "csv"], BeforeValidator(lower, json_schema_input_type=str)] = "tsv"


class DeepLGlossary(DeepLDictionary):
    name: Name = Field(examples=["Animals"])


class _WithDictionaries(Sent):
    @model_validator(mode="before")
    @classmethod
    def _of_form(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        dictionaries: dict[str, dict[str, Any]] = {}
        for name, content in value.items():
            if (match := FORM_FIELD.fullmatch(name)) is not None:
                dictionaries.setdefault(match[1], {})[match[2]] = content
        return {**value, "dictionaries": [*dictionaries.values()]} if dictionaries else value


class DeepLMultilingualGlossary(_WithDictionaries):
    name: Name = Field(examples=["Animals"])
    dictionaries: list[DeepLDictionary] = Field(min_length=1)


class DeepLGlossaryUpdate(_WithDictionaries):
    name: Name | None = None
    dictionaries: list[DeepLDictionary] = Field(default=[], description="Entries to add.")


class DeepLPair(BaseModel):
    source_lang: str
    target_lang: str


class DeepLPairs(BaseModel):
    supported_languages: list[DeepLPair]


class DeepLDictionaryInfo(DeepLPair):
    entry_count: int


class DeepLGlossaryInfo(DeepLDictionaryInfo):
    glossary_id: str
    name: str
    ready: Literal[True] = True
    creation_time: str


class DeepLGlossaryInfos(BaseModel):
    glossaries: list[DeepLGlossaryInfo]


class DeepLMultilingualGlossaryInfo(BaseModel):
    glossary_id: str
    name: str
    dictionaries: list[DeepLDictionaryInfo]
    creation_time: str


class DeepLMultilingualGlossaryInfos(BaseModel):
    glossaries: list[DeepLMultilingualGlossaryInfo]


class DeepLEntries(DeepLPair):
    entries: str
    entries_format: Literal["tsv"] = "tsv"


class DeepLDictionaries(BaseModel):
    dictionaries: list[DeepLEntries]
