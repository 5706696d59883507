"""vocabulary.json: the ids of pieces, if a model numbers them otherwise than its tokenizer does."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal


@dataclass(frozen=True)
class Vocabulary:
    """Ids of pieces.

    Args:
        source: ids of the pieces of a source.
        target: ids of the pieces of a target.
        unk: id of pieces without one.
    """

    source: Mapping[str, int]
    target: Mapping[str, int]
    unk: int

    @classmethod
    def parse(cls, content: bytes, unk: int) -> "Vocabulary":
        """Parse {"source": {piece: id}, "target": {piece: id}}; without target, both sides share one. Raises
        ValueError: the content is no JSON. Raises KeyError, TypeError: it has no `source`."""
        read = json.loads(content)
        return cls(read["source"], read.get("target", read["source"]), unk)

    def as_json(self) -> str:
        """Return the content of vocabulary.json."""
        content = {"source": self.source}
        if self.target != self.source:
            content["target"] = self.target
        return json.dumps(content, ensure_ascii=False) + "\n"

    @cached_property
    def pieces(self) -> dict[Literal["source", "target"], dict[int, str]]:
        """Pieces by their ids, for each side."""
        return {
            "source": {token_id: piece for piece, token_id in self.source.items()},
            "target": {token_id: piece for piece, token_id in self.target.items()},
        }

    def ids(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of the pieces of a source. Text unknown to the tokenizer is one piece, with its own text."""
        return [self.source.get(piece, self.unk) for piece in pieces]
