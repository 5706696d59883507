"""How much memory models take, and which are loaded: what all workers must know, in memory that they share."""

import ctypes
import mmap
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

MEMORY_FACTOR = 2.7
"""Memory that a shipped translator takes, divided by the size of its files: each session lays out weights anew."""


class _Model(ctypes.Structure):
    worker: int
    size: float
    loading: bool
    loaded: bool
    asked: bool
    """To be unloaded."""
    used_at: float
    _fields_ = [
        ("worker", ctypes.c_int),
        ("size", ctypes.c_double),
        ("loading", ctypes.c_bool),
        ("loaded", ctypes.c_bool),
        ("asked", ctypes.c_bool),
        ("used_at", ctypes.c_double),
    ]


class Budget:
    """Counts by how much workers have grown since they had no models, and what will be added by those that they load.

    Each model has its worker. It counts as MEMORY_FACTOR times its files before it was loaded once, and then as what was
    measured, but never as less than its files. While none is loaded, any one may be.

    Args:
        limit: in bytes.
        file_bytes: by model, the size of its files.
    """

    def __init__(self, limit: int, n_workers: int, file_bytes: Mapping[str, int]) -> None:
        self._limit = limit
        self._file_bytes = file_bytes
        records = (_Model * len(file_bytes)).from_buffer(mmap.mmap(-1, len(file_bytes) * ctypes.sizeof(_Model)))
        self._models: dict[str, _Model] = dict(zip(file_bytes, records, strict=True))
        for number, (model, record) in enumerate(self._models.items()):
            record.worker, record.size = number % n_workers, MEMORY_FACTOR * file_bytes[model]
        self._grown = memoryview(mmap.mmap(-1, 8 * n_workers)).cast("d")
        self._lock, path = tempfile.mkstemp()
        os.unlink(path)
        self._bells = [os.pipe() for _ in range(n_workers)]
        for bell in self._bells:
            for end in bell:
                os.set_blocking(end, False)

    def models(self, worker: int) -> list[str]:
        """Those that are loaded by this worker."""
        return [model for model, record in self._models.items() if record.worker == worker]

    def size(self, model: str) -> int:
        """Bytes that it counts as."""
        return int(self._models[model].size)

    def begin(self, worker: int) -> None:
        """A new process is this worker."""
        with self._locked():
            self._grown[worker] = 0
            for model in self.models(worker):
                record = self._models[model]
                record.loading = record.loaded = record.asked = False

    def bell(self, worker: int) -> int:
        """A file descriptor that can be read when models of this worker have been asked to be unloaded."""
        return self._bells[worker][0]

    def asked(self, worker: int) -> list[str]:
        """Which models of this worker are to be unloaded."""
        return [model for model in self.models(worker) if self._models[model].asked]

    def use(self, model: str) -> None:
        """There is a request for this model: others are unloaded first."""
        self._models[model].used_at = time.monotonic()

    def keep(self, model: str) -> None:
        """A model that is asked to be unloaded has requests: others may be asked."""
        self.use(model)
        self._models[model].asked = False

    def reserve(self, model: str) -> bool:
        """Count a model that will be loaded, if there is room; if not, ask that others be unloaded."""
        with self._locked():
            missing = self._taken() + self.size(model) - self._limit
            if missing > 0 and any(record.loading or record.loaded for record in self._models.values()):
                self._ask_for(missing)
                return False
            self._models[model].loading = True
            return True

    def end_loading(self, model: str, measured: int | None) -> None:
        """A model has been loaded, and took so many bytes; None where it could not be loaded."""
        with self._locked():
            record = self._models[model]
            record.loading, record.loaded = False, measured is not None
            if measured:
                record.size = max(measured, self._file_bytes[model])

    def unload(self, model: str) -> None:
        """A model has been unloaded."""
        with self._locked():
            self._models[model].loaded = self._models[model].asked = False

    def grow(self, worker: int, n_bytes: int | None) -> None:
        """A worker has grown by so many bytes since it had no models; None where it cannot tell."""
        with self._locked():
            if n_bytes is None:
                n_bytes = sum(self.size(model) for model in self.models(worker) if self._models[model].loaded)
            self._grown[worker] = n_bytes
            self._ask_for(self._taken() - self._limit)

    def _taken(self) -> float:
        return sum(self._grown) + sum(record.size for record in self._models.values() if record.loading)

    def _ask_for(self, missing: float) -> None:
        """Ask that models be unloaded, those first that were not used for the longest time."""
        missing -= sum(record.size for record in self._models.values() if record.asked)
        loaded = [record for record in self._models.values() if record.loaded and not record.asked]
        for record in sorted(loaded, key=lambda record: record.used_at):
            if missing <= 0:
                return
            record.asked = True
            missing -= record.size
            with suppress(BlockingIOError):  # it has been rung often enough
                os.write(self._bells[record.worker][1], b"!")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time; the system unlocks for one that dies."""
        os.lockf(self._lock, os.F_LOCK, 0)
        try:
            yield
        finally:
            os.lockf(self._lock, os.F_ULOCK, 0)
