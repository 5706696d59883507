"""Fields of requests."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from service.schemas.sent import Sent


def _refused(value: Any) -> Any:
    if value:
        raise ValueError("is not supported here")
    return value


def _list_of_texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Refused = Annotated[Any, AfterValidator(_refused)]
"""A field that may only be empty."""
Texts = Annotated[
    list[str], Field(min_length=1), BeforeValidator(_list_of_texts, json_schema_input_type=str | list[str])
]
"""A text or a list of texts."""


class CamelRequest(Sent):
    """Base of requests whose fields are named `likeThis`."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)
