"""Every request of every interface takes a null as a field that is left out."""

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

import service.server.app  # noqa: F401  It imports every interface.
from service.schemas.sent import Sent


def kinds(kind: type[Sent] = Sent) -> Iterator[type[Sent]]:
    for other in kind.__subclasses__():
        yield other
        yield from kinds(other)


def errors(kind: type[Sent], value: dict[str, None]) -> set[tuple[str, str]]:
    try:
        kind.model_validate(value)
    except ValidationError as error:
        return {(one["type"], str(one["loc"])) for one in error.errors()}
    return set()


KINDS = sorted({kind for kind in kinds() if kind.__module__.startswith("service.")}, key=str)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_null_is_a_field_that_is_left_out(kind: type[Sent]) -> None:
    nulls = dict.fromkeys(field.alias or name for name, field in kind.model_fields.items())
    assert errors(kind, nulls) == errors(kind, {})
    described = kind.model_json_schema()
    optional = described.get("properties", {}).keys() - {*described.get("required", ())}
    for field in map(described["properties"].get, optional):
        is_any = not field.keys() & {"type", "anyOf", "oneOf", "enum", "const", "$ref"}
        assert is_any or {"type": "null"} in field["anyOf"], field


def test_there_are_requests_of_all_interfaces() -> None:
    rooms = {kind.__module__.split(".")[2] for kind in KINDS if kind.__module__.startswith("service.dialects.")}
    assert len(rooms) >= 11
