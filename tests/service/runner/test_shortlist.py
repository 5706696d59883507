"""Shortlists in places, compared with plain sets."""

from itertools import chain
from typing import Any, cast

import numpy as np
import pytest

from manifest.schema import Manifest, ShortlistSettings
from service.base.artifact import Artifact
from service.base.errors import ArtifactRefused
from service.runner import shortlist
from service.runner.provider import Provider
from service.runner.shortlist import PlacedShortlists, Shortlist
from service.runner.weights import Weights
from tests.service.tiny_artifacts import V

FIRST, PAD = 3, 0
LISTS: dict[int, list[int]] = {5: [7, 9], 6: [], 8: [9, 11, V - 1]}


class Tensors:
    """Weights that are arrays."""

    def __init__(self, **tensors: list[int]) -> None:
        self._tensors = tensors

    def tensor(self, name: str, dtype: Any, _graph: str) -> Any:
        return np.array(self._tensors[name.removeprefix("shortlist.")], dtype)


@pytest.fixture
def manifest(translator_artifact: Artifact) -> Manifest:
    return translator_artifact.manifest.model_copy(update={"shortlist": ShortlistSettings(first=FIRST, own=True)})


def weights(**changed: list[int]) -> Weights:
    of_token = [LISTS.get(token, []) for token in range(V)]
    offsets = np.cumsum([0, *map(len, of_token)]).tolist()
    return cast(Weights, Tensors(**{"offsets": offsets, "tokens": [*chain(*of_token)], **changed}))


def expected(source: list[int]) -> list[int]:
    """Return the union of the lists, filled up to a multiple of eight with the smallest ids."""
    allowed = {*range(FIRST), *source, *(token for one in source for token in LISTS.get(one, []))}
    rest = iter(token for token in range(V) if token not in allowed)
    while len(allowed) % 8:
        allowed = {*allowed, next(rest)}
    return sorted(allowed)


@pytest.mark.parametrize("source", [[5], [5, 8, 5], [6], [*range(10, 17)], [8, 6, 3]])
def test_a_list_has_what_the_tokens_of_its_source_list(manifest: Manifest, source: list[int]) -> None:
    assert Shortlist(manifest, weights()).of_source(source).tolist() == expected(source)


def test_lists_stay_with_their_sources_whatever_moves_or_grows(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph reads them at the address that was bound."""
    bound: list[tuple[Any, ...]] = []

    class Binding:
        def bind_input(self, *memory: Any) -> None:
            bound.append(memory)

    placed = PlacedShortlists(Shortlist(manifest, weights()), Provider("cpu", 1), 4)

    def read(n_places: int) -> list[list[int]]:
        placed.bind(Binding(), n_places)
        name, _, _, dtype, shape, address = bound[-1]
        assert (name, dtype, shape) == ("allowed_tokens", np.int64, (n_places, placed.size))
        size = n_places * placed.size
        numbers = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * size).from_address(address))
        return [row[row != PAD].tolist() for row in numbers.reshape(shape)]

    sources = {"a": [5], "b": [8, 5, 6]}
    without_pad = {name: [one for one in expected(source) if one != PAD] for name, source in sources.items()}
    monkeypatch.setattr(shortlist, "MIN_SIZE", 8)
    placed.allow([0], [[5]], are_first=True)
    assert (read(1), placed.size) == ([without_pad["a"]], 8)
    placed.allow([1, 2], [[8, 5, 6], [5]], are_first=False)
    assert (read(3), placed.size) == ([without_pad["a"], without_pad["b"], without_pad["a"]], 16)
    placed.move(1, 0)
    assert read(2) == [without_pad["b"], without_pad["b"]]
    placed.allow([0], [[5]], are_first=True)
    assert (read(1), placed.size) == ([without_pad["a"]], 8)


@pytest.mark.parametrize(
    "changed",
    [{"tokens": [7, 9, 9, 11, V]}, {"tokens": [7, 9, 9, 11]}, {"offsets": [0, 5]}, {"offsets": [*range(V), 2]}],
)
def test_lists_of_another_vocabulary_are_refused(manifest: Manifest, changed: dict[str, list[int]]) -> None:
    with pytest.raises(ArtifactRefused, match="its shortlist does not fit its vocabularies"):
        Shortlist(manifest, weights(**changed))
