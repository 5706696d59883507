import pytest
import torch

from model.networks.positions import Rotation, sinusoidal_encoding

B, T, H, D = 2, 5, 3, 8


def test_sinusoidal_encoding_begins_with_sin_0_and_cos_0_and_turns_by_one_radian() -> None:
    table = sinusoidal_encoding(4, 6)
    torch.testing.assert_close(table[0], torch.tensor([0.0, 1.0] * 3))
    torch.testing.assert_close(table[:, 0], torch.arange(4).float().sin())


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    rotation = Rotation(64, D)
    query, key = torch.randn(1, 1, 1, D), torch.randn(1, 1, 1, D)

    def score(query_position: int, key_position: int) -> float:
        q, k = (rotation(x, torch.tensor([[p]])) for x, p in ((query, query_position), (key, key_position)))
        return float((q * k).sum())

    for distance in (0, 1, 7):
        scores = [score(position + distance, position) for position in (0, 3, 40)]
        assert scores == pytest.approx([scores[0]] * 3, abs=1e-4)
    assert score(1, 0) != pytest.approx(score(7, 0), abs=1e-3)
    assert score(1, 0) != pytest.approx(score(0, 1), abs=1e-3)


def test_a_rotation_turns_each_pair_by_its_angle() -> None:
    x = torch.randn(B, T, H, D)
    positions = torch.tensor([[0, 1, 2, 3, 4], [4, 4, 0, 1, 9]])
    turned = Rotation(16, D)(x, positions)
    frequency = 10000.0 ** (-torch.arange(0, D, 2) / D)
    angle = (positions.unsqueeze(-1) * frequency).unsqueeze(2)  # (B, T, 1, D / 2)
    pairs = torch.complex(x[..., : D // 2], x[..., D // 2 :]) * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(turned, torch.cat([pairs.real, pairs.imag], dim=-1))


def test_positions_are_counted_from_zero_unless_they_are_given() -> None:
    x, rotation = torch.randn(B, T, H, D), Rotation(16, D)
    torch.testing.assert_close(rotation(x), rotation(x, torch.arange(T).expand(B, T)))
    torch.testing.assert_close(rotation(x)[:, 0], x[:, 0])


def test_a_head_of_odd_width_cannot_be_turned() -> None:
    with pytest.raises(ValueError, match="rotary positions need an even head_dim, not 7"):
        Rotation(16, 7)
