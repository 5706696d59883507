"""Models whose collections have one error each."""

import pytest
from pydantic import ValidationError

from manifest.stops_early import StopsEarly


class Part(StopsEarly):
    type: str
    """A field that is called as a key of pydantic's schemas."""
    numbers: list[int]


class Whole(StopsEarly):
    parts: dict[str, Part]


def test_a_collection_has_one_error_wherever_it_is() -> None:
    part = {"type": "a", "numbers": ["b"] * 1000}
    with pytest.raises(ValidationError) as refusal:
        Whole.model_validate({"parts": {"c": part, "d": part}})
    assert [error["loc"] for error in refusal.value.errors()] == [("parts", "c", "numbers", 0)]
