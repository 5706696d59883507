"""The graphs: one Attention node per attention sublayer, the artifact's names and shapes, and nothing else."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from onnx.helper import tensor_dtype_to_np_dtype

from export.graphs import DecoderStepGraph, EncoderGraph
from export.session import tensors_of
from export.signatures import decoder_step_signature, encoder_signature
from export.tracing import ExportError, trace
from manifest.file import read_manifest
from manifest.layout import WEIGHTS
from manifest.schema import Precision, Provider
from model.weights import read_weights
from tests.export.tiny_checkpoints import GRAPHS as GRAPH_SETS
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, translator_of

H, D, C = 3, 8, 5

BOUNDARY = {
    "encoder.onnx": (
        {"input_ids": ("B", "S"), "source_lengths": ("B",)},
        {f"present.{i}.encoder.{part}": ("B", "S", H * D) for i in range(2) for part in ("key", "value")}
        | {"last_hidden_state": ("B", "S", H * D)},
    ),
    "decoder_step.onnx": (
        {"input_ids": ("R", 1), "positions": ("R",), "total_length": (1,), "k": (1,)}
        | {"rows_of_sources": ("N", "W"), "places_of_rows": ("R",), "source_lengths": ("N",)}
        | {f"past_key_values.{i}.decoder.{part}": ("R", H, "L", D) for i in range(2) for part in ("key", "value")}
        | {f"past_key_values.{i}.encoder.{part}": ("N", "S", H * D) for i in range(2) for part in ("key", "value")},
        {"token_ids": ("R", "k"), "log_probs": ("R", "k")}
        | {f"present.{i}.decoder.{part}": ("R", H, "L", D) for i in range(2) for part in ("key", "value")},
    ),
    "classifier.onnx": (
        {"input_ids": ("B", "S"), "lengths": ("B",)},
        {"logits": ("B", C), "token_logits": ("B", "S", C), "last_hidden_state": ("B", "S", H * D)},
    ),
}
ATTENTION_BOUNDARY = {
    "translation": (
        {"input_ids": ("B", "S"), "source_lengths": ("B",), "target_ids": ("B", "T")},
        {"encoder": ("B", 3, H, "S", "S"), "decoder": ("B", 2, H, "T", "T"), "cross": ("B", 2, H, "T", "S")},
    ),
    "mean_classifier": ({"input_ids": ("B", "S"), "lengths": ("B",)}, {"encoder": ("B", 3, H, "S", "S")}),
}
SELF_ATTENTION_TO_THE_PAST = {"encoder.onnx": 0, "decoder_step.onnx": 2, "classifier.onnx": 0}
OTHER_ATTENTION = {"encoder.onnx": 3, "decoder_step.onnx": 2, "classifier.onnx": 3}
INTEGERS = {
    "input_ids", "target_ids", "rows_of_sources", "places_of_rows", "source_lengths", "lengths", "k", "token_ids",
}  # fmt: skip
INT32 = {"positions", "total_length"}

GRAPHS = [("translation", "encoder.onnx"), ("translation", "decoder_step.onnx"), ("mean_classifier", "classifier.onnx")]
ATTENTION_GRAPHS = [("translation", "attention.onnx"), ("mean_classifier", "attention.onnx")]


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "name"), GRAPHS)
def test_every_attention_sublayer_is_one_attention_node(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider
) -> None:
    operators = count_operators(load(artifact, kind, name, precision, provider))
    assert operators["Attention"] == OTHER_ATTENTION[name]
    assert operators["GroupQueryAttention"] == SELF_ATTENTION_TO_THE_PAST[name]
    assert operators["Softmax"] == 0
    assert not {"If", "Loop", "Scan"} & operators.keys()


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "n_matrices"), [("translation", 3 + 2 + 2), ("mean_classifier", 3)])
def test_every_matrix_is_a_softmax_and_nothing_is_computed_that_no_matrix_depends_on(
    artifact: MakeArtifact, kind: Kind, n_matrices: int, precision: Precision, provider: Provider
) -> None:
    model = load(artifact, kind, "attention.onnx", precision, provider)
    operators = count_operators(model)
    assert operators["Softmax"] == n_matrices
    assert not {"Attention", "GroupQueryAttention", "LogSoftmax", "If", "Loop", "Scan"} & operators.keys()
    layers = {node.name.split("/")[0] for node in model.graph.node}
    last = "decoder.layers.1" if kind == "translation" else "encoder.layers.2"
    last_attention = "cross_attention" if kind == "translation" else "self_attention"
    assert not {f"{last}.feed_forward.hidden", f"{last}.{last_attention}.output", "decoder.final_norm"} & layers
    n_products = operators["MatMul"] + operators["MatMulInteger"] + operators["MatMulIntegerToFloat"]
    # A layer has four weights with a matrix and two with a context; cross-attention has one more, besides the memory's.
    of_encoder, of_decoder = 4 + 2, 6 + 2 + 2
    whole = {"translation": 3 * of_encoder + 1 + of_decoder + (2 + 2) + (1 + 1), "mean_classifier": 2 * of_encoder + 2}
    assert n_products == whole[kind]


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "name"), GRAPHS + ATTENTION_GRAPHS)
def test_names_shapes_and_types_at_the_boundary(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider
) -> None:
    graph = load(artifact, kind, name, precision, provider).graph
    inputs, outputs = BOUNDARY[name] if name in BOUNDARY else ATTENTION_BOUNDARY[kind]
    assert {value.name: shape(value) for value in graph.input} == inputs
    assert {value.name: shape(value) for value in graph.output} == outputs
    for value in (*graph.input, *graph.output):
        cache = value.name.startswith(("past", "present"))
        expected = onnx.TensorProto.INT64 if value.name in INTEGERS else onnx.TensorProto.FLOAT
        if value.name in INT32:
            expected = onnx.TensorProto.INT32
        if cache and provider == "cuda":
            expected = onnx.TensorProto.FLOAT16
        assert value.type.tensor_type.elem_type == expected, value.name


def test_a_decoder_step_moves_nothing_that_need_not_move(artifact: MakeArtifact) -> None:
    operators = count_operators(load(artifact, "translation", "decoder_step.onnx", "fp32"))
    assert not {"Cast", "Concat", "Expand", "Where", "Gemm", "Identity"} & operators.keys()
    assert operators["Slice"] == operators["Shape"] == 1  # for the number of candidates
    assert not {"Transpose", "GatherND"} & operators.keys()
    # Per layer: the hypotheses of a source become queries of one cross-attention, and rows again.
    assert operators["Gather"] == 2 + 2 * 2  # the first two: tokens and positions
    assert operators["MatMul"] == 2 * 6 + 1  # per layer: q, k, v in one; three more of attention; two of feed-forward


def test_the_number_of_candidates_is_read_where_cuda_reads_it_from_main_memory(artifact: MakeArtifact) -> None:
    nodes = load(artifact, "translation", "decoder_step.onnx", "fp16", "cuda").graph.node
    assert {node.op_type for node in nodes if "k" in node.input} == {"Slice", "TopK"}


def test_cross_attention_of_all_layers_is_projected_at_once(artifact: MakeArtifact) -> None:
    operators = count_operators(load(artifact, "translation", "encoder.onnx", "fp32"))
    assert operators["MatMul"] == 3 * 4 + 1


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "name"), GRAPHS + ATTENTION_GRAPHS)
def test_what_depends_on_weights_alone_is_computed_when_a_graph_is_loaded(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider, tmp_path: Path
) -> None:
    directory = artifact(kind, precision)
    graph = f"{provider}/{name}"
    tensors = tensors_of(directory, read_manifest(directory).graphs[graph])
    options = ort.SessionOptions()
    options.add_external_initializers(list(tensors), list(tensors.values()))
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    options.log_severity_level = 3
    ort.InferenceSession(directory / graph, options, providers=["CPUExecutionProvider"])
    loaded = onnx.load(tmp_path / "loaded.onnx").graph
    constants = {tensor.name for tensor in loaded.initializer} | {""}
    # Where the CPU has no kernel for float16, it computes in float32 what it has made of float16.
    casts = {node.name for node in loaded.node if node.name.startswith("InsertedPrecisionFreeCast")}
    assert not {node.name for node in loaded.node if set(node.input) <= constants} - casts


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "name"), GRAPHS + ATTENTION_GRAPHS)
def test_a_graph_names_its_tensors_and_holds_none(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider
) -> None:
    directory = artifact(kind, precision)
    stored, manifest = read_weights(directory / WEIGHTS), read_manifest(directory)
    named: dict[str, list[str]] = {}
    for tensor in load(artifact, kind, name, precision, provider).graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            assert [(entry.key, entry.value) for entry in tensor.external_data] == [("location", WEIGHTS)]
            assert tuple(tensor.dims) == stored[tensor.name].shape
            named.setdefault(np.dtype(tensor_dtype_to_np_dtype(tensor.data_type)).name, []).append(tensor.name)
        else:
            assert np.prod(tensor.dims) <= 64, f"{tensor.name} is no constant of the graph's structure"
    graph = f"{provider}/{name}"
    assert {dtype: sorted(names) for dtype, names in named.items()} == {
        dtype: list(names) for dtype, names in manifest.graphs[graph].items()
    }


def test_graphs_are_those_of_the_architecture_whatever_weights_there_are(artifact: MakeArtifact) -> None:
    def graphs(precision: Precision, provider: Provider) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (artifact("mean_classifier", precision) / provider).iterdir()}

    assert graphs("fp32", "cpu") == graphs("fp16", "cpu")
    assert graphs("fp32", "cuda") == graphs("fp16", "cuda") == graphs("int8", "cuda")


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
def test_logits_of_classes_are_made_in_float32(
    artifact: MakeArtifact, precision: Precision, provider: Provider
) -> None:
    graph = load(artifact, "mean_classifier", "classifier.onnx", precision, provider).graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    assert types["output.weight"] == types["output.bias"] == onnx.TensorProto.FLOAT


@pytest.mark.parametrize(("precision", "provider"), GRAPH_SETS)
@pytest.mark.parametrize(("kind", "name"), GRAPHS + ATTENTION_GRAPHS)
def test_nothing_of_the_exporting_machine_is_left(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider
) -> None:
    content = (artifact(kind, precision) / provider / name).read_bytes()
    assert not re.search(rb"torch|/home|/work|/tmp|\.py|aten|2\.\d+\.\d", content)
    model = load(artifact, kind, name, precision, provider)
    assert (model.producer_name, model.producer_version) == ("attend", "")
    for tensor in model.graph.initializer:  # else the checker looks for its file in the working directory
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
        if not tensor.raw_data:
            tensor.raw_data = bytes(int(np.prod(tensor.dims)) * tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    onnx.checker.check_model(model, full_check=precision != "int8")


@pytest.mark.slow
def test_a_graph_is_the_same_in_inference_mode(checkpoint: MakeCheckpoint) -> None:
    """In inference mode the exporter names constants differently."""
    model = translator_of(checkpoint("translation_rotary"))
    traced = partial(trace, DecoderStepGraph(model), decoder_step_signature(model), n_attention=2)
    in_other_modes = ir.to_proto(traced())
    with torch.inference_mode():
        assert ir.to_proto(traced()) == in_other_modes


@pytest.mark.slow
def test_a_graph_without_all_its_attention_is_refused(checkpoint: MakeCheckpoint) -> None:
    model = translator_of(checkpoint("translation"))
    with pytest.raises(ExportError, match="EncoderGraph has 4 attention sublayers and 3 nodes of attention"):
        trace(EncoderGraph(model), encoder_signature(model), n_attention=4)


def load(
    artifact: MakeArtifact, kind: Kind, name: str, precision: Precision, provider: Provider = "cpu"
) -> onnx.ModelProto:
    return onnx.load(artifact(kind, precision) / provider / name, load_external_data=False)


def count_operators(model: onnx.ModelProto) -> Counter[str]:
    """Count the operators that run with the graph: those that depend on one of its inputs."""
    known = {value.name for value in model.graph.input}
    running = []
    for node in model.graph.node:
        if known & set(node.input):
            running.append(node.op_type)
            known |= set(node.output)
    return Counter(running)


def shape(value: onnx.ValueInfoProto) -> tuple[str | int, ...]:
    return tuple(d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim)
