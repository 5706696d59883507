"""Validation of what others write, without an error for each item of a long list."""

from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema

COLLECTIONS = ("list", "dict", "set", "frozenset", "tuple")
"""Types of schemas that can stop at the first wrong item."""


def _stop_early(schema: Any) -> None:
    """Let each collection in a schema stop at its first wrong item."""
    if isinstance(schema, dict):
        if schema.get("type") in COLLECTIONS:
            schema["fail_fast"] = True
        for part in schema.values():
            _stop_early(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _stop_early(part)


class StopsEarly(BaseModel):
    """Base of models for bodies and files. Only the first wrong item of a list, or of an object with any keys, gets an
    error: a body of 1 MB may have half a million of them, and their errors would take 20 s and 400 MB."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _stop_early(handler.resolve_ref_schema(schema))
        return schema
