"""The times of a request's parts, for the Server-Timing header."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from service.base.contract import Answer


class Phase(NamedTuple):
    """One phase of a request, on the clock of time.perf_counter."""

    name: str
    began: float
    ended: float


@dataclass
class Timing:
    """Seconds of each part; zero for a part that the request did not reach. `phases` receives each phase as it ends;
    None if nobody wants to know them."""

    queue_s: float = 0.0
    tokenize_s: float = 0.0
    encode_s: float = 0.0
    decode_s: float = 0.0
    attention_s: float = 0.0
    phases: list[Phase] | None = None

    @contextmanager
    def tokenizing(self) -> Iterator[None]:
        """Count the time inside as tokenization, from text to ids or back."""
        began = perf_counter()
        yield
        ended = perf_counter()
        self.tokenize_s += ended - began
        if self.phases is not None:
            self.phases.append(Phase("tokenize", began, ended))

    def ran(self, answer: Answer[Any]) -> None:
        """Add the times of an engine. A request may use it several times, one after the other."""
        self.queue_s += answer.queue_s
        self.encode_s += answer.encode_s
        self.decode_s += answer.decode_s
        if self.phases is not None:
            self._add_phases(answer, "encode")

    def attended(self, answer: Answer[Any]) -> None:
        """Add the times of an attention engine, its queue included."""
        self.attention_s += answer.queue_s + answer.encode_s
        if self.phases is not None:
            self._add_phases(answer, "attention")

    def header(self) -> str:
        """Return the header, in milliseconds (https://www.w3.org/TR/server-timing/)."""
        attention = f", attention;dur={self.attention_s * 1000:.2f}" if self.attention_s else ""
        return (
            f"queue;dur={self.queue_s * 1000:.2f}, tokenize;dur={self.tokenize_s * 1000:.2f}, "
            f"encode;dur={self.encode_s * 1000:.2f}, decode;dur={self.decode_s * 1000:.2f}{attention}"
        )

    def _add_phases(self, answer: Answer[Any], of_encoder: str) -> None:
        """Phases of an engine that has just answered follow one another: queue, encode and decode."""
        assert self.phases is not None, "the caller has seen it"
        seconds = {"queue": answer.queue_s, of_encoder: answer.encode_s, "decode": answer.decode_s}
        began = perf_counter() - sum(seconds.values())
        for name, duration in seconds.items():
            if duration > 0:
                self.phases.append(Phase(name, began, began + duration))
                began += duration
