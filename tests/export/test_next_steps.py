"""The request that export ends with is one that the service answers."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from export.next_steps import next_steps
from manifest.file import read_manifest
from manifest.schema import ANY_LANGUAGE, NO_LANGUAGE, Manifest
from service.schemas.requests import ClassifyRequest, EmbedRequest, RerankRequest, TranslateRequest

ROOT = Path(__file__).parents[2]
TRANSLATOR, CLASSIFIER = (read_manifest(ROOT / "artifacts" / name) for name in ("translate-en-fr", "sentiment-imdb"))


def asked(manifest: Manifest) -> tuple[str, dict[str, Any]]:
    """The path and the body of the request."""
    command = next_steps(manifest, Path("artifacts/mine")).splitlines()[-1]
    _, _, url, *_, body = shlex.split(command)
    return url.removeprefix("localhost:8000"), json.loads(body)


def changed(manifest: Manifest, **changes: Any) -> Manifest:
    return Manifest.model_validate(manifest.model_dump() | changes)


def languages(*codes: str) -> list[dict[str, Any]]:
    return [{"code": code, "source_prefix": (), "target_prefix": ()} for code in codes]


@pytest.mark.parametrize(
    ("sources", "targets", "direction"),
    [
        (["en"], ["fr"], ("en", "fr")),
        (["ace_Arab", "deu_Latn", "eng_Latn"], ["ace_Arab", "eng_Latn", "fra_Latn"], ("eng_Latn", "fra_Latn")),
        (["fi"], ["et"], ("fi", "et")),
        (["jpn"], ["jpn", "eng"], ("jpn", "eng")),
    ],
)
def test_a_translator_is_asked_for_a_direction_that_it_has(
    sources: list[str], targets: list[str], direction: tuple[str, str]
) -> None:
    path, body = asked(changed(TRANSLATOR, sources=languages(*sources), targets=languages(*targets)))
    assert (path, (body["source"], body["target"])) == ("/translate", direction)
    TranslateRequest.model_validate(body)


@pytest.mark.parametrize(("prompts", "asks"), [({}, set()), ({"summarization": "summarize: "}, {"prompt"})])
def test_a_model_whose_tasks_are_texts_is_asked_without_languages(prompts: dict[str, str], asks: set[str]) -> None:
    sides = {"sources": languages(ANY_LANGUAGE), "targets": languages(NO_LANGUAGE)}
    path, body = asked(changed(TRANSLATOR, **sides, prompts=prompts))
    assert (path, body.keys()) == ("/translate", {"text", "model"} | asks)
    TranslateRequest.model_validate(body)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, "/classify"),
        ({"pairs": True}, "/classify"),
        ({"pairs": True, "labels": ["ENTAILMENT", "OTHER"]}, "/classify"),
        ({"pairs": True, "labels": ["score"]}, "/rerank"),
        ({"task": "embedding", "labels": []}, "/embed"),
    ],
    ids=["classifier", "reads pairs", "inference", "ranker", "encoder"],
)
def test_every_other_model_is_asked_for_what_it_does(changes: dict[str, Any], path: str) -> None:
    found, body = asked(CLASSIFIER.model_copy(update=changes))
    assert (found, body["model"]) == (path, "sentiment-imdb")
    {"/classify": ClassifyRequest, "/embed": EmbedRequest, "/rerank": RerankRequest}[path].model_validate(body)


@pytest.mark.parametrize(("labels", "has_pair"), [(["good", "bad"], False), (["contradiction", "entailment"], True)])
def test_only_a_classifier_of_pairs_is_asked_for_a_pair(labels: list[str], has_pair: bool) -> None:
    """Nearly all classifiers are BERTs, which could read pairs."""
    assert ("text_pair" in asked(changed(CLASSIFIER, pairs=True, labels=labels))[1]) == has_pair


def test_a_name_needs_no_care_in_a_shell() -> None:
    assert asked(changed(CLASSIFIER, name='it\'s "mine"'))[1]["model"] == 'it\'s "mine"'


@pytest.mark.parametrize(
    ("out", "said"), [("artifacts/x", "  make serve"), ("/a b/x", "  ATTEND_ARTIFACTS='/a b' make serve")]
)
def test_the_folder_is_told_if_it_is_not_the_one_that_is_served(out: str, said: str) -> None:
    assert said in next_steps(CLASSIFIER, Path(out)).splitlines()


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("int8", "sentiment-imdb is in int8; PRECISION=fp32 keeps the numbers of the original.\n"),
        ("fp32", "sentiment-imdb is in fp32.\n"),
    ],
)
def test_the_precision_is_told_and_how_to_get_the_exact_one(precision: str, said: str) -> None:
    assert next_steps(changed(CLASSIFIER, precision=precision), Path("artifacts/x")).startswith(said)
