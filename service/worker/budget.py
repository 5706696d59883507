"""The memory budget: how much memory models take, and which are loaded, in memory that all workers share."""

import ctypes
import mmap
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

MEMORY_FACTOR = 2.7
"""Memory of a shipped translator, divided by the size of its files: each session lays out weights anew."""


class _ModelRecord(ctypes.Structure):
    worker: int
    size: float
    loading: bool
    loaded: bool
    must_unload: bool
    used_at: float
    _fields_ = [
        ("worker", ctypes.c_int),
        ("size", ctypes.c_double),
        ("loading", ctypes.c_bool),
        ("loaded", ctypes.c_bool),
        ("must_unload", ctypes.c_bool),
        ("used_at", ctypes.c_double),
    ]


class Budget:
    """Counts how much workers have grown since they had no models, and the estimated sizes of models being loaded.

    Each model belongs to one worker. Before a model was loaded once, its estimated size is MEMORY_FACTOR times that of
    its files; afterwards it is the measured growth, but at least the size of its files. While no model is loaded, any
    model may be. `limit` is the most bytes of all models, `file_bytes` the size of each model's files.
    """

    def __init__(self, limit: int, n_workers: int, file_bytes: Mapping[str, int]) -> None:
        self._limit = limit
        self._file_bytes = file_bytes
        memory = mmap.mmap(-1, len(file_bytes) * ctypes.sizeof(_ModelRecord))
        records = (_ModelRecord * len(file_bytes)).from_buffer(memory)
        self._models: dict[str, _ModelRecord] = dict(zip(file_bytes, records, strict=True))
        for number, (model, record) in enumerate(self._models.items()):
            record.worker, record.size = number % n_workers, MEMORY_FACTOR * file_bytes[model]
        self._growth = memoryview(mmap.mmap(-1, 8 * n_workers)).cast("d")
        self._lock, path = tempfile.mkstemp()
        os.unlink(path)
        self._wakeup_pipes = [os.pipe() for _ in range(n_workers)]
        for pipe in self._wakeup_pipes:
            for end in pipe:
                os.set_blocking(end, False)

    def models(self, worker: int) -> list[str]:
        return [model for model, record in self._models.items() if record.worker == worker]

    def size(self, model: str) -> int:
        """Return the estimated size of a model in bytes."""
        return int(self._models[model].size)

    def reset(self, worker: int) -> None:
        """Count a worker's next process as one without models."""
        with self._locked():
            self._growth[worker] = 0
            for model in self.models(worker):
                record = self._models[model]
                record.loading = record.loaded = record.must_unload = False

    def wakeup_fd(self, worker: int) -> int:
        """A file descriptor that becomes readable when a worker is asked to unload models."""
        return self._wakeup_pipes[worker][0]

    def models_to_unload(self, worker: int) -> list[str]:
        """Return the models that a worker is asked to unload."""
        return [model for model in self.models(worker) if self._models[model].must_unload]

    def note_use(self, model: str) -> None:
        """Record that there is a request for a model: others are unloaded first."""
        self._models[model].used_at = time.monotonic()

    def keep(self, model: str) -> None:
        """Record that a model is not unloaded, since it has requests: others may be asked instead."""
        self.note_use(model)
        self._models[model].must_unload = False

    def reserve(self, model: str) -> bool:
        """Count a model that will be loaded, if there is room. If not, ask that others be unloaded."""
        with self._locked():
            missing = self._total() + self.size(model) - self._limit
            if missing > 0 and any(record.loading or record.loaded for record in self._models.values()):
                self._ask_to_unload(missing)
                return False
            self._models[model].loading = True
            return True

    def end_loading(self, model: str, measured: int | None) -> None:
        """Record that a model has been loaded and took `measured` bytes; None if it could not be loaded."""
        with self._locked():
            record = self._models[model]
            record.loading, record.loaded = False, measured is not None
            if measured:
                record.size = max(measured, self._file_bytes[model])
            if record.loaded:  # counted until the worker measures its growth: others may reserve memory meanwhile
                self._growth[record.worker] += record.size

    def end_unloading(self, model: str) -> None:
        with self._locked():
            self._models[model].loaded = self._models[model].must_unload = False

    def set_growth(self, worker: int, n_bytes: int | None) -> None:
        """Record by how much a worker has grown since it had no models; None if it cannot tell. Beyond the limit, ask
        that models be unloaded."""
        with self._locked():
            if n_bytes is None:
                n_bytes = sum(self.size(model) for model in self.models(worker) if self._models[model].loaded)
            self._growth[worker] = n_bytes
            self._ask_to_unload(self._total() - self._limit)

    def _total(self) -> float:
        return sum(self._growth) + sum(record.size for record in self._models.values() if record.loading)

    def _ask_to_unload(self, missing: float) -> None:
        """The least recently used models are unloaded first, of at least `missing` bytes."""
        missing -= sum(record.size for record in self._models.values() if record.must_unload)
        loaded = [record for record in self._models.values() if record.loaded and not record.must_unload]
        for record in sorted(loaded, key=lambda record: record.used_at):
            if missing <= 0:
                return
            record.must_unload = True
            missing -= record.size
            with suppress(BlockingIOError):  # the pipe is full: the worker has been asked often enough
                os.write(self._wakeup_pipes[record.worker][1], b"!")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, one process at a time. The system releases it for a process that dies."""
        os.lockf(self._lock, os.F_LOCK, 0)
        try:
            yield
        finally:
            os.lockf(self._lock, os.F_ULOCK, 0)
