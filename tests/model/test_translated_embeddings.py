"""Embeddings of a new language's pieces: on lexicons that are known, and through `train` on a few sentences."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from model.checkpoint import load_checkpoint, load_training
from model.config import Config, ConfigError
from model.training.train import train
from model.training.translated_embeddings import Lexicon, lexicon, linked_pieces, translated_embeddings
from tests.model.tiny_configs import TRANSLATOR, configured
from tests.model.tiny_training import PAIRS, WARNINGS, lines

pytestmark = WARNINGS
FRENCH = {"a": "un", "dog": "chien", "cat": "chat", "runs": "court", "sleeps": "dort"}
GERMAN = {"a": "ein", "dog": "hund", "cat": "kater", "runs": "flitzt", "sleeps": "pennt"}
BARELY = {"max_steps": 1, "checkpoint_every_steps": 1, "learning_rate": 1e-9}


def test_pieces_are_translated_by_what_stands_beside_them_wherever_it_stands() -> None:
    """Each text is three of nine words; word i is i + 100, in another order."""
    texts = [np.array(text) for text in product(range(10, 19), repeat=3) if len(set(text)) == 3]
    found = lexicon([(text, 100 + text[::-1]) for text in texts])
    best = {piece: found.translations[found.pieces == piece][0] for piece in range(10, 19)}
    assert best == {word: 100 + word for word in range(10, 19)}
    assert found.probabilities.min() > 0.9


def test_what_every_text_has_beside_it_is_no_translation() -> None:
    found = lexicon([(np.array([word]), np.array([99, 100 + word])) for word in range(10, 60) for _ in range(5)])
    assert set(found.translations[found.probabilities > 0.4]) == {*range(110, 160)}


def test_no_link_is_learnt_of_long_texts_or_of_none() -> None:
    assert lexicon([(np.full(100, 7), np.array([8]))] * 5).pieces.size == 0
    assert lexicon([]).pieces.size == 0


def test_a_piece_of_one_text_is_not_linked_with_all_that_is_rare_beside_it() -> None:
    usual = [(np.array([word, 20]), np.array([100 + word, 120])) for word in range(10, 13) for _ in range(9)]
    found = lexicon([*usual, (np.array([10, 20, 30]), np.array([110, 120, 131, 132, 133, 134, 135]))])
    assert set(found.pieces) == {10, 11, 12, 20}


def test_an_embedding_is_the_mean_of_translations_of_usual_length() -> None:
    known = torch.eye(4) * torch.tensor([1.0, 3.0, 3.0, 5.0])
    to_pivot = Lexicon(np.array([5, 6]), np.array([8, 9]), np.array([0.8, 0.9]))
    from_pivot = Lexicon(np.array([8, 8]), np.array([1, 2]), np.array([0.4, 0.4]))
    assert linked_pieces(to_pivot, from_pivot, size=10).tolist() == [5], "of what 9 is nobody says"
    embeddings = translated_embeddings(known, to_pivot, from_pivot, size=10)
    assert embeddings.shape == (10, 4)
    torch.testing.assert_close(embeddings[5], torch.tensor([0.0, 1, 1, 0]) * 3 / 2**0.5)


def config(**model: str) -> Config:
    """Two layers, and a schedule that leaves what a model begins with."""
    data = {"train": [{"file": "pairs.tsv", "licence": "ours"}]}
    tiny = TRANSLATOR | {"vocab_size": 300, "n_encoder_layers": 1, "n_decoder_layers": 1} | model
    return configured(tiny, data=data, training=BARELY)


def with_pivot(another: Config) -> Config:
    pivot = [{"file": "pivot.tsv", "licence": "ours"}]
    return Config.model_validate(another.model_dump() | {"data": another.model_dump()["data"] | {"pivot": pivot}})


@pytest.mark.parametrize("shared", ["target", "source"])
def test_training_with_a_new_vocabulary_begins_with_the_embeddings_of_translations(tmp_path: Path, shared: str) -> None:
    (tmp_path / "pairs.tsv").write_text(lines(PAIRS * 4))
    (tmp_path / "pivot.tsv").write_text(lines(PAIRS * 4))
    train(config(), tmp_path, tmp_path / "run", tmp_path / "en-fr")
    new = config(source="de") if shared == "target" else config(target="de")
    german = {(english if shared == "target" else FRENCH[english]): word for english, word in GERMAN.items()}
    side = 0 if shared == "target" else 1
    rows = [[" ".join(german.get(word, word) for word in row[side].split()), row[1 - side]] for row in PAIRS]
    (tmp_path / "pairs.tsv").write_text(lines([(row[side], row[1 - side]) for row in rows] * 4))
    train(with_pivot(new), tmp_path, tmp_path / "run 2", tmp_path / "new", tmp_path / "en-fr", new_vocabulary=True)
    before, after = load_checkpoint(tmp_path / "en-fr"), load_checkpoint(tmp_path / "new")
    known, learnt = (checkpoint.model.state_dict()["embedding.tokens.weight"] for checkpoint in (before, after))
    old, own = before.tokenizer.get_vocab(), after.tokenizer.get_vocab()
    alike = {
        word: float(cosine_similarity(learnt[own[f"Ġ{translation}"]], known[old[f"Ġ{word}"]], dim=0))
        for word, translation in german.items()
        if f"Ġ{translation}" in own
    }
    assert len(alike) >= 3, "whole words"
    assert min(alike.values()) > 0.7, alike
    shared = sorted(old.keys() & own.keys())
    kept = (weights[[vocabulary[piece] for piece in shared]] for weights, vocabulary in ((learnt, own), (known, old)))
    torch.testing.assert_close(*kept, atol=1e-3, rtol=0)


def test_training_refuses_a_pivot_between_models_that_have_both_languages_in_common(tmp_path: Path) -> None:
    for name in ("pairs.tsv", "pivot.tsv"):
        (tmp_path / name).write_text(lines(PAIRS * 4))
    train(config(), tmp_path, tmp_path / "run", tmp_path / "en-fr")
    with pytest.raises(ConfigError, match="do not share their source or their target alone"):
        train(with_pivot(config()), tmp_path, tmp_path / "run 2", tmp_path / "new", tmp_path / "en-fr", True)


def test_a_run_that_is_resumed_knows_of_its_new_vocabulary_and_needs_no_pivot(tmp_path: Path) -> None:
    for name in ("pairs.tsv", "pivot.tsv"):
        (tmp_path / name).write_text(lines(PAIRS * 4))
    train(config(), tmp_path, tmp_path / "run", tmp_path / "en-fr")
    (tmp_path / "pairs.tsv").write_text(lines([(GERMAN[row[0].split()[1]], row[1]) for row in PAIRS] * 4))
    new = with_pivot(config(source="de"))
    train(new, tmp_path, tmp_path / "run 2", tmp_path / "once", tmp_path / "en-fr", new_vocabulary=True)
    (tmp_path / "pivot.tsv").unlink()
    train(new, tmp_path, tmp_path / "run 2", tmp_path / "again")
    once, again = load_checkpoint(tmp_path / "once"), load_checkpoint(tmp_path / "again")
    assert again.tokenizer.get_vocab() == once.tokenizer.get_vocab()
    assert load_training(tmp_path / "again") == load_training(tmp_path / "once")
    for name, weight in again.model.state_dict().items():
        assert torch.equal(weight, once.model.state_dict()[name]), name
