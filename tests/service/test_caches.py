import base64
import ctypes

import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import DTypeLike
from onnxruntime import OrtValue

from service.runner.caches import SHORTEST, Cache, CacheGroup, DeviceCache, HostCache
from service.runner.copy_graph import COPY_GRAPH, TEXT
from service.runner.provider import Provider

SLOTS, H, D = 5, 3, 4


def host_cache(dtype: DTypeLike) -> Cache:
    return HostCache(SLOTS, H, D, dtype)


def device_cache(dtype: DTypeLike) -> Cache:
    """The device's code, with main memory as the device."""
    return DeviceCache(SLOTS, H, D, dtype, "cpu", Provider("cpu", 1).session(COPY_GRAPH))


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
def test_resizing_keeps_the_rows_in_use_and_zeros_the_rest(cache: Cache, dtype: DTypeLike, length: int) -> None:
    cache.resize(8, rows=0)
    values = block(SLOTS, 8, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    cache.resize(length, rows=3)
    expected = np.zeros((SLOTS, H, length, D), dtype)
    kept = min(8, length)
    expected[:3, :, :kept] = values[:3, :, :kept]
    np.testing.assert_array_equal(content(cache, length, dtype), expected)


def test_moving_copies_one_row(cache: Cache, dtype: DTypeLike) -> None:
    cache.resize(8, rows=0)
    values = block(SLOTS, 8, dtype)
    cache.write(0, OrtValue.ortvalue_from_numpy(values))
    cache.move(4, 1)
    expected = values.copy()
    expected[1] = values[4]
    np.testing.assert_array_equal(content(cache, 8, dtype), expected)


def test_a_group_grows_by_powers_of_two_and_gives_memory_back() -> None:
    group = CacheGroup({"0.decoder.key": host_cache(np.float32)})
    lengths = []
    for needed, rows in [(1, 0), (32, 2), (33, 2), (100, 2), (65, 2), (64, 2), (32, 2), (120, 2), (31, 0)]:
        group.fit(needed, rows)
        lengths.append(group.length)
    assert SHORTEST == 32
    assert lengths == [32, 32, 64, 128, 128, 128, 32, 128, 32]


def test_a_group_says_when_its_memory_has_moved() -> None:
    group = CacheGroup({"0.decoder.key": host_cache(np.float32)})
    assert [group.fit(needed, 1) for needed in (1, 32, 33, 60)] == [True, False, True, False]


def test_the_serialized_copy_graph_is_the_one_in_the_text() -> None:
    model = onnx.parser.parse_model(TEXT)
    onnx.checker.check_model(model)
    assert base64.b64encode(COPY_GRAPH) == base64.b64encode(model.SerializeToString(deterministic=True))
