"""The times of a request's parts, for the Server-Timing header."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from service.base.contract import Answer


@dataclass
class Timing:
    """Seconds of each part; zero for a part that the request did not reach."""

    queue_s: float = 0.0
    tokenize_s: float = 0.0
    encode_s: float = 0.0
    decode_s: float = 0.0
    attention_s: float = 0.0

    @contextmanager
    def tokenizing(self) -> Iterator[None]:
        """Count the time inside as tokenization, from text to ids or back."""
        began = perf_counter()
        yield
        self.tokenize_s += perf_counter() - began

    def ran(self, answer: Answer[Any]) -> None:
        """Add the times of an engine. A request may use it several times, one after the other."""
        self.queue_s += answer.queue_s
        self.encode_s += answer.encode_s
        self.decode_s += answer.decode_s

    def attended(self, answer: Answer[Any]) -> None:
        """Add the times of an attention engine, its queue included."""
        self.attention_s += answer.queue_s + answer.encode_s

    def header(self) -> str:
        """Return the header, in milliseconds (https://www.w3.org/TR/server-timing/)."""
        attention = f", attention;dur={self.attention_s * 1000:.2f}" if self.attention_s else ""
        return (
            f"queue;dur={self.queue_s * 1000:.2f}, tokenize;dur={self.tokenize_s * 1000:.2f}, "
            f"encode;dur={self.encode_s * 1000:.2f}, decode;dur={self.decode_s * 1000:.2f}{attention}"
        )
