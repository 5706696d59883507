"""Weights kept in int8."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from model.checkpoint import (
    EMBEDDING,
    WEIGHTS,
    CheckpointError,
    build_model,
    load_checkpoint,
    save_checkpoint,
)
from model.compression import BLOCK, SCALES, compressed, decompressed
from tests.model.tiny_configs import TRANSLATOR, configured

torch.manual_seed(1)
MATRIX = torch.randn(3, 2 * BLOCK) * torch.tensor([1.0, 1e-3, 1e2])[:, None]


def _errors_in_steps(matrix: Tensor, kept: Tensor) -> Tensor:
    """Of each weight, as a share of the largest of its block over 127."""
    blocks = matrix.unflatten(1, (-1, BLOCK))
    steps = blocks.abs().amax(dim=2, keepdim=True) / 127
    return (kept.unflatten(1, (-1, BLOCK)) - blocks).abs() / steps.clamp(min=1e-30)


def test_a_weight_is_off_by_half_a_step_of_its_own_block() -> None:
    kept = decompressed(compressed({"matrix": MATRIX}))["matrix"]
    # The scale itself is rounded to float16: of 127 steps, at most 127 / 2048.
    assert _errors_in_steps(MATRIX[[0, 2]], kept[[0, 2]]).max() <= 0.5 + 127 / 2048
    assert (kept[1] - MATRIX[1]).abs().max() <= torch.finfo(torch.float16).smallest_normal


def test_one_large_weight_costs_its_block_alone() -> None:
    matrix = MATRIX[:1].clone()
    matrix[0, 0] = 1e3
    kept = decompressed(compressed({"matrix": matrix}))["matrix"]
    torch.testing.assert_close(kept[0, BLOCK:], MATRIX[0, BLOCK:], atol=0.02, rtol=0)
    assert not torch.allclose(kept[0, 1:BLOCK], MATRIX[0, 1:BLOCK], atol=0.02, rtol=0)


def test_the_last_block_of_a_row_may_be_shorter() -> None:
    matrix = MATRIX[[0, 2], : BLOCK + 5]
    kept = compressed({"matrix": matrix})
    assert kept["matrix"].shape == (2, BLOCK + 5)
    assert kept["matrix" + SCALES].shape == (2, 2)
    whole = torch.nn.functional.pad(matrix, (0, BLOCK - 5))
    read = torch.nn.functional.pad(decompressed(kept)["matrix"], (0, BLOCK - 5))
    assert _errors_in_steps(whole, read).max() <= 0.5 + 127 / 2048


def test_what_is_no_matrix_or_narrower_than_a_block_stays_float16() -> None:
    weights = {"bias": torch.randn(BLOCK), "narrow": torch.randn(3, BLOCK - 1), "zeros": torch.zeros(2, BLOCK)}
    kept = compressed(weights)
    assert {name for name, tensor in kept.items() if tensor.dtype == torch.int8} == {"zeros"}
    read = decompressed(kept)
    assert torch.equal(read["bias"], weights["bias"].half().float())
    assert torch.equal(read["narrow"], weights["narrow"].half().float())
    assert torch.equal(read["zeros"], weights["zeros"])


def test_compressing_again_changes_nothing() -> None:
    once = compressed({"matrix": MATRIX, "bias": MATRIX[0]})
    again = compressed(decompressed(once))
    assert once.keys() == again.keys()
    assert all(torch.equal(once[name], again[name]) for name in once)


@pytest.fixture
def checkpoint(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """One of float16, nearly all of whose matrices have a block or more in a row."""
    config = configured(TRANSLATOR | {"vocab_size": tokenizer.get_vocab_size(), "d_model": 2 * BLOCK, "n_heads": 4})
    save_checkpoint(tmp_path / "out", config, build_model(config).state_dict(), tokenizer)
    return tmp_path / "out"


def test_a_compressed_checkpoint_is_read_as_any_other(checkpoint: Path) -> None:
    before = load_checkpoint(checkpoint).model.state_dict()
    assert not load_checkpoint(checkpoint).is_compressed
    save_file(compressed(before), checkpoint / WEIGHTS)
    assert load_checkpoint(checkpoint).is_compressed
    after = load_checkpoint(checkpoint).model.state_dict()
    assert before.keys() == after.keys()
    for name, weight in before.items():
        limit = weight.abs().max() / 127 if weight.is_floating_point() else 0.0
        torch.testing.assert_close(after[name], weight, atol=float(limit), rtol=0, msg=name)


def test_int8_without_its_scales_is_refused(checkpoint: Path) -> None:
    weights = load_file(checkpoint / WEIGHTS)
    matrix = torch.zeros(weights[EMBEDDING].shape, dtype=torch.int8)
    for scales in ({}, {EMBEDDING + SCALES: torch.ones(1, 1).half()}):
        save_file(weights | {EMBEDDING: matrix} | scales, checkpoint / WEIGHTS)
        with pytest.raises(CheckpointError, match=r"embedding\.tokens\.weight is int8 without a scale"):
            load_checkpoint(checkpoint)
