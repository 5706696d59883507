"""A cache of searches. A sentence that was translated before, or is being translated, is not computed again.

On a CPU the answer to a sequence depends on nothing but the artifact, the tokens and the options of the search. The key
of an answer has these, whole, and the name of the caller: how fast an answer comes would otherwise tell a caller what
others have asked for.
"""

import asyncio
import marshal
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter

from service.base.contract import Answer
from service.base.errors import DeadlinePassed, WorkerEnded
from service.base.metrics import CacheMetrics
from service.engine.scheduler import BURST, Sequence
from service.engine.search import Search
from service.pool.pool import Admission, Compute

Alike = dict[bytes, list[Sequence[Search]]]
"""Sequences that have the same answer, by the key of that answer."""
ENTRY_BYTES = 170
"""Memory of an entry beside its key and its answer: its places in the dictionary, which grows by doubling."""
options_of = attrgetter(*(field.name for field in fields(Search) if field.name != "finished"))
"""Returns all options of a search."""


@dataclass(frozen=True, eq=False)
class Leader:
    """A sequence that is being computed now; other requests may wait for its answer.

    Attributes:
        n_sequences: number of sequences that the request computes together with it.
        background: whether they run in the background.
        done: gets the answer; None if the request failed or was cancelled, and the error if its worker has ended.
    """

    n_sequences: int
    background: bool
    done: "asyncio.Future[bytes | WorkerEnded | None]"

    def is_soon(self, n_sequences: int, background: bool) -> bool:
        """Whether a request of `n_sequences` may wait for this leader. A small request must not wait for a place at the
        end of a large request, or of a document: alone it would be answered earlier."""
        return self.n_sequences <= max(BURST, 2 * n_sequences) and (background or not self.background)


