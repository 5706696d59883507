"""Base of everything that clients send."""

from typing import Any

from pydantic import ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from manifest.stops_early import StopsEarly


class Sent(StopsEarly):
    """An object that a client sends. A null stands for an optional field that is left out: many clients write one."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        if isinstance(value, dict) and None in value.values():
            return {name: field for name, field in value.items() if field is not None}
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(schema)
        model = handler.resolve_ref_schema(described)
        for name in model.get("properties", {}).keys() - {*model.get("required", ())}:
            model["properties"][name] = _or_null(model["properties"][name])
        return described


class SentJson(Sent):
    """An object of which each value has the type that JSON gives it: none is converted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    """Return the description of an optional field, which may be null. A generator of clients takes no default of {}."""
    null = {"type": "null"}
    annotations: dict[str, Any] = {
        key: field[key] for key in ("title", "description", "default", "examples") if key in field
    }
    kinds = {key: value for key, value in field.items() if key not in annotations}
    if annotations.get("default") == {}:
        del annotations["default"]
    if not kinds or null in kinds.get("anyOf", ()):
        return field
    return {"anyOf": [*(kinds["anyOf"] if kinds.keys() == {"anyOf"} else [kinds]), null], **annotations}
