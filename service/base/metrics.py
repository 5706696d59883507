"""Prometheus metrics. Each app has a registry of its own. No label carries a client's identity, except the names of
some keys."""

import os
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from service import __version__
from service.base.contract import Event, kind_of
from service.base.counts import PHASES, ROWS, SECONDS, EngineCounts, Observations, add_up
from service.base.errors import Broken, Draining, NotStored, QueueFull, Starting
from service.base.memory import Footprint

# Without this, every series has a second one with the time of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]

TASKS = {"greedy": "translation", "beam": "translation"}
"""The tasks of engines whose kind is not the name of a task."""
REJECTED = tuple(error.code for error in (QueueFull, Starting, Draining, Broken, NotStored))
CANCELLED = ("client_gone", "deadline", Draining.code, Broken.code)
"""Every reason counts from 0: a series that begins with 1 would hide the first from `increase()`."""
FOUND = ("hit", "joined", "miss")
"""Results of a look into the cache: an answer, another sentence that is being computed, or nothing."""
SHARED_KINDS, SHARED_BYTES = ("counter", "gauge_livesum", "histogram"), 1 << 20
"""The kinds of files in which each of several servers counts, and their size, which is enough for every route and
status."""
MAX_KEYS, OTHER_KEYS = 100, "other"
"""Most names of keys in labels, and the label of all other keys."""
MAX_UNCOUNTED = 4096
"""Most events that are kept until somebody reads the metrics."""


