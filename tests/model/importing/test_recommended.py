import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel import Locale
from safetensors.torch import save_file

from model.importing.families import FAMILIES
from model.importing.recommended import DATA, SIZES, Recommended, best_model, recommended, recommended_scores

ROOT = Path(__file__).parents[3]
MODELS = [model for group in recommended() for model in group.models]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.bring)
def test_a_family_takes_each_model_that_is_listed(model: Recommended, tmp_path: Path) -> None:
    if model.file:
        (tmp_path / model.file).touch()
    else:
        config = {"model_type": model.kind, "architectures": [model.heads] if model.heads else []}
        (tmp_path / "config.json").write_text(json.dumps(config))
        save_file({}, tmp_path / "model.safetensors")
    assert any(family.recognizes(tmp_path) for family in FAMILIES)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.bring)
def test_each_score_has_a_publisher(model: Recommended) -> None:
    assert bool(model.score) is (model.publisher is not None)
    if model.publisher is not None:
        assert model.publisher[1].startswith("https://")


def test_no_model_is_listed_twice() -> None:
    assert len({model.bring for model in MODELS}) == len(MODELS)


@pytest.mark.parametrize("model", [model for model in MODELS if model.directions], ids=lambda model: model.bring)
def test_directions_are_those_that_people_read(model: Recommended) -> None:
    sides = [
        dict.fromkeys(codes) for codes in zip(*(direction.split("-") for direction in model.directions), strict=True)
    ]
    named = (", ".join(Locale("en").languages[code] for code in codes) for codes in sides)
    assert model.does == " to ".join(named)


def test_the_model_of_a_direction_is_the_best_that_fits() -> None:
    """Of models in the same direction the list has the better one first, by its score."""
    in_direction: dict[str, list[Recommended]] = {}
    for model in MODELS:
        for direction in model.directions:
            in_direction.setdefault(direction, []).append(model)
    for direction, models in in_direction.items():
        scores = [float(model.score) for model in models] if len(models) > 1 else []
        assert scores == sorted(scores, reverse=True)
        for size, most in SIZES.items():
            fitting = [model for model in models if model.parameters <= most]
            best = best_model(*direction.split("-"), size)
            assert fitting[:1] == [best] or (not fitting and best and best.bring.endswith(f"/opus-mt-{direction}"))


def test_scores_are_told_by_test_set_and_target() -> None:
    assert recommended_scores("Helsinki-NLP/opus-mt-tc-big-en-fr") == {"FLORES": {"bleu": 52.2}}
    assert recommended_scores("staka/fugumt-en-ja") == {"Tatoeba": {"bleu": 32.7}}
    two_targets = {"FLORES ru": {"bleu": 32.7}, "FLORES uk": {"bleu": 32.1}}
    assert recommended_scores("Helsinki-NLP/opus-mt-tc-big-en-zle") == two_targets
    assert recommended_scores("somebody/else") == recommended_scores("BAAI/bge-m3") == {}


def test_every_publisher_is_named_by_a_score() -> None:
    text = DATA.read_text(encoding="utf-8")
    assert set(re.findall(r"^\[publishers\.(\w+)\]", text, re.MULTILINE)) == set(re.findall(r'by = "(\w+)"', text))


@pytest.mark.process
def test_the_list_is_printed_by_plain_python() -> None:
    """`make model` prints it before PyTorch is installed: -S leaves out all that is installed."""
    command = [sys.executable, "-S", "-m", "model.importing.recommended"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = printed.splitlines()
    for model in MODELS:
        (line,) = [line for line in lines if f" {model.bring} " in f"{line} " and model.does in line]
        assert model.licence in line
        assert all(score in printed for score in model.score.split(", "))


@pytest.mark.process
def test_make_without_a_model_lists_them_and_fails() -> None:
    command = ["make", "model", "FROM=", f"VENV={sys.prefix}"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert "make model FROM=" in made.stdout
    assert all(model.bring in made.stdout for model in MODELS)
