"""`python -m export.distillation` writes the translations that two directions agree on."""

import json
import lzma
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import torch
import torch.nn.functional as F
from typer.testing import CliRunner, Result

from export import distillation
from export.distillation import LEAST_REVERSE_SCORE, REVERSE_SHARE, Candidate, Service, app, chosen, forced_scores
from model.checkpoint import Checkpoint, load_checkpoint
from model.data import DataError, Row, read_tsv
from model.networks.translator import TranslationModel
from model.tokenizer import BOS_ID
from tests.export.tiny_checkpoints import MakeCheckpoint

TEXTS = ["Two dogs run.", "She asked him.", "No."]
OFFERED = [
    [Candidate("He asked her.", -0.1), Candidate("The law is the law.", -2.0)],
    [Candidate("Run!", -0.2), Candidate("Two, and two.", -0.3), Candidate("He asked.", -0.25)],
    [Candidate("Law.", -1.0)],
]


@pytest.fixture
def reverse(checkpoint: MakeCheckpoint) -> Checkpoint:
    return load_checkpoint(checkpoint("translation"))


@pytest.fixture
def a_poor_reverse(reverse: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """Random weights give no sentence the probability that it needs."""
    monkeypatch.setattr(distillation, "LEAST_REVERSE_SCORE", -99.0)
    return reverse


def service(answer: Callable[[httpx.Request], httpx.Response]) -> Service:
    return Service(httpx.Client(transport=httpx.MockTransport(answer)), "http://service", source="fr", target="en")


@torch.inference_mode()
def score_alone(checkpoint: Checkpoint, source: str, target: str) -> float:
    """One pair without padding."""
    model = checkpoint.model
    assert isinstance(model, TranslationModel)
    source_ids, target_ids = (torch.tensor([checkpoint.tokenizer.encode(text).ids]) for text in (source, target))
    target_input = torch.cat([torch.tensor([[BOS_ID]]), target_ids[:, :-1]], dim=1)
    hidden = model(source_ids, torch.tensor([source_ids.shape[1]]), target_input)
    return -float(F.cross_entropy(model.logits(hidden[0]), target_ids[0]))


def test_a_pair_has_the_score_among_others_that_it_has_alone(reverse: Checkpoint) -> None:
    pairs = [(candidate.text, text) for text, offers in zip(TEXTS, OFFERED, strict=True) for candidate in offers]
    assert forced_scores(reverse, pairs) == pytest.approx([score_alone(reverse, *pair) for pair in pairs], abs=1e-4)


def test_a_translation_is_the_best_by_both_directions(a_poor_reverse: Checkpoint) -> None:
    def rank(text: str, candidate: Candidate) -> float:
        return (1 - REVERSE_SHARE) * candidate.score + REVERSE_SHARE * score_alone(a_poor_reverse, candidate.text, text)

    best = [max(offers, key=lambda c: rank(text, c)) for text, offers in zip(TEXTS, OFFERED, strict=True)]
    assert best != [max(offers, key=lambda c: c.score) for offers in OFFERED], "the opposite direction has no say"
    rows = list(chosen(a_poor_reverse, TEXTS, OFFERED))
    assert rows == [Row(text, candidate.text) for text, candidate in zip(TEXTS, best, strict=True)]


def test_what_tells_too_little_of_its_source_is_left_out(reverse: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(score_alone(reverse, offers[0].text, text) for text, offers in zip(TEXTS, OFFERED, strict=True)) < (
        LEAST_REVERSE_SCORE
    )
    assert list(chosen(reverse, TEXTS, OFFERED)) == []
    kept = score_alone(reverse, "Law.", "No.")
    monkeypatch.setattr(distillation, "LEAST_REVERSE_SCORE", kept - 1e-3)
    assert Row("No.", "Law.") in chosen(reverse, TEXTS, OFFERED)
    monkeypatch.setattr(distillation, "LEAST_REVERSE_SCORE", kept + 1e-3)
    assert Row("No.", "Law.") not in chosen(reverse, TEXTS, OFFERED)


def test_copies_and_texts_without_a_translation_are_left_out(a_poor_reverse: Checkpoint) -> None:
    offered = [[Candidate("two dogs run", -0.1)], [], [Candidate("Law.  ", -1.0)]]
    assert list(chosen(a_poor_reverse, TEXTS, offered)) == [Row("No.", "Law.")]


def test_candidates_are_those_that_end() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        assert (asked["text"], asked["source"], asked["target"]) == (["a", "b"], "fr", "en")
        assert asked["alternatives"] < asked["beam_size"]
        ends = {"text": "A", "score": -0.5, "finish_reason": "eos"}
        runs_on = {"text": "AA", "score": -0.1, "finish_reason": "length"}
        return httpx.Response(
            200, json={"translations": [ends | {"alternatives": [runs_on]}, runs_on | {"alternatives": []}]}
        )

    assert service(answer).candidates(["a", "b"]) == [[Candidate("A", -0.5)], []]


def test_a_refusal_is_told() -> None:
    with pytest.raises(DataError, match="422 no such language"):
        service(lambda _: httpx.Response(422, text="no such language")).candidates(["a"])


def run(checkpoint: Path, corpus: Path, url: str, out: str = "out.tsv.xz") -> Result:
    options = ["--service", url, "--reverse", str(checkpoint), "--out", str(corpus.with_name(out))]
    return CliRunner().invoke(app, [str(corpus), *options])


def test_a_service_that_is_not_there_is_named_and_nothing_is_written(
    checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    corpus = tmp_path / "a.tsv.xz"
    corpus.write_bytes(lzma.compress(b"Two dogs run.\tx\n"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        result = run(checkpoint("translation"), corpus, url)
    assert result.exit_code == 1
    assert url in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv.xz"]


def test_a_corpus_is_not_replaced(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    result = run(checkpoint("translation"), tmp_path / "a.tsv.xz", "http://127.0.0.1", out="a.tsv.xz")
    assert result.exit_code == 1
    assert "is one of the corpora" in result.stderr


def test_a_classifier_is_no_opposite_direction(checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    result = run(checkpoint("mean_classifier"), tmp_path / "a.tsv.xz", "http://127.0.0.1")
    assert result.exit_code == 1
    assert "does not translate" in result.stderr


def test_texts_are_read_once_and_drawn_at_random(
    checkpoint: MakeCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def candidates(self: Service, texts: list[str]) -> list[list[Candidate]]:
        asked.extend(texts)
        return [[Candidate("Law.", -1.0)] for _ in texts]

    monkeypatch.setattr(Service, "candidates", candidates)
    monkeypatch.setattr(distillation, "LEAST_REVERSE_SCORE", -99.0)
    corpus, known, out = (tmp_path / f"{name}.tsv.xz" for name in ("a", "known", "out"))
    corpus.write_bytes(
        lzma.compress("".join(f"x\t{text}\n" for text in [*TEXTS, "no", *("She asked " * 20,)]).encode())
    )
    known.write_bytes(lzma.compress(b"x\tTwo dogs run!\n"))
    reverse = load_checkpoint(checkpoint("translation"))
    for sample, n in ((None, 2), (2, 2), (1, 1)):
        asked.clear()
        made = distillation.distil([corpus], "", reverse, out, swap=True, without=[known], sample=sample)
        assert made == (n, n)
        assert set(asked) <= set(TEXTS[1:])
        assert len(set(asked)) == n
        assert list(read_tsv(out)) == [Row(text, "Law.") for text in asked]
