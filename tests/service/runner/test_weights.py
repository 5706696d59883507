import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.external_data_helper import set_external_data
from safetensors.numpy import load_file, save_file

from service.base.artifact import Artifact, OpenedFile, read_artifact, sum_of
from service.base.errors import ArtifactRefused, StartRefused
from service.runner import weights as weights_module
from service.runner.provider import Provider
from service.runner.safetensors_file import SafetensorsFile
from service.runner.weights import Weights, load_session, read_rows, read_weights
from tests.service.tiny_artifacts import TinyTranslator
from tests.service.tiny_graph import Array

RNG = np.random.default_rng(0)
N, K = 5, 130
TENSORS: dict[str, Array] = {
    "floats": RNG.standard_normal((N, K)).astype(np.float32),
    "halves": RNG.standard_normal((N, K)).astype(np.float16),
    "rows": RNG.integers(-127, 128, (N, K), np.int8),
    "rows.scales": RNG.random((N, 1)).astype(np.float32),
    "smooth.weight": RNG.integers(-127, 128, (N, K), np.int8),
    "smooth.weight.scales": RNG.random((N, 1)).astype(np.float32),
    "smooth.smoothing": RNG.random(K).astype(np.float32) + np.float32(0.1),
    "rough.weight": RNG.integers(-127, 128, (N, K), np.int8),
    "rough.weight.scales": RNG.random((N, 1)).astype(np.float32),
    "rough.smoothing": RNG.random(N).astype(np.float32),
    "bare": RNG.integers(-127, 128, (N, K), np.int8),
    "wide": RNG.integers(-127, 128, (N, K), np.int8),
    "wide.scales": RNG.random((N, 2)).astype(np.float32),
    "shape": np.array([0, 0, K]),
    "mask": np.array([True, False, True]),
}
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_file(TENSORS, tmp_path / "weights.safetensors", metadata={"format": "pt"})
    return tmp_path / "weights.safetensors"


def weights_of(path: Path) -> Weights:
    return Weights(SafetensorsFile(OpenedFile(path, sum_of(path))))


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(ArtifactRefused) as refused:
        make()
    return str(refused.value).split("weights.safetensors: ", 1)[1]


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_that_sessions_share_lies_in_one_place(path: Path, name: str) -> None:
    weights, stored = weights_of(path), TENSORS[name]
    found = weights.shared(name, stored.dtype, "graph")
    np.testing.assert_array_equal(found, stored)
    assert found.dtype == stored.dtype
    assert np.shares_memory(found, weights.shared(name, stored.dtype, "another graph"))
    assert not np.shares_memory(found, weights.tensor(name, stored.dtype, "graph"))


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
def test_numbers_become_floats_by_the_scale_of_their_row(path: Path, dtype: np.dtype[Any]) -> None:
    found = weights_of(path).tensor("rows", dtype, "graph")
    assert found.dtype == dtype
    by_row = zip(TENSORS["rows"], TENSORS["rows.scales"], strict=True)
    expected = [[float(number) * float(scale) for number in row] for row, [scale] in by_row]
    np.testing.assert_array_equal(found, np.array(expected, np.float32).astype(dtype))


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
def test_numbers_of_smoothed_columns_become_what_they_were(path: Path, dtype: np.dtype[Any]) -> None:
    found = weights_of(path).tensor("smooth.weight", dtype, "graph")
    expected = TENSORS["smooth.weight"] * TENSORS["smooth.weight.scales"] / TENSORS["smooth.smoothing"]
    np.testing.assert_array_equal(found, expected.astype(dtype))


@pytest.mark.parametrize(("name", "dtype"), [("floats", FLOAT16), ("halves", FLOAT32)])
def test_floats_become_floats_of_another_width(path: Path, name: str, dtype: np.dtype[Any]) -> None:
    found = weights_of(path).tensor(name, dtype, "graph")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, TENSORS[name].astype(dtype))


