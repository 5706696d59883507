import json

import httpx
import pytest

from benchmarks import served_quality
from benchmarks.served_quality import cases_passed, scores
from model.data import Row
from model.evaluation.cases import LabelSuite, TranslationSuite


def service(request: httpx.Request) -> httpx.Response:
    """Service that translates each text as itself, and labels all as good."""
    asked = json.loads(request.content)
    assert asked.pop("timeout_s") > 0
    if request.url.path == "/classify":
        assert asked.keys() == {"model", "text"}
        return httpx.Response(200, json={"predictions": [{"label": "good", "score": 0.9} for _ in asked["text"]]})
    assert asked.keys() == {"model", "source", "target", "text"}
    return httpx.Response(200, json={"translations": [{"text": text} for text in asked["text"]]})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    monkeypatch.setattr(served_quality, "TEXTS_PER_REQUEST", 2)
    return httpx.Client(transport=httpx.MockTransport(service), base_url="http://service")


def test_every_answer_is_compared_with_the_reference_of_its_text(client: httpx.Client) -> None:
    model = {"task": "translation", "name": "same", "sources": ["en"], "targets": ["fr"]}
    texts = [f"This is sentence number {i} of them." for i in range(5)]
    assert scores(client, model, [Row(text, text) for text in texts]) == {"bleu": 100.0, "chrf": 100.0}
    turned = scores(client, model, [Row(*pair) for pair in zip(texts, texts[::-1], strict=True)])
    assert 0 < turned["bleu"] < 100


def test_labels_are_compared_with_those_of_the_rows(client: httpx.Client) -> None:
    model = {"task": "classification", "name": "kind"}
    rows = [Row("good", "Fine."), Row("bad", "Awful."), Row("good", "Great.")]
    assert scores(client, model, rows) == {"accuracy": 66.67}


def test_cases_are_asked_of_the_service(client: httpx.Client) -> None:
    labels = {"good": "Fine.", "bad": "Awful."}
    suite = LabelSuite.model_validate(
        {"labels": [*labels], "cases": {"plain": [{"text": text, "label": label} for label, text in labels.items()]}}
    )
    assert cases_passed(client, {"task": "classification", "name": "kind"}, suite) == (1, 2)
    copies = {"text": "A dog.", "right": "Un chien.", "must": ["chien"]}
    model = {"task": "translation", "name": "same", "sources": ["en"], "targets": ["fr"]}
    suite_of_translations = TranslationSuite.model_validate(
        {"source": "en", "target": "fr", "cases": {"plain": [copies]}}
    )
    assert cases_passed(client, model, suite_of_translations) == (0, 1)


def test_an_answer_that_is_an_error_is_raised() -> None:
    refusing = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(503)), base_url="http://service")
    with pytest.raises(httpx.HTTPStatusError, match="503"):
        scores(refusing, {"task": "classification", "name": "kind"}, [Row("good", "Fine.")])
