"""`python -m export.distillation` asks a real service."""

from pathlib import Path

import httpx

from export.distillation import distil
from model.checkpoint import load_checkpoint
from model.data import Row, read_tsv, write_tsv
from tests.running_service import ROOT

TEXTS = ["Two dogs play in the snow.", "Where is the station?", "He is reading a book."]


def test_the_french_of_a_service_is_chosen_with_the_opposite_direction(server: httpx.Client, tmp_path: Path) -> None:
    corpus, out = tmp_path / "a.tsv.xz", tmp_path / "out.tsv.xz"
    write_tsv(corpus, [Row(text, "x") for text in TEXTS])
    reverse = load_checkpoint(ROOT / "checkpoints" / "translate-fr-en")
    assert distil([corpus], str(server.base_url).rstrip("/"), reverse, out) == (len(TEXTS), len(TEXTS))
    offered = server.post(
        "/translate", json={"text": TEXTS, "source": "en", "target": "fr", "beam_size": 6, "alternatives": 5}
    )
    for row, text, best in zip(read_tsv(out), TEXTS, offered.json()["translations"], strict=True):
        assert row.left == text
        assert row.right in [best["text"], *(other["text"] for other in best["alternatives"])]
