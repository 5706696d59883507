"""The proof itself: it must be able to fail."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from export.examination import Examination
from export.manifest import Precision, read_manifest
from export.proof import RANDOM_LENGTHS, TEXTS, ProofError, inputs, prove
from model.checkpoint import load_checkpoint
from tests.export.tiny_checkpoints import MakeArtifact, MakeCheckpoint

ENCODER, DECODER, ATTENTION = "encoder.onnx", "decoder_step.onnx", "attention.onnx"


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
@pytest.mark.parametrize(
    "wrong",
    [
        {
            (ENCODER, "memory_projection"): "encoder outputs",
            (ATTENTION, "encoder.layers.0.feed_forward.output"): "encoder attention",
        },
        {
            (ENCODER, "encoder.final_norm"): "hidden states",
            (ATTENTION, "decoder_inputs.1"): "decoder attention",
        },
        {
            (DECODER, "decoder.layers.1.feed_forward.hidden"): "decoder steps",
            (ATTENTION, "queries.1"): "cross attention",
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
) -> None:
    """In each graph: what is said of attention.onnx does not depend on the others, nor they on it."""
    spoiled = tmp_path / "spoiled"
    shutil.copytree(artifact("translation", precision), spoiled)
    for graph, layer in wrong:
        model = ir.load(spoiled / graph)
        bias = model.graph.initializers[f"{layer}.bias"]
        assert bias.const_value is not None
        values = bias.const_value.numpy().copy()
        values[::2] += 0.5  # not all of them: layer normalization would take that away again
        bias.const_value = ir.tensor(values, name=bias.name)
        ir.save(model, spoiled / graph)
    with pytest.raises(ProofError) as found:
        prove(spoiled, read_manifest(spoiled), load_checkpoint(checkpoint("translation")))
    failures = str(found.value).split("; ")
    for failure in wrong.values():
        assert any(line.startswith(f"{failure}: relative error") for line in failures), failure


def select_the_least_probable(graph: ir.Graph) -> None:
    """Of groups of tokens: no matter where all are asked for."""
    next(node for node in graph if node.op_type == "TopK").attributes["largest"] = ir.AttrInt64("largest", 0)


def read_one_row_of_a_source(graph: ir.Graph) -> None:
    """Places beyond the first row of each source are those of the last one."""
    (places,) = (value for value in graph.inputs if value.name == "places_of_rows")
    users = [use.node for use in places.uses()]
    last = ir.Value(name="last", const_value=ir.tensor(np.array(len(TEXTS) + len(RANDOM_LENGTHS) - 1)))
    graph.initializers.add(last)
    at_most_last = ir.node("Min", [places, last])
    graph.insert_before(users[0], at_most_last)
    for node in users:
        node.replace_input_with(list(node.inputs).index(places), at_most_last.outputs[0])


@pytest.mark.parametrize(
    ("spoil", "failure"),
    [(select_the_least_probable, "few candidates"), (read_one_row_of_a_source, "decoder steps in beams")],
)
def test_what_only_searches_meet_is_found(
    artifact: MakeArtifact,
    checkpoint: MakeCheckpoint,
    tmp_path: Path,
    spoil: Callable[[ir.Graph], None],
    failure: str,
) -> None:
    spoiled = tmp_path / "spoiled"
    shutil.copytree(artifact("translation", "int8"), spoiled)
    model = ir.load(spoiled / DECODER)
    spoil(model.graph)
    ir.save(model, spoiled / DECODER)
    with pytest.raises(ProofError) as found:
        prove(spoiled, read_manifest(spoiled), load_checkpoint(checkpoint("translation")))
    assert str(found.value).startswith(failure)
    assert ";" not in str(found.value)  # nothing else notices


def test_not_a_number_is_no_proof() -> None:
    examination = Examination("int8")
    examination.close("logits", [np.array([1.0, np.nan])], [np.array([1.0, 2.0])])
    assert examination.failed == ["logits: relative error nan (tolerance 1e-01)"]


def test_int8_may_disagree_with_pytorch_but_never_with_itself() -> None:
    examination = Examination("int8")
    examination.agree("translations", [[4, 5]], [[4, 6]])
    assert not examination.failed
    examination.equal("translations together and alone", [[4, 5]], [[4, 6]])
    assert examination.failed


def test_fp32_may_not_disagree() -> None:
    examination = Examination("fp32")
    examination.agree("translations", [[4, 5]], [[4, 6]])
    assert examination.failed == ["translations: 0 of 1 agree"]


def test_inputs_are_real_and_random_and_within_the_limit(artifact: MakeArtifact, checkpoint: MakeCheckpoint) -> None:
    directory = artifact("translation", "int8")
    manifest = read_manifest(directory)
    sequences = inputs(load_checkpoint(checkpoint("translation")).tokenizer, manifest)
    lengths = [len(sequence) for sequence in sequences]
    assert max(lengths) <= manifest.limits.max_source_tokens
    assert min(lengths) == 1
    assert len(set(lengths)) > 8