@pytest.mark.parametrize(
    ("name", "dtype", "sentence"),
    [
        ("absent", "float32", "has no tensor absent, which cpu/encoder.onnx takes"),
        ("bare", "float16", "has no tensor bare.scales, which cpu/encoder.onnx takes"),
        ("wide", "float16", "wide has shape (5, 130), and wide.scales (5, 2), which does not fit"),
        ("rough.weight", "float16", "rough.weight has shape (5, 130), and its smoothing (5,), which does not fit"),
        ("floats", "int8", "floats is float32, which cannot become the int8 that cpu/encoder.onnx declares"),
        ("rows", "uint8", "rows is int8, which cannot become the uint8 that cpu/encoder.onnx declares"),
        ("shape", "float32", "shape is int64, which cannot become the float32 that cpu/encoder.onnx declares"),
        ("mask", "int64", "mask is bool, which cannot become the int64 that cpu/encoder.onnx declares"),
    ],
)
def test_any_other_tensor_is_refused_by_name(path: Path, name: str, dtype: str, sentence: str) -> None:
    assert refusal(lambda: weights_of(path).tensor(name, np.dtype(dtype), "cpu/encoder.onnx")) == sentence


def test_tensors_lie_in_any_order(path: Path) -> None:
    """safetensors orders tensors by type; large ones come first here, so that they are aligned with cache lines."""
    order = sorted(TENSORS, key=lambda name: -TENSORS[name].nbytes)
    ends = np.cumsum([TENSORS[name].nbytes for name in order]).tolist()
    header = json.loads(content(path)[0])
    for name, end in zip(order, ends, strict=True):
        header[name]["data_offsets"] = [end - TENSORS[name].nbytes, end]
    write(path, json.dumps(header).encode(), b"".join(TENSORS[name].tobytes() for name in order))
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(weights_of(path).tensor(name, tensor.dtype, "graph"), tensor)
        np.testing.assert_array_equal(load_file(path)[name], tensor)


def content(path: Path) -> tuple[bytes, bytes]:
    """Split a file into its header and its data."""
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    return whole[8:start], whole[start:]


def write(path: Path, header: bytes, data: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:5],
        lambda whole: whole[:100],
        lambda whole: b"\xff" * 8 + whole[8:],
        lambda whole: whole[:8] + b"[" + whole[9:],
        lambda whole: whole[:-1],
        lambda whole: whole + b"12",
    ],
)
def test_a_damaged_file_is_refused(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))
    assert refusal(lambda: weights_of(path)).startswith("cannot be read: ")


HEADER = {
    "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
    "b": {"dtype": "I8", "shape": [4], "data_offsets": [8, 12]},
}


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        ({"data_offsets": [4, 8]}, "cannot be read: "),
        ({"data_offsets": [9, 13]}, "cannot be read: "),
        ({"data_offsets": [8, 11]}, "cannot be read: "),
        ({"data_offsets": [-4, 0]}, "cannot be read: "),
        ({"data_offsets": [8]}, "cannot be read: "),
        ({"shape": [5]}, "cannot be read: "),
        ({"shape": [-2, -2]}, "cannot be read: "),
        ({"shape": None}, "cannot be read: "),
        ({"shape": [4] + [1] * 99}, "cannot be read: "),
        ({"dtype": "BF16", "shape": [2]}, "b is BF16, this service reads BOOL, U8, I8, I32, I64, F16, F32"),
    ],
)
def test_a_header_that_does_not_describe_the_file_is_refused(path: Path, tensor: dict[str, Any], sentence: str) -> None:
    write(path, json.dumps(HEADER).encode(), bytes(12))
    weights_of(path)
    write(path, json.dumps(HEADER | {"b": HEADER["b"] | tensor}).encode(), bytes(12))
    assert refusal(lambda: weights_of(path)).startswith(sentence)


