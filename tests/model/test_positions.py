import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder
from transformers.models.t5.modeling_t5 import T5Attention

from model.config import Disentangled
from model.networks.distances import row_of_distance
from model.networks.positions import DistanceBias, Rotation, buckets_of, sinusoidal_encoding

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


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (64, 256)])
def test_distances_have_the_buckets_of_t5(buckets: int, max_distance: int, both_ways: bool) -> None:
    distances = torch.arange(-700, 701)
    expected = T5Attention._relative_position_bucket(distances, both_ways, buckets, max_distance)
    assert torch.equal(buckets_of(distances, buckets, max_distance, both_ways), expected)
    bias = DistanceBias(H, buckets, max_distance, both_ways)
    given = bias(distances.unsqueeze(0).repeat(B, 1).unsqueeze(1))  # (B, H, 1, S)
    torch.testing.assert_close(given[1, :, 0], bias.table[expected].t())


def test_distances_have_the_buckets_of_mpnet() -> None:
    distances = torch.arange(-700, 701)
    expected = MPNetEncoder.relative_position_bucket(distances)
    assert torch.equal(buckets_of(distances, 32, 128, both_ways=True), expected)


def test_distances_have_the_rows_of_deberta() -> None:
    distances = torch.arange(-700, 701)
    expected = make_log_bucket_position(distances, 256, 512).long() + 256
    rows = row_of_distance(distances, Disentangled(buckets=256, max_distance=512))
    assert rows.tolist() == expected.clamp(0, 511).tolist()
    far = row_of_distance(distances, Disentangled(buckets=0, max_distance=300))
    assert far.tolist() == (distances + 300).clamp(0, 599).tolist()
