"""How near rounded models are, and that rounding refuses none: layers, or graphs, stay in floats instead."""

import numpy as np
import pytest
import torch
from torch import nn

from export.artifact import served, served_models
from export.calibration import calibration_sources
from export.dense import Int8Embedding, Int8Linear
from export.nearness import answers_of_graphs, card_with
from export.quantization import quantize_model
from export.reading import Reading, answers_of, compare
from export.reference import other_last_bits, reference_of
from export.rehearsal import rehearse_int8
from export.tracing import ExportError
from manifest.file import read_manifest
from manifest.schema import Nearness
from model.checkpoint import load_checkpoint
from model.networks.layers import FeedForward
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint, translator_of

SOURCES = [[9, 12, 20, 3], [30, 3], [40, 41, 42, 43, 44, 3]]


def in_bytes(model: nn.Module) -> int:
    return sum(isinstance(module, Int8Linear | Int8Embedding) for module in model.modules())


@pytest.mark.parametrize("kind", ["translation", "mean_classifier"])
def test_a_rehearsal_answers_what_the_graphs_answer(
    artifact: MakeArtifact, checkpoint: MakeCheckpoint, kind: Kind
) -> None:
    loaded = load_checkpoint(checkpoint(kind))
    model, directory = served(loaded), artifact(kind, "int8")
    reading = Reading(model, calibration_sources(loaded))
    rehearsed = answers_of(rehearse_int8(model, quantize_model(model, {}, reading)), reading.inputs)
    manifest = read_manifest(directory)
    measured = answers_of_graphs(directory, manifest, "cpu", reading)
    assert compare(model, rehearsed, measured).value > 0.99
    assert manifest.nearness["cpu"].value == compare(model, measured, reading.answers).value


def test_tokens_are_the_same_however_many_rows_of_the_projection_are_read_at_once(
    checkpoint: MakeCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = translator_of(checkpoint("translation"))
    inputs = Reading(model).inputs
    monkeypatch.setattr("export.reading.ROWS_AT_ONCE", 7)
    with torch.inference_mode():
        expected = [model.logits(model(*each))[0].argmax(dim=-1).tolist() for each in inputs]
    assert [tokens.tolist() for tokens in answers_of(model, inputs)] == expected


def test_more_layers_stay_in_floats_until_the_model_is_as_near_as_asked(checkpoint: MakeCheckpoint) -> None:
    model = translator_of(checkpoint("translation"))
    reading = Reading(model)
    some, none = (in_bytes(quantize_model(model, {}, reading, least)) for least in (0.0, 1.0))
    assert some > 15
    assert none == 0


def test_a_model_that_float16_cannot_hold_is_not_refused_and_has_no_graphs_for_cuda(checkpoint: MakeCheckpoint) -> None:
    loaded = load_checkpoint(checkpoint("translation"))
    assert served_models(loaded, "fp32").keys() == {"cpu", "cuda"}
    layer = loaded.model.get_submodule("decoder.layers.1.feed_forward")
    assert isinstance(layer, FeedForward)
    with torch.no_grad():
        layer.hidden.weight *= 2.0**18
        layer.hidden.bias *= 2.0**18
        layer.output.weight *= 2.0**-18
    assert served_models(loaded, "fp32").keys() == {"cpu"}


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_by_name(checkpoint: MakeCheckpoint, number: float) -> None:
    loaded = load_checkpoint(checkpoint("mean_classifier"))
    loaded.model.state_dict()["encoder.layers.0.feed_forward.hidden.weight"][3, 2] = number
    with pytest.raises(ExportError, match=r"`encoder\.layers\.0\.feed_forward\.hidden\.weight` .* not finite"):
        served(loaded)


def test_a_model_that_amplifies_rounding_spreads_more(checkpoint: MakeCheckpoint) -> None:
    """The proof allows for it: 3 + 2 layers with weights 8 times as large."""
    model = translator_of(checkpoint("translation"))

    def spread() -> float:
        with torch.inference_mode():
            reference = reference_of(model, SOURCES, SOURCES)["hidden states"]
            with other_last_bits(model):
                again = reference_of(model, SOURCES, SOURCES)["hidden states"]
        return max(float(np.abs(a - r).max()) for a, r in zip(again, reference, strict=True))

    before = spread()
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            if parameter.ndim == 2:
                parameter *= 8
    assert spread() > 3 * before > 0


def test_the_card_says_how_near_it_is_once(artifact: MakeArtifact) -> None:
    manifest = read_manifest(artifact("translation", "int8"))
    near = {"cpu": Nearness(precision="int8", float_layers=("output",), same=0.981, of=300)}
    manifest = manifest.model_copy(update={"nearness": near})
    card = card_with("# A model\n\nIt translates.\n", manifest)
    assert card.startswith("# A model\n\nIt translates.\n\n## How near it is\n")
    assert "`cpu`: int8, 1 layers in float32: 98.1 % of 300 next tokens are those of float32." in card
    assert "In float32: `output`." in card
    assert card_with(card, manifest) == card
