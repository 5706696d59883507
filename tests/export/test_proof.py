"""The proof itself: it must be able to fail."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from export.examination import Examination, relative_error
from export.proof import RANDOM_LENGTHS, TEXTS, ProofError, proof_sequences, prove
from export.reference import centred
from manifest.file import read_manifest
from manifest.layout import WEIGHTS
from manifest.schema import Precision, Provider
from model.checkpoint import load_checkpoint
from model.weights import read_weights, write_weights
from tests.export.tiny_checkpoints import GRAPHS, LAYERS, MakeArtifact, MakeCheckpoint

ENCODER, DECODER, ATTENTION = "encoder.onnx", "decoder_step.onnx", "attention.onnx"
HEAD_DIM = LAYERS["d_model"] // LAYERS["n_heads"]


@pytest.mark.parametrize(("precision", "provider"), GRAPHS)
@pytest.mark.parametrize(
    "wrong",
    [
        {
            (ENCODER, "decoder.layers.1.cross_attention.input"): "encoder outputs",
            (ATTENTION, "encoder.layers.0.feed_forward.output"): "encoder attention",
        },
        {
            (ENCODER, "encoder.final_norm"): "hidden states",
            (ATTENTION, "decoder.layers.1.self_attention.input"): "decoder attention",
        },
        {
            (DECODER, "decoder.layers.1.feed_forward.hidden"): "decoder steps",
            (ATTENTION, "decoder.layers.1.cross_attention.input"): "cross attention",
        },
        {(DECODER, "decoder.layers.0.cross_attention.output"): "decoder steps"},
    ],
    ids=lambda wrong: ", ".join(wrong.values()),
)
def test_one_wrong_bias_is_found(
    artifact: MakeArtifact,
    checkpoint: MakeCheckpoint,
    tmp_path: Path,
    wrong: dict[tuple[str, str], str],
    precision: Precision,
    provider: Provider,
) -> None:
    """One error in each graph at a time; what the proof says of attention.onnx is independent of the other graphs."""
    spoiled = shutil.copytree(artifact("translation", precision), tmp_path / "spoiled")
    for name, layer in wrong:
        path = spoiled / provider / name
        model = ir.load(path)
        bias = model.graph.initializers[f"{layer}.bias"]
        assert bias.const_value is not None
        error = np.zeros(bias.const_value.shape.numpy(), bias.const_value.dtype.numpy())
        # Attention multiplies the query's bias by its factor, and the other biases of this layer change no matrix.
        queries_alone = name == ATTENTION and layer.endswith("cross_attention.input")
        error[::2] += 0.5 * HEAD_DIM**0.5 if queries_alone else 0.5  # all of them layer normalization would take away
        users = [use.node for use in bias.uses()]
        added = ir.node("Add", [bias, ir.Value(name="error", const_value=ir.tensor(error, name="error"))])
        model.graph.initializers.add(added.inputs[1])  # type: ignore[arg-type]
        model.graph.insert_before(users[0], added)
        for node in users:
            node.replace_input_with(list(node.inputs).index(bias), added.outputs[0])
        path.write_bytes(ir.to_proto(model).SerializeToString())
    with pytest.raises(ProofError) as found:
        prove(spoiled, read_manifest(spoiled), load_checkpoint(checkpoint("translation")), everything=True)
    failures = str(found.value).split("; ")
    assert all(line.startswith(f"{provider}: ") for line in failures)
    for failure in wrong.values():
        assert any(line.startswith(f"{provider}: {failure}: relative error") for line in failures), failure


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_one_wrong_tensor_is_found_however_small_it_is(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, precision: Precision
) -> None:
    spoiled = shutil.copytree(artifact("translation", precision), tmp_path / "spoiled")
    tensors = read_weights(spoiled / WEIGHTS)
    tensors["encoder.layers.2.self_attention.output.bias"][::2] += 1e-4
    write_weights(spoiled / WEIGHTS, tensors)
    (spoiled / "manifest.json").rename(tmp_path / "manifest.json")  # its checksums would show the damage
    with pytest.raises(
        ProofError, match=r"weights: tensors farther .*: 1 \(encoder\.layers\.2\.self_attention\.output\.bias\)"
    ):
        prove(spoiled, read_manifest(tmp_path), load_checkpoint(checkpoint("translation")))


def select_the_least_probable(graph: ir.Graph) -> None:
    """Select the worst groups of tokens, which only matters if not all tokens are asked for."""
    next(node for node in graph if node.op_type == "TopK").attributes["largest"] = ir.AttrInt64("largest", 0)


def read_one_row_of_a_source(graph: ir.Graph) -> None:
    """Replace places beyond the first row of each source by that of the last source."""
    (places,) = (value for value in graph.inputs if value.name == "places_of_rows")
    users = [use.node for use in places.uses()]
    last = ir.Value(name="last", const_value=ir.tensor(np.array(len(TEXTS) + len(RANDOM_LENGTHS) - 1)))
    graph.initializers.add(last)
    at_most_last = ir.node("Min", [places, last])
    graph.insert_before(users[0], at_most_last)
    for node in users:
        node.replace_input_with(list(node.inputs).index(places), at_most_last.outputs[0])


@pytest.mark.parametrize(
    ("spoil", "failure"), [(select_the_least_probable, "few candidates"), (read_one_row_of_a_source, "decoder steps")]
)
def test_what_only_searches_meet_is_found(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, tmp_path: Path, spoil: Callable[[ir.Graph], None], failure: str
) -> None:
    spoiled = shutil.copytree(artifact("translation", "int8"), tmp_path / "spoiled")
    path = spoiled / "cpu" / DECODER
    model = ir.load(path)
    spoil(model.graph)
    path.write_bytes(ir.to_proto(model).SerializeToString())
    with pytest.raises(ProofError) as found:
        prove(spoiled, read_manifest(spoiled), load_checkpoint(checkpoint("translation")))
    assert str(found.value).startswith(f"cpu: {failure}")
    assert ";" not in str(found.value)  # nothing else notices


def test_not_a_number_is_no_proof() -> None:
    examination = Examination()
    examination.check_close("logits", [np.array([1.0, np.nan])], [np.array([1.0, 2.0])])
    assert examination.failed == ["logits: relative error nan (tolerance 1e-04)"]
    examination.allow_for({"logits": math.nan})
    assert examination.failed


def test_inputs_are_real_and_random_and_within_the_limit(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    directory = artifact("translation", "int8")
    manifest = read_manifest(directory)
    sequences = proof_sequences(load_checkpoint(checkpoint("translation")), manifest)
    lengths = [len(sequence) for sequence in sequences]
    assert max(lengths) <= manifest.limits.max_source_tokens
    assert min(lengths) == 1
    assert len(set(lengths)) > 8


def test_a_large_vocabulary_is_centred_exactly() -> None:
    distributions = np.random.default_rng(0).normal(-12.6, 0.6, (2, 250_000)).astype(np.float32)
    expected = distributions - distributions.astype(np.float64).mean(axis=-1, keepdims=True)
    for given in (distributions, np.asfortranarray(distributions)):
        assert relative_error([centred(given)], [expected.astype(np.float32)]) < 1e-6