class Metrics:
    """Every counter and histogram of the service; `watch` adds the gauges, which are read when scraped. `place` is the
    number of this server among several, which count together in the folder that PROMETHEUS_MULTIPROC_DIR names. A
    server that replaces another goes on counting in its files."""

    MEDIA_TYPE = CONTENT_TYPE_LATEST

    def __init__(self, place: int | None = None) -> None:
        self._shared = place is not None
        if place is not None:
            _reserve(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), place)
            values.ValueClass = values.MultiProcessValue(lambda: place)  # type: ignore[no-untyped-call]
        self._collectors: list[Collector] = []
        self._of_task: dict[str, TaskMetrics] = {}
        self._of_engine: dict[str, TaskMetrics] = {}
        self._uncounted: deque[tuple[str, Event]] = deque()
        self.registry = registry = CollectorRegistry()
        self.registry.register(_Collected(self._count_first))
        counter, histogram = partial(Counter, registry=registry), partial(_Histogram, registry=registry)
        self.requests = counter("attend_requests", "Requests answered.", ["dialect", "route", "status"])
        self.request_seconds = histogram(
            "attend_request_seconds", "Whole requests.", ["dialect", "route"], buckets=SECONDS
        )
        # Looking up labels takes longer than counting, so they are looked up once.
        self._requests = cache(self.requests.labels)
        self._request_seconds = cache(self.request_seconds.labels)
        self.queue_seconds = histogram(
            "attend_queue_seconds", "Requests from submitted to admitted.", ["task"], buckets=SECONDS
        )
        self.inference_seconds = histogram(
            "attend_inference_seconds", "Forward passes.", ["task", "phase"], buckets=SECONDS
        )
        self.characters = counter("attend_characters", "Characters of texts that were translated.")
        self.tokens = counter("attend_tokens", "Tokens read and written.", ["task", "side"])
        self.padding_tokens = counter("attend_padding_tokens", "Padding read beside source tokens.", ["task"])
        self.decode_steps = counter("attend_decode_steps", "Decoder steps.")
        self.batch_rows = histogram("attend_batch_rows", "Rows of one forward pass.", ["task"], buckets=ROWS)
        self.cancelled = counter("attend_cancelled", "Requests accepted, then given up.", ["task", "reason"])
        self.rejected = counter("attend_rejected", "Requests refused before they were queued.", ["task", "reason"])
        self.connections = Gauge(
            "attend_connections", "Connections that are open.", registry=registry, multiprocess_mode="livesum"
        )
        self.live_sockets = Gauge(
            "attend_live_sockets", "WebSockets that are open.", registry=registry, multiprocess_mode="livesum"
        )
        self.connections_closed = counter("attend_connections_closed", "Connections closed by the service.", ["reason"])
        for reason in ("head_timeout", "send_timeout", "limit"):
            self.connections_closed.labels(reason)
        self.key_requests = counter("attend_key_requests", "Requests by the name of their key.", ["key"])
        self.key_characters = counter("attend_key_characters", "Characters of texts by the name of their key.", ["key"])
        self._keys: set[str] = set()
        self.rates_without_store = counter(
            "attend_rates_without_store", "Requests counted without the rate store, which failed."
        )
        self.database_failures = counter("attend_database_failures", "Reads and writes that the database could not do.")
        self.workers_ended = counter("attend_workers_ended", "Workers that ended and were replaced.", ["how"])
        for how in ("SIGKILL", "SIGSEGV", "SIGBUS", "SIGABRT", "exit 1"):
            self.workers_ended.labels(how)
        self.cache = CacheMetrics(registry)
        self._collect(_build_info)

    def expect(self, dialect: str, route: str) -> None:
        """Start the counters of a route at 0, so that `increase()` sees its first request and first failure."""
        self._requests(dialect, route, 200)
        self._requests(dialect, route, 500)

    def answered(self, dialect: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request and its time."""
        self._requests(dialect, route, status).inc()
        self._request_seconds(dialect, route).observe(seconds)

    def asked(self, key: str, n_characters: int) -> None:
        """Count a request of a key by its name, and the characters that it used."""
        if len(self._keys) < MAX_KEYS:
            self._keys.add(key)
        label = key if key in self._keys else OTHER_KEYS
        self.key_requests.labels(label).inc()
        self.key_characters.labels(label).inc(n_characters)

    def worker_ended(self, how: str) -> None:
        """Count a worker that has ended, by signal or status."""
        self.workers_ended.labels(how).inc()

    def of_task(self, task: str) -> "TaskMetrics":
        """Return the metrics of one task."""
        if task not in self._of_task:
            self._of_task[task] = TaskMetrics(self, task)
        return self._of_task[task]

    def count(self, engine: str, event: Event) -> None:
        """Count an event of the engine MODEL/KIND, from any thread. It is added up with others when it is read."""
        self._uncounted.append((engine, event))
        if len(self._uncounted) >= MAX_UNCOUNTED:
            self._count()

    def add(self, engine: str, counts: EngineCounts) -> None:
        """Count what the engine MODEL/KIND did."""
        if engine not in self._of_engine:
            kind = kind_of(engine)
            self._of_engine[engine] = self.of_task(TASKS.get(kind, kind))
        self._of_engine[engine].add(counts)

    def watch(
        self,
        states: Callable[[], Iterable["ModelState"]],
        is_ready: Callable[[], bool],
        devices: Callable[[], Mapping[str, str | None]] = dict,
    ) -> None:
        """Add the gauges, which call these functions at every scrape."""
        self._collect(partial(_gauges, states, is_ready, devices))
        # The processes of all servers have the supervisor above them.
        self._collect(partial(_memory, Footprint(os.getppid() if self._shared else os.getpid())))

    def n_characters(self) -> int:
        """Return how many characters all servers together have translated since the start."""
        return int(self._whole().get_sample_value("attend_characters_total") or 0)

    def render(self) -> bytes:
        """Return the metrics of all servers together in the Prometheus text format."""
        registry = self._whole()
        if registry is not self.registry:
            for collector in self._collectors:
                registry.register(collector)
        return generate_latest(registry)

    def _count_first(self) -> Iterable[Metric]:
        """The first collector of a registry has no metrics: it is called before the others are read."""
        self._count()
        return ()

    def _count(self) -> None:
        for engine, counts in add_up(self._uncounted).items():
            self.add(engine, counts)

    def _whole(self) -> CollectorRegistry:
        """Return a registry with the sums over all servers."""
        self._count()
        if not self._shared:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry

    def _collect(self, metrics: Callable[[], Iterable[Metric]]) -> None:
        """Metrics that every server reports alike are not summed."""
        self._collectors.append(_Collected(metrics))
        self.registry.register(self._collectors[-1])


def forget_gauges(folder: Path, place: int) -> None:
    """Keep the counts of a server that has ended, but not its gauges."""
    mark_process_dead(place, str(folder))  # type: ignore[no-untyped-call]


def _reserve(folder: Path, place: int) -> None:
    """Fill the files that prometheus_client maps. It would leave holes in them, and a process that counts in a hole
    dies when the disk is full. Raises OSError: the disk is full."""
    for kind in SHARED_KINDS:
        with (folder / f"{kind}_{place}.db").open("ab") as file:  # append: a former server may have counted in it
            file.write(bytes(max(0, SHARED_BYTES - file.tell())))


class TaskMetrics:
    """Metrics of one task: the work of its engines, and requests that were refused or given up."""

    def __init__(self, metrics: Metrics, task: str) -> None:
        self._decode_steps = metrics.decode_steps
        self._queue_seconds = metrics.queue_seconds.labels(task)
        self._inference_seconds = {phase: metrics.inference_seconds.labels(task, phase) for phase in PHASES}
        self._source_tokens = metrics.tokens.labels(task, "source")
        self._target_tokens = metrics.tokens.labels(task, "target")
        self._padding_tokens = metrics.padding_tokens.labels(task)
        self._batch_rows = metrics.batch_rows.labels(task)
        self._rejected = {reason: metrics.rejected.labels(task, reason) for reason in REJECTED}
        self._cancelled = {reason: metrics.cancelled.labels(task, reason) for reason in CANCELLED}

    def add(self, counts: EngineCounts) -> None:
        """Count what an engine did."""
        self._queue_seconds.add(counts.queue_seconds)
        for phase, seconds in counts.inference_seconds.items():
            self._inference_seconds[phase].add(seconds)
        self._batch_rows.add(counts.rows)
        self._decode_steps.inc(counts.decode_steps)
        self._source_tokens.inc(counts.source_tokens)
        self._target_tokens.inc(counts.target_tokens)
        self._padding_tokens.inc(counts.padding_tokens)

    def rejected(self, reason: str) -> None:
        self._rejected[reason].inc()

    def cancelled(self, reason: str) -> None:
        """Count a request that was accepted and given up: once, however many engines worked on it."""
        self._cancelled[reason].inc()


class CacheMetrics:
    """Metrics of the cache of sentences."""

    def __init__(self, registry: CollectorRegistry) -> None:
        sentences = Counter(
            "attend_cache_sentences", "Sentences by how they were found.", ["result"], registry=registry
        )
        self._found = {result: sentences.labels(result) for result in FOUND}
        self._evictions = Counter("attend_cache_evictions", "Answers that made room for others.", registry=registry)
        self._bytes = Gauge(
            "attend_cache_bytes", "Memory of the answers.", registry=registry, multiprocess_mode="livesum"
        )

    def found(self, result: str, n_sentences: int) -> None:
        """Count sentences by their result, one of FOUND."""
        if n_sentences:
            self._found[result].inc(n_sentences)

    def holds(self, n_bytes: int, n_evicted: int) -> None:
        """Tell the memory of all answers, and count those that were evicted."""
        self._bytes.set(n_bytes)
        if n_evicted:
            self._evictions.inc(n_evicted)


class _Histogram(Histogram):
    """A histogram that also counts values which were counted elsewhere in the same buckets."""

    def add(self, observations: Observations) -> None:
        if any(observations.counts):
            self._sum.inc(observations.total)
            for bucket, n in zip(self._buckets, observations.counts, strict=True):
                if n:  # beside other servers, every sum is in a file
                    bucket.inc(n)


@dataclass(frozen=True)
class ModelState:
    """State of one model at a scrape."""

    model: str
    task: str
    precision: str
    provider: str
    waiting: int = 0
    running: int = 0
    rows: int = 0
    ready: bool = True
    files_changed: bool = False


class _Collected(Collector):
    """The metrics that a function returns at each scrape."""

    def __init__(self, metrics: Callable[[], Iterable[Metric]]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics()


def _build_info() -> Iterator[Metric]:
    yield _gauge("attend_build_info", "Always 1.", ["version"], [([__version__], 1)])


def _memory(footprint: Footprint) -> Iterator[Metric]:
    if (n_bytes := footprint.bytes()) is not None:
        yield GaugeMetricFamily("attend_memory_bytes", "Memory of all processes of the service.", n_bytes)


def _gauges(
    states: Callable[[], Iterable[ModelState]],
    is_ready: Callable[[], bool],
    devices: Callable[[], Mapping[str, str | None]],
) -> Iterator[Metric]:
    yield GaugeMetricFamily("attend_ready", "1 where /health/ready answers 200.", is_ready())
    models = list(states())
    yield _per_task("attend_waiting", "Sequences that wait.", ((s.task, s.waiting) for s in models))
    yield _per_task("attend_running", "Sequences that run.", ((s.task, s.running) for s in models))
    yield _per_task("attend_rows", "Most hypotheses that can run at once.", ((s.task, s.rows) for s in models))
    infos = (([s.model, s.task, s.precision, s.provider], 1) for s in models)
    yield _gauge("attend_model_info", "Always 1.", ["model", "task", "precision", "provider"], infos)
    is_model_ready = (([s.model, s.task], s.ready) for s in models)
    yield _gauge("attend_model_ready", "1 where a model takes requests.", ["model", "task"], is_model_ready)
    have_changed = {(s.model,): s.files_changed for s in models}.items()
    about = "1 where the files of a model have changed since it was read."
    yield _gauge("attend_model_files_changed", about, ["model"], have_changed)
    are_loaded = (([s.model, s.task], s.rows > 0) for s in models)
    yield _gauge("attend_model_loaded", "1 where a model is in memory.", ["model", "task"], are_loaded)
    takes_requests = (([device], lost_because is None) for device, lost_because in devices().items())
    about = "1 where a GPU of ATTEND_DEVICES takes requests for every model."
    yield _gauge("attend_device_ready", about, ["device"], takes_requests)


def _per_task(name: str, documentation: str, values: Iterable[tuple[str, int]]) -> GaugeMetricFamily:
    totals: Tally[str] = Tally()
    for task, value in values:
        totals[task] += value
    return _gauge(name, documentation, ["task"], (([task], total) for task, total in totals.items()))


def _gauge(
    name: str, documentation: str, labels: list[str], values: Iterable[tuple[Sequence[str], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for of_labels, value in values:
        family.add_metric(of_labels, value)
    return family
