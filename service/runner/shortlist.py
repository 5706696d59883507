"""Lexical shortlists: the tokens that a translation of each source may have. Only these are normalized and compared.

Each source has its own, so that an answer does not depend on its neighbours.

Legend: N sources, K tokens, V vocabularies of source and target.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.schema import Manifest
from service.base.contract import IntArray
from service.base.errors import ArtifactRefused
from service.runner.arrays import GraphArrays
from service.runner.provider import Provider
from service.runner.weights import Weights

FILLED_TO = 8
"""Marian fills a shortlist up to a multiple of it, with the first tokens that the list lacks."""
MIN_SIZE = 192
"""K is this times a power of two. ONNX Runtime sums the exponentials of K numbers in blocks of 3 or 4 registers; only
whole blocks have the same sum to the last bit, however many tokens of padding follow."""


class Shortlist:
    """The lists of an artifact. Raises ArtifactRefused: the weights have no such lists, or they do not fit the
    vocabularies."""

    def __init__(self, manifest: Manifest, weights: Weights) -> None:
        assert manifest.shortlist is not None
        dimensions = manifest.dimensions
        self._settings = manifest.shortlist
        self.pad = manifest.special_tokens.pad
        self._n_target = dimensions.target_vocab_size
        self._offsets: NDArray[Any] = weights.tensor("shortlist.offsets", np.dtype(np.int64), "the shortlist")
        self._tokens: NDArray[Any] = weights.tensor("shortlist.tokens", np.dtype(np.int32), "the shortlist")
        ends = self._offsets.tolist() if self._offsets.shape == (dimensions.vocab_size + 1,) else []
        is_sorted = ends == sorted(ends) and ends[:1] == [0] and ends[-1:] == [len(self._tokens)]
        if not is_sorted or not ((self._tokens >= 0) & (self._tokens < self._n_target)).all():
            raise ArtifactRefused(f"{manifest.name}: its shortlist does not fit its vocabularies")

    def of_source(self, source: list[int]) -> IntArray:
        """Return the tokens that a translation of a source may have, in order."""
        is_allowed = np.zeros(self._n_target, np.bool_)
        is_allowed[: self._settings.first] = True
        for token in set(source):
            is_allowed[self._tokens[self._offsets[token] : self._offsets[token + 1]]] = True
            if self._settings.own:
                is_allowed[token] = True
        missing = -int(np.count_nonzero(is_allowed)) % FILLED_TO
        is_allowed[np.flatnonzero(~is_allowed)[:missing]] = True
        return np.flatnonzero(is_allowed)


class PlacedShortlists:
    """The shortlists of the sources in places, where a step graph reads them.

    Each K has arrays of its own that stay where they are, since a captured graph has their addresses.

    Attributes:
        size: K; it changes with the longest list, and memory with it.
    """

    def __init__(self, shortlist: Shortlist, provider: Provider, n_places: int) -> None:
        self._shortlist, self._provider, self._n_places = shortlist, provider, n_places
        self._lists: dict[int, IntArray] = {}
        """The list of each place in use."""
        self._arrays: dict[int, GraphArrays] = {}
        self._is_uploaded = False
        self.size = 0

    def allow(self, places: Sequence[int], sources: list[list[int]], are_first: bool) -> None:
        """Set the sources in places. `are_first`: all other places are empty."""
        if are_first:
            self._lists.clear()
            self.size = 0
        for place, source in zip(places, sources, strict=True):
            self._lists[place] = self._shortlist.of_source(source)
        size = self.size or MIN_SIZE
        while size < max(len(self._lists[place]) for place in places):
            size *= 2
        if size != self.size:
            self.size, places = size, list(self._lists)
            if size not in self._arrays:
                self._arrays[size] = self._provider.arrays(allowed_tokens=(np.int64, (self._n_places, size)))
        for place in places:
            self._write(place)

    def move(self, source_place: int, target_place: int) -> None:
        """Copy the list of a source from one place to another."""
        self._lists[target_place] = self._lists[source_place]
        self._write(target_place)

    def bind(self, binding: Any, n_places: int) -> None:
        """Let a graph read the lists of the first places."""
        arrays = self._arrays[self.size]
        ((name, device, number, dtype, shape, address),) = arrays.bindings()
        binding.bind_input(name, device, number, dtype, (n_places, *shape[1:]), address)
        if not self._is_uploaded:
            arrays.upload()
            self._is_uploaded = True

    def _write(self, place: int) -> None:
        row, tokens = self._arrays[self.size]["allowed_tokens"][place], self._lists[place]
        row[: len(tokens)], row[len(tokens) :] = tokens, self._shortlist.pad
        self._is_uploaded = False
