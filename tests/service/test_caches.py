import base64
import ctypes
from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import DTypeLike
from onnxruntime import OrtValue

from service.runner.caches import (
    FEW_LENGTHS,
    LITTLE_PADDING,
    SHORTEST,
    Cache,
    CacheGroup,
    DeviceCache,
    HostCache,
    Lengths,
    power_of_two,
    quarter_power_of_two,
)
from service.runner.copy_graphs import REORDER, REORDER_TEXT, WRITE, WRITE_TEXT
from service.runner.provider import Provider

SLOTS, H, D = 5, 3, 4


def host_cache(dtype: DTypeLike, heads: tuple[int, ...] = (H,), width: int = D) -> Cache:
    return HostCache(SLOTS, heads, width, dtype)


def device_cache(dtype: DTypeLike, heads: tuple[int, ...] = (H,), width: int = D) -> Cache:
    """The device's code, with main memory as the device."""
    cpu = Provider("cpu", 1)
    return DeviceCache(SLOTS, heads, width, dtype, "cpu", cpu.session(WRITE), cpu.session(REORDER))


@pytest.fixture(params=[host_cache, device_cache])
def cache(request: pytest.FixtureRequest, dtype: DTypeLike) -> Cache:
    made: Cache = request.param(dtype)
    return made


@pytest.fixture(params=[np.float32, np.float16])
def dtype(request: pytest.FixtureRequest) -> DTypeLike:
    chosen: DTypeLike = request.param
    return chosen


def content(cache: Cache, length: int, dtype: DTypeLike) -> np.ndarray:
    """What a graph would see at the cache's address."""
    size = SLOTS * H * length * D * np.dtype(dtype).itemsize
    return np.frombuffer(ctypes.string_at(cache.pointer, size), dtype).reshape(SLOTS, H, length, D)


def block(rows: int, length: int, dtype: DTypeLike, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, H, length, D)).astype(dtype)


def test_a_block_lands_in_its_rows_and_nowhere_else(cache: Cache, dtype: DTypeLike) -> None:
    cache.resize(8, rows=0)
    values = block(2, 6, dtype)
    cache.write(1, OrtValue.ortvalue_from_numpy(values))
    expected = np.zeros((SLOTS, H, 8, D), dtype)
    expected[1:3, :, :6] = values
    np.testing.assert_array_equal(content(cache, 8, dtype), expected)


@pytest.mark.parametrize("length", [4, 8, 16])
def test_resizing_keeps_the_rows_in_use_and_leaves_nothing_infinite(
    cache: Cache, dtype: DTypeLike, length: int
) -> None:
    cache.resize(8, rows=0)
    values = block(SLOTS, 8, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    cache.resize(length, rows=3)
    kept = min(8, length)
    found = content(cache, length, dtype)
    np.testing.assert_array_equal(found[:3, :, :kept], values[:3, :, :kept])
    assert np.isfinite(found).all()


def test_what_is_kept_survives_many_sizes(cache: Cache, dtype: DTypeLike) -> None:
    cache.resize(4, rows=0)
    values = block(SLOTS, 4, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    for length in (16, 8, 32, 4):
        cache.resize(length, rows=SLOTS)
        np.testing.assert_array_equal(content(cache, length, dtype)[:, :, :4], values)


@pytest.mark.parametrize(("sources", "targets"), [([4], [1]), ([0, 0, 3], [4, 1, 2]), ([2, 2], [0, 4])])
def test_rows_are_copied_over_others_and_nothing_else_changes(
    cache: Cache, dtype: DTypeLike, sources: list[int], targets: list[int]
) -> None:
    cache.resize(8, rows=0)
    values = block(SLOTS, 8, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    cache.copy(np.array(sources), np.array(targets), 5)
    found = content(cache, 8, dtype)
    expected = values.copy()
    expected[targets] = values[sources]
    np.testing.assert_array_equal(found[:, :, :5], expected[:, :, :5])
    others = [row for row in range(SLOTS) if row not in targets]
    np.testing.assert_array_equal(found[others], values[others])


def test_copying_no_column_is_no_error(cache: Cache, dtype: DTypeLike) -> None:
    """A sequence that was read and has not begun holds none."""
    cache.resize(8, rows=0)
    values = block(SLOTS, 8, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    cache.copy(np.array([3]), np.array([0]), 0)
    np.testing.assert_array_equal(content(cache, 8, dtype)[1:], values[1:])


@pytest.mark.parametrize("make", [host_cache, device_cache])
def test_heads_may_lie_side_by_side(make: Callable[..., Cache]) -> None:
    cache = make(np.float32, heads=(), width=H * D)
    cache.resize(4, rows=0)
    values = block(2, 4, np.float32).reshape(2, 4, H * D)
    cache.write(1, OrtValue.ortvalue_from_numpy(values))
    cache.copy(np.array([1]), np.array([4]), 4)
    cache.resize(8, rows=SLOTS)
    assert cache.shape(SLOTS) == (SLOTS, 8, H * D)
    found = content(cache, 8, np.float32).reshape(cache.shape(SLOTS))
    np.testing.assert_array_equal(found[[1, 2, 4], :4], values[[0, 1, 0]])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        (FEW_LENGTHS, [32, 32, 64, 128, 128, 128, 32, 128, 32]),
        (LITTLE_PADDING, [8, 32, 48, 128, 128, 64, 32, 128, 32]),
    ],
)
def test_a_group_grows_by_its_buckets_and_gives_memory_back(lengths: Lengths, expected: list[int]) -> None:
    group = CacheGroup({"0.decoder.key": host_cache(np.float32)}, lengths)
    found = []
    for needed, rows in [(1, 0), (32, 2), (33, 2), (100, 2), (65, 2), (64, 2), (32, 2), (120, 2), (31, 0)]:
        group.fit(needed, rows)
        found.append(group.length)
    assert found == expected


@pytest.mark.parametrize(("bucket", "padding"), [(power_of_two, 2.0), (quarter_power_of_two, 1.5)])
def test_a_bucket_holds_what_is_needed_and_little_more(bucket: Callable[[int], int], padding: float) -> None:
    for needed in range(SHORTEST, 1000):
        assert needed <= bucket(needed) < padding * needed + 1
        assert bucket(bucket(needed)) == bucket(needed) <= bucket(needed + 1)


def test_a_group_says_when_its_memory_has_moved() -> None:
    group = CacheGroup({"0.decoder.key": host_cache(np.float32)}, FEW_LENGTHS)
    assert [group.fit(needed, 1) for needed in (1, 32, 33, 60)] == [True, False, True, False]


@pytest.mark.parametrize(("text", "serialized"), [(WRITE_TEXT, WRITE), (REORDER_TEXT, REORDER)])
def test_a_serialized_copy_graph_is_the_one_in_the_text(text: str, serialized: bytes) -> None:
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    assert base64.b64encode(serialized) == base64.b64encode(model.SerializeToString(deterministic=True))