@pytest.fixture
def gather(path: Path) -> Callable[[str, str], Artifact]:
    """gather(name, dtype) returns an artifact with a graph that gathers the rows of a tensor."""

    def make(name: str, dtype: str) -> Artifact:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        tensor = helper.make_tensor(
            name, element, TENSORS[name].shape, bytes(N * K * np.dtype(dtype).itemsize), raw=True
        )
        set_external_data(tensor, path.name)
        tensor.ClearField("raw_data")
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["B"])
        found = helper.make_tensor_value_info("found", element, ["B", K])
        graph = helper.make_graph([helper.make_node("Gather", [name, "ids"], ["found"])], "g", [ids], [found], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
        (path.parent / "cpu").mkdir()
        onnx.save(model, path.parent / "cpu" / "encoder.onnx")
        manifest = read_artifact(TinyTranslator(seed=3).save(path.parent / "tiny")).manifest
        graphs: Any = {"cpu/encoder.onnx": {dtype: (name,)}}
        files = {file: sum_of(path.parent / file) for file in ("cpu/encoder.onnx", "weights.safetensors")}
        return Artifact(path.parent, manifest.model_copy(update={"graphs": graphs, "files": files}))

    return make


@pytest.mark.parametrize(("name", "dtype"), [("floats", "float32"), ("halves", "float32"), ("rows", "float16")])
def test_a_session_keeps_what_it_reads(gather: Callable[[str, str], Artifact], name: str, dtype: str) -> None:
    """Only the session refers to the tensors, and other memory has been allocated since."""
    artifact = gather(name, dtype)
    expected = read_weights(artifact).tensor(name, np.dtype(dtype), "graph").copy()
    session = load_session(artifact, Provider("cpu", 1), "encoder.onnx")
    gc.collect()
    _others = [np.full((N, K), 7, dtype) for _ in range(100)]
    np.testing.assert_array_equal(session.run(None, {"ids": np.arange(N)})[0], expected)


def test_a_tensor_that_a_graph_does_not_have_refuses_the_start(gather: Callable[[str, str], Artifact]) -> None:
    artifact = gather("floats", "float32")
    artifact.manifest.graphs["cpu/encoder.onnx"] = {"float32": ("floats", "halves")}
    with pytest.raises(StartRefused, match=r"cpu/encoder\.onnx: ONNX Runtime .* cannot load it: .* halves"):
        load_session(artifact, Provider("cpu", 1), "encoder.onnx")


def test_a_tensor_that_the_manifest_does_not_name_refuses_the_start(gather: Callable[[str, str], Artifact]) -> None:
    artifact = gather("floats", "float32")
    artifact.manifest.graphs["cpu/encoder.onnx"] = {}
    with pytest.raises(StartRefused, match=r"cpu/encoder\.onnx: ONNX Runtime .* cannot load it: .* floats"):
        load_session(artifact, Provider("cpu", 1), "encoder.onnx")


TABLE = "embedding.tokens.weight"


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table of tokens is large."""
    if sys.platform != "linux":
        pytest.skip("tables are read as a whole")
    monkeypatch.setattr(weights_module, "LARGE_BYTES", 0)


@pytest.mark.parametrize("dtype", [FLOAT16, FLOAT32])
def test_rows_of_a_large_table_are_read_when_a_token_needs_them(
    tmp_path: Path, large_tables: None, dtype: np.dtype[Any]
) -> None:
    save_file({TABLE: TENSORS["halves"]}, tmp_path / "weights.safetensors")
    weights = weights_of(tmp_path / "weights.safetensors")
    table = weights.table(TABLE, dtype)
    assert table is not None
    table.fill()
    np.testing.assert_array_equal(weights.shared(TABLE, dtype, "graph"), TENSORS["halves"].astype(dtype))
    table.forget()
    table.read([3, 1, 3])
    expected = np.zeros((N, K), dtype)
    expected[[1, 3]] = TENSORS["halves"][[1, 3]]
    np.testing.assert_array_equal(table.array, expected)


def test_a_session_gathers_from_a_large_table_what_it_gathers_from_a_whole_one(
    gather: Callable[[str, str], Artifact], monkeypatch: pytest.MonkeyPatch, large_tables: None
) -> None:
    monkeypatch.setattr(weights_module, "TOKENS", "halves")
    monkeypatch.setattr(weights_module, "ROW_BY_ROW", "halves")
    session = load_session(gather("halves", "float32"), Provider("cpu", 1), "encoder.onnx")
    ids = np.array([4, 0, 4])
    read_rows(session, ids)
    np.testing.assert_array_equal(session.run(None, {"ids": ids})[0], TENSORS["halves"][ids].astype(np.float32))


def test_a_file_that_another_one_replaces_is_still_read(path: Path) -> None:
    weights = weights_of(path)
    other = path.with_name("other")
    save_file({}, other)
    other.replace(path)
    np.testing.assert_array_equal(weights.tensor("floats", FLOAT32, "graph"), TENSORS["floats"])


@pytest.mark.parametrize("written", [lambda whole: whole[:-1], lambda whole: whole[::-1]])
def test_a_file_that_was_written_to_is_refused(path: Path, written: Callable[[bytes], bytes]) -> None:
    os.utime(path, (0, 0))
    weights = weights_of(path)
    path.write_bytes(written(path.read_bytes()))
    with pytest.raises(ArtifactRefused, match="was written to"):
        weights.tensor("mask", np.dtype(np.bool_), "graph")
