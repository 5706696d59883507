"""The file of weights: it returns what was written, aligned for fast reading; anything else is refused."""

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from manifest.layout import WEIGHTS
from model.weights import (
    CACHE_LINE,
    SCALES,
    WeightsError,
    WithoutInitialization,
    assign_weights,
    dequantize,
    read_weights,
    write_weights,
)

TENSORS = {
    "odd": torch.arange(5, dtype=torch.int8),
    "table": torch.randn(16, 24),
    "bias": torch.randn(7),
    "flags": torch.arange(9) > 4,
    "halves": torch.randn(3, 32).half(),
    "number": torch.tensor(0.5),
    "numbers": torch.randint(-9, 9, (2, 64), dtype=torch.int8),
}


def test_any_reader_of_safetensors_reads_what_is_written(tmp_path: Path) -> None:
    write_weights(tmp_path / WEIGHTS, TENSORS)
    for read in (load_file(tmp_path / WEIGHTS), read_weights(tmp_path / WEIGHTS)):
        assert read.keys() == TENSORS.keys()
        for name, tensor in TENSORS.items():
            assert read[name].dtype == tensor.dtype
            assert torch.equal(read[name], tensor)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, None])
def test_floating_point_tensors_are_written_in_the_type_that_is_asked_for(
    tmp_path: Path, dtype: torch.dtype | None
) -> None:
    tensors = TENSORS | {"brain": torch.randn(5, 3).bfloat16(), "double": torch.randn(4).double()}
    write_weights(tmp_path / WEIGHTS, tensors, dtype)
    for name, found in load_file(tmp_path / WEIGHTS).items():
        own = torch.float32 if name in ("brain", "double") else tensors[name].dtype
        expected = tensors[name].to((dtype or own) if tensors[name].is_floating_point() else own)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def test_the_same_tensors_are_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    write_weights(tmp_path / "one", TENSORS)
    write_weights(tmp_path / "other", dict(reversed(TENSORS.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_whole_cache_lines_and_all_numbers_are_aligned(tmp_path: Path) -> None:
    write_weights(tmp_path / WEIGHTS, TENSORS)
    content = (tmp_path / WEIGHTS).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for name, tensor in TENSORS.items():
        place = start + header[name]["data_offsets"][0]
        assert place % (tensor.element_size() if tensor.nbytes % CACHE_LINE else CACHE_LINE) == 0, name


def test_bytes_are_multiplied_by_the_scale_of_their_row() -> None:
    numbers, scales = torch.randint(-90, 91, (3, 5), dtype=torch.int8), torch.rand(3, 1)
    assert torch.equal(dequantize("w", {"w": numbers, "w" + SCALES: scales}), numbers * scales)


def test_bytes_are_divided_by_the_smoothing_of_their_column() -> None:
    numbers, scales = torch.randint(-90, 91, (3, 5), dtype=torch.int8), torch.rand(3, 1)
    stored = {"layer.weight": numbers, "layer.weight.scales": scales, "layer.smoothing": torch.rand(5) + 0.1}
    assert torch.equal(dequantize("layer.weight", stored), numbers * scales / stored["layer.smoothing"])
    stored["layer.smoothing"] = torch.ones(3)
    with pytest.raises(WeightsError, match=r"the smoothing of layer\.weight must be a number for each column"):
        dequantize("layer.weight", stored)


@pytest.mark.parametrize("bias", [torch.randn(4), torch.randn(4).half()])
def test_a_model_shares_what_is_stored_in_its_type_and_never_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bias: Tensor
) -> None:
    monkeypatch.setattr("model.weights.LARGE_SIZE", 12)
    tensors = {"weight": torch.randn(4, 3), "bias": bias}
    write_weights(tmp_path / WEIGHTS, tensors)
    stored, model = read_weights(tmp_path / WEIGHTS), nn.Linear(3, 4)
    assign_weights(model, stored)
    assert model.weight.data_ptr() == stored["weight"].data_ptr()
    assert model.bias.dtype == torch.float32
    assert torch.equal(model.bias, tensors["bias"].float())
    with torch.no_grad():
        model.weight.add_(1)
    assert torch.equal(load_file(tmp_path / WEIGHTS)["weight"], tensors["weight"])
    del stored, model.weight  # the small bias is a copy: the file is no longer mapped
    assert sys.platform != "linux" or str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_what_is_read_next_gets_no_random_numbers_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise AssertionError("random numbers are made")

    for name in ("normal_", "uniform_"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    with WithoutInitialization():
        layers = [nn.Linear(3, 4), nn.Embedding(5, 3), nn.LSTM(3, 4), nn.LayerNorm(3)]
        table = torch.arange(3.0)
    assert layers[0].weight.shape == (4, 3)
    assert table.tolist() == [0, 1, 2]
    with pytest.raises(AssertionError):
        nn.Linear(3, 4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"weight": torch.zeros(4, 3, dtype=torch.int8)}, "weight is int8 without a scale for each row"),
        ({"weight": torch.zeros(4, 3, dtype=torch.int8), "weight.scales": torch.ones(1, 1)}, "weight is int8 without"),
        ({"weight": torch.zeros(4, 3, dtype=torch.int8), "weight.scales": torch.ones(4, 3)}, "weight is int8 without"),
        ({"weight": torch.zeros(3, 4)}, "size mismatch"),
        ({"weight": None}, "weight of the model are missing"),
        ({"other": torch.zeros(1)}, "the model has no other"),
        ({"other.scales": torch.zeros(1)}, r"the model has no other\.scales"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Tensor | None], sentence: str) -> None:
    tensors = {"weight": torch.zeros(4, 3), "bias": torch.zeros(4)} | changes
    with pytest.raises(WeightsError, match=sentence):
        assign_weights(nn.Linear(3, 4), {name: tensor for name, tensor in tensors.items() if tensor is not None})


def test_scales_of_activations_are_nothing_that_a_model_computes_with() -> None:
    layer = nn.Linear(3, 4)
    assign_weights(layer, {"weight": torch.ones(4, 3).half(), "bias": torch.ones(4), "input.step": torch.ones(())})
    assert torch.equal(layer.weight, torch.ones(4, 3))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write_weights(tmp_path / WEIGHTS, TENSORS)
    (tmp_path / WEIGHTS).write_bytes((tmp_path / WEIGHTS).read_bytes()[:-1])
    with pytest.raises(WeightsError, match=r"weights\.safetensors is damaged"):
        read_weights(tmp_path / WEIGHTS)
