"""The page tells what to expect of a model."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.browser.asking import part, state
from tests.browser.conftest import Visit

pytest.importorskip("playwright", reason="playwright is not installed (pip install playwright)")

from playwright.sync_api import Page, Route, expect

pytestmark = [pytest.mark.browser, pytest.mark.process]


def answering(model: str, changes: dict[str, Any]) -> Any:
    """Change what the service says of a model; a change to None leaves it out."""

    def answer(route: Route) -> None:
        models = route.fetch().json()
        for one in models["models"]:
            if one["name"] == model:
                one.update(changes)
                for name in [name for name, value in changes.items() if value is None]:
                    del one[name]
        route.fulfill(json=models)

    def before(page: Page) -> None:
        page.route("**/models", answer)

    return before


def shown(score: float) -> str:
    """A score as JavaScript rounds it: a half goes up."""
    return str(Decimal(score).quantize(Decimal("0.1"), ROUND_HALF_UP))


def test_a_small_model_is_called_so_and_has_its_scores(visit: Visit, server: httpx.Client) -> None:
    models = {model["name"]: model for model in server.get("/models").json()["models"]}
    page = visit(state("translate"))
    told = part(page, "expectation")
    expect(told).to_contain_text("A small model (8.9 million parameters), trained with attend.")
    scores = models["translate-en-fr"]["evaluation"]
    expect(told).to_contain_text(
        f"BLEU {shown(scores['tatoeba-challenge-2021.en-fr']['bleu'])} on tatoeba-challenge-2021,"
    )
    expect(told).to_contain_text(f" {shown(scores['ntrex128.en-fr']['bleu'])} on ntrex128,")
    expect(told).to_contain_text("make model")
    expect(told).not_to_contain_text("cases")
    page.get_by_role("tab", name="Classify").click()
    accuracy = models["sentiment-imdb"]["evaluation"]["imdb/test"]["accuracy"]
    expect(part(page, "expectation")).to_contain_text(f"Accuracy {accuracy:.1f} % on imdb/test,")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {
                "small": False,
                "parameters": 1_370_000_000,
                "origin": {"source": "facebook/nllb-200-distilled-1.3B"},
                "licence": "cc-by-nc-4.0",
                "evaluation": {f"test-{i}.en-fr": {"bleu": 40 + i, "chrf": 60} for i in range(6)},
            },
            "Imported from facebook/nllb-200-distilled-1.3B (1.4 billion parameters), licence cc-by-nc-4.0. "
            "As published, BLEU 40.0 on test-0.en-fr, 41.0 on test-1.en-fr, 42.0 on test-2.en-fr, "
            "43.0 on test-3.en-fr; 2 more in GET /models.",
        ),
        ({"small": False, "parameters": 62_000_000, "evaluation": {}}, "Trained with attend (62 million parameters)."),
        ({"small": False, "parameters": None, "evaluation": {}}, ""),
    ],
    ids=["imported", "large", "nothing known"],
)
def test_nothing_is_told_but_what_is_known(visit: Visit, changes: dict[str, Any], told: str) -> None:
    page = visit(state("translate"), before=answering("translate-en-fr", {"expect": None, **changes}))
    expect(part(page, "about")).to_contain_text("translate-en-fr")
    expect(part(page, "expectation")).to_have_text(told)


def test_two_small_models_in_a_row_are_called_so(visit: Visit) -> None:
    page = visit(f"translate?{urlencode({'source': 'de', 'target': 'fr', 'text': 'Zwei Hunde spielen.'})}")
    expect(part(page, "about")).to_contain_text("translate-de-en and translate-en-fr")
    expect(part(page, "expectation")).to_contain_text("Small models, trained with attend; two in a row")


def test_a_model_that_writes_no_certain_language_is_no_translator(visit: Visit) -> None:
    before = answering("translate-ru-en", {"sources": ["mul"], "targets": ["und"]})
    page = visit(state("translate"), before=before)
    sources = page.locator("[data-part=source] option")
    expect(sources.first).to_have_attribute("value", "auto")
    assert "mul" not in sources.evaluate_all("options => options.map(({ value }) => value)")
