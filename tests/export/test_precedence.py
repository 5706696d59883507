"""What is said after an import about who answers is what the service does."""

from pathlib import Path
from typing import Any

import pytest

from export.precedence import answered_requests, form_of
from manifest.file import read_manifest
from manifest.schema import Manifest

ROOT = Path(__file__).parents[2]
NAMES = "translate-en-fr", "sentiment-imdb"
TRANSLATOR, CLASSIFIER = (read_manifest(ROOT / "artifacts" / name) for name in NAMES)
IMPORTED = {"origin": {"source": "owner/name", "revision": None, "imported": "2026-11-29T10:00:00+00:00"}}


def changed(manifest: Manifest, **changes: Any) -> Manifest:
    return Manifest.model_validate(manifest.model_dump() | changes)


def languages(*codes: str) -> list[dict[str, Any]]:
    return [{"code": code, "source_prefix": (), "target_prefix": ()} for code in codes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the manifests of two shipped models, a damaged one, and a model that is being written."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_bytes((ROOT / "artifacts" / name / "manifest.json").read_bytes())
    for name in ("damaged", ".new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (changed(TRANSLATOR, **IMPORTED), "It answers requests that name no model: /translate en-fr in place of translate-en-fr. ATTEND_MODELS, "),  # noqa: E501
        (changed(TRANSLATOR, sources=languages("eng_Latn"), targets=languages("fra_Latn"), **IMPORTED), "It answers requests that name no model: /translate en-fr in place of translate-en-fr. "),  # noqa: E501
        (changed(TRANSLATOR, evaluation={}, **IMPORTED), "It answers only requests that name it, since it has no scores: translate-en-fr goes on with /translate en-fr. ATTEND_MODELS, "),  # noqa: E501
        (changed(TRANSLATOR, parameters=1_000), "It answers only requests that name it: translate-en-fr goes on with /translate en-fr. "),  # noqa: E501
        (changed(TRANSLATOR, targets=languages("it"), **IMPORTED), "It answers requests that name no model: /translate en-it alone."),  # noqa: E501
        (changed(TRANSLATOR, sources=languages(*["en", "fr", "de", "it"]), targets=languages(*["en", "fr", "de", "it"]), **IMPORTED), "It answers requests that name no model: 11 directions of /translate alone; /translate en-fr in place of translate-en-fr. "),  # noqa: E501
        (changed(CLASSIFIER, **IMPORTED), "It answers only requests that name it: sentiment-imdb goes on with /classify. "),  # noqa: E501
        (changed(CLASSIFIER, pairs=True, **IMPORTED), "It answers requests that name no model: /classify with `text_pair` alone. ATTEND_MODELS, "),  # noqa: E501
        (changed(CLASSIFIER, pairs=True, labels=["score"], **IMPORTED), "It answers requests that name no model: /rerank alone."),  # noqa: E501
    ],
)  # fmt: skip
def test_one_line_says_which_requests_a_new_model_answers(folder: Path, manifest: Manifest, says: str) -> None:
    said = answered_requests(changed(manifest, name="new"), folder / "new") or ""
    assert said.startswith(says)
    assert "\n" not in said


def test_of_a_model_that_only_its_name_chooses_nothing_is_said(folder: Path) -> None:
    writes_text = changed(TRANSLATOR, name="new", targets=languages("und"), prompts={})
    assert answered_requests(writes_text, folder / "new") is None


def test_a_model_that_is_exported_again_does_not_stand_in_its_own_way(folder: Path) -> None:
    assert (answered_requests(TRANSLATOR, folder / TRANSLATOR.name) or "").endswith("/translate en-fr alone.")


@pytest.mark.parametrize(
    ("code", "form"),
    [("fra_Latn", "fr"), ("kor_Hang", "ko"), ("jpn_Jpan", "ja"), ("zho_Hans", "zh"), ("zho_Hant", "zh-Hant")],
)
def test_codes_of_models_name_a_language_and_its_unusual_script(code: str, form: str) -> None:
    assert form_of(code) == form