class SentenceCache:
    """The most recent answers, within a number of bytes, and the sequences that are being computed. All calls come from
    one event loop. `max_bytes` limits all answers with their keys; 0 keeps none."""

    def __init__(self, max_bytes: int, metrics: CacheMetrics) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self.metrics = metrics
        self.leaders: dict[bytes, Leader] = {}
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        """Return an answer, which now is the most recent; None if there is none."""
        if (answer := self._answers.get(key)) is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, and evict the least recent ones."""
        if key in self._answers or _size(key, answer) > self.max_bytes:
            return
        self._answers[key] = answer
        self.n_bytes += _size(key, answer)
        n_evicted = 0
        while self.n_bytes > self.max_bytes:
            self.n_bytes -= _size(*self._answers.popitem(last=False))
            n_evicted += 1
        self.metrics.holds(self.n_bytes, n_evicted)


def _size(key: bytes, answer: bytes) -> int:
    return sys.getsizeof(key) + sys.getsizeof(answer) + ENTRY_BYTES


class CachedSearches:
    """The part of a cache that belongs to one translator.

    Args:
        model: the name of the translator. The options of a search tell which of its engines runs it.
        artifact: the checksum of the artifact.
        clock: returns the time of deadlines.
    """

    def __init__(
        self, cache: SentenceCache, model: str, artifact: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache = cache
        self._names = model, artifact
        self._clock = clock

    async def run(
        self, sequences: list[Sequence[Search]], deadline: float, admission: Admission, compute: Compute[Search]
    ) -> Answer[Search]:
        """Find the output of each sequence: in the cache, or by waiting for a request that computes it, or by computing
        it. If the other request fails or is cancelled, this one computes. Raises DeadlinePassed: another request has
        not computed a sequence in time. Raises RequestError: what `compute` raises. Errors are not kept."""
        if admission.caller is None:
            return await compute(sequences, deadline, admission)
        alike: Alike = {}
        for sequence in sequences:
            alike.setdefault(self._key(sequence, admission.caller), []).append(sequence)
        queue_s = encode_s = decode_s = 0.0
        while alike:
            followed, led = self._divide(alike, len(sequences), admission.background)
            if led:
                answer = await self._lead(led, deadline, admission, compute)
                queue_s, encode_s, decode_s = queue_s + answer.queue_s, answer.encode_s, answer.decode_s
            began = self._clock()
            left = await self._follow(followed, alike, deadline) if followed else {}
            queue_s += self._clock() - began
            admission.accepted |= len(left) < len(alike)  # but not if others were refused, who came before
            alike = left
        return Answer([sequence.output for sequence in sequences], queue_s, encode_s, decode_s)

    def _key(self, sequence: Sequence[Search], caller: str) -> bytes:
        # Version 2 writes equal values as equal bytes; later versions do not.
        return marshal.dumps((*self._names, caller, sequence.source_ids, options_of(sequence.output)), 2)

    def _divide(self, alike: Alike, n_sequences: int, background: bool) -> tuple[dict[bytes, Leader], Alike]:
        """Take the answers that the cache has. Return the leaders to wait for, and the sequences to compute."""
        cache, n_hits = self._cache, 0
        followed: dict[bytes, Leader] = {}
        led: Alike = {}
        for key, group in alike.items():
            leader = cache.leaders.get(key)
            if (answer := cache.get(key)) is not None:
                n_hits += _fill(group, answer)
            elif leader is not None and leader.is_soon(n_sequences, background):
                followed[key] = leader
            else:
                led[key] = group
        cache.metrics.found("hit", n_hits)
        return followed, led

    async def _lead(
        self, led: Alike, deadline: float, admission: Admission, compute: Compute[Search]
    ) -> Answer[Search]:
        """Compute one sequence of each group. Requests that wait for it are told, also of a failure."""
        cache, event_loop = self._cache, asyncio.get_running_loop()
        leaders = {key: Leader(len(led), admission.background, event_loop.create_future()) for key in led}
        cache.leaders.update(leaders)
        cache.metrics.found("miss", len(led))
        n_joined = 0
        try:
            answer = await compute([group[0] for group in led.values()], deadline, admission)
            for key, (first, *others) in led.items():
                packed = pickle.dumps(first.output.best(), pickle.HIGHEST_PROTOCOL)
                cache.put(key, packed)
                leaders[key].done.set_result(packed)
                n_joined += _fill(others, packed)
        except WorkerEnded as error:
            for leader in leaders.values():
                leader.done.set_result(error)
            raise
        finally:
            for key, leader in leaders.items():
                if cache.leaders.get(key) is leader:  # a smaller request may lead now
                    del cache.leaders[key]
                if not leader.done.done():
                    leader.done.set_result(None)
        cache.metrics.found("joined", n_joined)
        return answer

    async def _follow(self, followed: dict[bytes, Leader], alike: Alike, deadline: float) -> Alike:
        """Wait for leaders. Return the sequences that they have not computed. Raises DeadlinePassed: they take too
        long. Raises WorkerEnded: the worker of a leader died."""
        left_s = max(0.0, deadline - self._clock())
        _, late = await asyncio.wait([leader.done for leader in followed.values()], timeout=left_s)
        if late:
            raise DeadlinePassed("The deadline passed while another request translated the same sentence")
        answers: dict[bytes, bytes | None] = {}
        for key, leader in followed.items():
            answer = leader.done.result()
            if isinstance(answer, WorkerEnded):  # the sentence may be to blame, and a second death disables the model
                raise answer
            answers[key] = answer
        n_joined = sum(_fill(alike[key], answer) for key, answer in answers.items() if answer is not None)
        self._cache.metrics.found("joined", n_joined)
        return {key: alike[key] for key, answer in answers.items() if answer is None}


def _fill(sequences: list[Sequence[Search]], answer: bytes) -> int:
    """Give each sequence an answer of its own. Return the number of sequences."""
    for sequence in sequences:
        sequence.output.finished = pickle.loads(answer)  # noqa: S301  pickled by this process
    return len(sequences)
