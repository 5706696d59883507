import ctypes

import numpy as np
import pytest

from service.runner.arrays import ALIGNMENT, GraphArrays


@pytest.fixture(params=[None, "cpu"])
def arrays(request: pytest.FixtureRequest) -> GraphArrays:
    """Arrays of a graph on the CPU; and arrays of a device, for which main memory stands."""
    return GraphArrays(request.param, ids=(np.int64, (3, 2)), nothing=(np.int32, (0,)), scores=(np.float32, (5,)))


def seen_by_the_graph(arrays: GraphArrays) -> list[np.ndarray]:
    found = []
    for _, _, _, dtype, shape, address in arrays.bindings():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        found.append(np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape))
    return found


def test_an_uploaded_array_is_where_the_graph_looks_for_it(arrays: GraphArrays) -> None:
    arrays["ids"][:] = [[1, 2], [3, 4], [5, 6]]
    arrays["scores"][:] = np.arange(5)
    arrays.upload()
    ids, nothing, scores = seen_by_the_graph(arrays)
    np.testing.assert_array_equal(ids, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(scores, np.arange(5))
    assert nothing.shape == (0,)


def test_an_array_that_the_graph_wrote_is_downloaded(arrays: GraphArrays) -> None:
    scores = arrays["scores"]
    *_, address = list(arrays.bindings())[-1]
    written = np.linspace(0, 1, 5, dtype=np.float32)
    ctypes.memmove(address, written.tobytes(), written.nbytes)
    arrays.download()
    np.testing.assert_array_equal(scores, written)


def test_each_begins_where_a_gpu_may_read_it(arrays: GraphArrays) -> None:
    addresses = [binding[-1] for binding in arrays.bindings()]
    assert {(address - addresses[0]) % ALIGNMENT for address in addresses} == {0}
    assert [binding[0] for binding in arrays.bindings()] == ["ids", "nothing", "scores"]
