import base64
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import DTypeLike

from service.runner.caches import (
    COARSE_LENGTHS,
    FINE_LENGTHS,
    CacheGroup,
    Caches,
    CacheShapes,
    HostCaches,
    LengthBuckets,
)
from service.runner.device_caches import DeviceCaches
from service.runner.device_graphs import COPY, COPY_TEXT, PROBE, PROBE_TEXT
from service.runner.provider import Provider

C, N_ROWS, H, D = 2, 5, 3, 4


NAMES = ["0.decoder.key", "0.decoder.value"]
SHAPES = CacheShapes(NAMES, (H,), D)


def host_caches(heads: tuple[int, ...] = (H,), width: int = D) -> HostCaches:
    return HostCaches(CacheShapes(NAMES, heads, width), N_ROWS)


def content(caches: Caches, length: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return the numbers (C, R, H, L, D) that a graph would read at the addresses."""
    size = N_ROWS * H * length * D * np.dtype(dtype).itemsize
    seen = [np.frombuffer(ctypes.string_at(caches.address(cache), size), dtype) for cache in range(C)]
    return np.stack(seen).reshape(C, N_ROWS, H, length, D)


def write(caches: HostCaches, first_row: int, rows: int, length: int) -> np.ndarray:
    """Write random numbers (C, rows, H, length, D) into the rows of every cache, and return them."""
    values = np.random.default_rng(0).standard_normal((C, rows, H, length, D)).astype(np.float32)
    for row in range(rows):
        caches.write(first_row + row, values[:, row])
    return values


def test_a_block_lands_in_its_rows_and_nowhere_else() -> None:
    caches = host_caches()
    caches.resize(8, rows=0)
    values = write(caches, 1, 2, 6)
    expected = np.zeros((C, N_ROWS, H, 8, D))
    expected[:, 1:3, :, :6] = values
    np.testing.assert_array_equal(content(caches, 8), expected)


@pytest.mark.parametrize("length", [4, 8, 16])
def test_resizing_keeps_the_rows_in_use_and_leaves_nothing_infinite(length: int) -> None:
    caches = host_caches()
    caches.resize(8, rows=0)
    values = write(caches, 0, N_ROWS, 8)
    caches.resize(length, rows=3)
    kept = min(8, length)
    found = content(caches, length)
    np.testing.assert_array_equal(found[:, :3, :, :kept], values[:, :3, :, :kept])
    assert np.isfinite(found).all()


def test_kept_columns_survive_many_sizes() -> None:
    caches = host_caches()
    caches.resize(4, rows=0)
    values = write(caches, 0, N_ROWS, 4)
    for length in (16, 8, 32, 4):
        caches.resize(length, rows=N_ROWS)
        np.testing.assert_array_equal(content(caches, length)[..., :4, :], values)


@pytest.mark.parametrize(("sources", "targets"), [([4], [1]), ([0, 0, 3], [4, 1, 2]), ([2, 2], [0, 4])])
def test_rows_are_copied_over_others_and_nothing_else_changes(sources: list[int], targets: list[int]) -> None:
    caches = host_caches()
    caches.resize(8, rows=0)
    values = write(caches, 0, N_ROWS, 8)
    caches.copy(sources, targets, 5)
    found = content(caches, 8)
    expected = values.copy()
    expected[:, targets] = values[:, sources]
    np.testing.assert_array_equal(found[..., :5, :], expected[..., :5, :])
    others = [row for row in range(N_ROWS) if row not in targets]
    np.testing.assert_array_equal(found[:, others], values[:, others])


def test_copying_no_column_is_no_error() -> None:
    """A sequence that was encoded and has not begun has an empty cache."""
    caches = host_caches()
    caches.resize(8, rows=0)
    values = write(caches, 0, N_ROWS, 8)
    caches.copy([3], [0], 0)
    np.testing.assert_array_equal(content(caches, 8)[:, 1:], values[:, 1:])


def test_heads_may_lie_side_by_side() -> None:
    caches = host_caches(heads=(), width=H * D)
    caches.resize(4, rows=0)
    values = np.random.default_rng(0).standard_normal((2, 4, H * D)).astype(np.float32)
    for row, block in enumerate(values, start=1):
        caches.write(row, np.stack([block] * C))
    caches.copy([1], [4], 4)
    caches.resize(8, rows=N_ROWS)
    assert caches.shape(N_ROWS) == (N_ROWS, 8, H * D)
    found = content(caches, 8)[1].reshape(caches.shape(N_ROWS))
    np.testing.assert_array_equal(found[[1, 2, 4], :4], values[[0, 1, 0]])


@dataclass(frozen=True)
class CpuAsDevice(Provider):
    """A provider for which main memory is the device's memory, with numbers of any type."""

    dtype: DTypeLike = np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("heads", [(H,), ()])
def test_a_device_keeps_what_is_written_moved_and_resized(dtype: DTypeLike, heads: tuple[int, ...]) -> None:
    """Compare with numpy: the columns of all caches, rows and heads are copied, and nothing else changes."""
    width = D if heads else H * D
    caches = DeviceCaches(CacheShapes(NAMES, heads, width), N_ROWS, CpuAsDevice("cpu", 1, dtype=dtype))
    rng = np.random.default_rng(0)
    expected = np.zeros((C, N_ROWS, *heads, 64, width), dtype)

    def assert_as_expected(length: int, rows: int = N_ROWS) -> None:
        found = content(caches, length, dtype).reshape(C, N_ROWS, *heads, length, width)
        np.testing.assert_array_equal(found[:, :rows], expected[:, :rows, ..., :length, :])

    caches.resize(64, rows=0)
    for rows, n_columns in (([3, 0], 64), ([1, 4], 32)):
        block = rng.standard_normal((C, len(rows), *heads, n_columns, width)).astype(dtype)
        expected[:, rows, ..., :n_columns, :] = block
        caches.write(np.array(rows), block.ctypes.data, (len(rows), n_columns))
        assert_as_expected(64)
    caches.copy(np.array([3, 4, 2]), np.array([1, 0, 2]))
    expected[:, [1, 0, 2]] = expected[:, [3, 4, 2]]
    assert_as_expected(64)
    addresses = [caches.address(cache) for cache in range(C)]
    caches.resize(32, rows=4)
    assert_as_expected(32, rows=4)
    caches.resize(64, rows=4)
    assert [caches.address(cache) for cache in range(C)] == addresses, "captured graphs find them where they were"
    found = content(caches, 64, dtype).reshape(expected.shape)
    np.testing.assert_array_equal(found[:, :4, ..., :32, :], expected[:, :4, ..., :32, :])
    assert caches.shape(2) == (2, *heads, 64, width)


def test_rows_stay_where_growing_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    caches = DeviceCaches(SHAPES, N_ROWS, CpuAsDevice("cpu", 1, dtype=np.float32))
    caches.resize(32, rows=0)
    block = np.random.default_rng(0).standard_normal((C, N_ROWS, H, 32, D)).astype(np.float32)
    caches.write(np.arange(N_ROWS), block.ctypes.data, (N_ROWS, 32))

    def fails(*_: object) -> None:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(DeviceCaches, "_copy", fails)
        with pytest.raises(RuntimeError):
            caches.resize(64, rows=N_ROWS)
    caches.resize(64, rows=N_ROWS)
    found = content(caches, 64, np.float32).reshape(C, N_ROWS, H, 64, D)
    np.testing.assert_array_equal(found[..., :32, :], block)


def group_of(lengths: LengthBuckets) -> CacheGroup[HostCaches]:
    return CacheGroup(SHAPES, host_caches(), lengths)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("on_device", [False, True])
def test_states_have_one_length_and_are_copied_by_row(dtype: DTypeLike, on_device: bool) -> None:
    states = CacheShapes(["0.decoder.state", "1.decoder.state"], (), H * D, has_length=False)
    device = DeviceCaches(states, N_ROWS, CpuAsDevice("cpu", 1, dtype=dtype))
    host = HostCaches(states, N_ROWS)
    group: CacheGroup[Any] = CacheGroup(states, device if on_device else host, COARSE_LENGTHS)
    for needed, rows in ((1, 0), (40, 2), (900, N_ROWS), (1, 0)):
        group.fit(needed, rows)
        assert (group.length, group.version) == (1, 1)
    assert group.caches.shape(2) == (2, 1, H * D)
    used = dtype if on_device else np.float32
    n_bytes = N_ROWS * H * D * np.dtype(used).itemsize
    memory = [(ctypes.c_byte * n_bytes).from_address(address) for address in group.addresses]
    seen = np.stack([np.frombuffer(block, used).reshape(N_ROWS, H * D) for block in memory])
    expected = np.random.default_rng(0).standard_normal(seen.shape).astype(used)
    for block, values in zip(memory, expected, strict=True):
        ctypes.memmove(block, values.ctypes.data, n_bytes)
    sources, targets = [0, 0, 3], [4, 1, 2]
    if on_device:
        device.copy(np.array(sources), np.array(targets))
    else:
        host.copy(sources, targets, 17)
    expected[:, targets] = expected[:, sources]
    found = np.stack([np.frombuffer(block, used).reshape(N_ROWS, H * D) for block in memory])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (COARSE_LENGTHS, [32, 32, 64, 128, 128, 128, 32, 128, 32]),
        (FINE_LENGTHS, [8, 32, 48, 128, 128, 64, 32, 128, 32]),
    ],
)
def test_a_group_grows_by_its_buckets_and_gives_memory_back(lengths: LengthBuckets, expected: list[int]) -> None:
    group = group_of(lengths)
    found = []
    for needed, rows in [(1, 0), (32, 2), (33, 2), (100, 2), (65, 2), (64, 2), (32, 2), (120, 2), (31, 0)]:
        group.fit(needed, rows)
        found.append(group.length)
    assert found == expected


@pytest.mark.parametrize(("bucket", "padding"), [(COARSE_LENGTHS.bucket, 2.0), (FINE_LENGTHS.bucket, 1.5)])
def test_a_bucket_holds_what_is_needed_and_little_more(bucket: Callable[[int], int], padding: float) -> None:
    for needed in range(32, 1000):
        assert needed <= bucket(needed) < padding * needed + 1
        assert bucket(bucket(needed)) == bucket(needed) <= bucket(needed + 1)


def test_a_group_has_another_version_when_its_memory_has_moved() -> None:
    group = group_of(COARSE_LENGTHS)
    versions = [group.version]
    for needed in (1, 32, 33, 60):
        group.fit(needed, 1)
        versions.append(group.version)
        assert group.addresses == [group.caches.address(cache) for cache in range(C)]
    assert versions == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(("text", "serialized"), [(COPY_TEXT, COPY), (PROBE_TEXT, PROBE)])
def test_a_serialized_graph_is_the_one_in_the_text(text: str, serialized: bytes) -> None:
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    assert base64.b64encode(serialized) == base64.b64encode(model.SerializeToString(deterministic=True))
