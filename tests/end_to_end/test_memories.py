"""Tags inside a stored sentence stand at their words in its translation, with the shipped models."""

import httpx
import pytest

pytestmark = pytest.mark.process


def test_another_leg_places_no_tags(server: httpx.Client) -> None:
    memory = server.post("/memories", json={"name": "Doors", "source": "fr", "target": "de"}).json()["id"]
    pair = {"source": "Ouvrez la porte.", "target": "Bitte die Tür öffnen."}
    server.post(f"/memories/{memory}/segments", json={"segments": [pair]}).raise_for_status()
    body = {"source": "fr", "target": "de", "format": "html", "memory_id": memory}
    texts = ["<p>Ouvrez la porte.</p>", "<p>Ouvrez la <b>porte</b>.</p>"]
    answers = server.post("/translate", json={"text": texts, **body}).raise_for_status().json()["translations"]
    assert answers[0]["text"] == f"<p>{pair['target']}</p>"
    assert [match["target"] for match in answers[1]["matches"]] == [pair["target"]]
    assert "memory" not in answers[1]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("html", "<p>Open the <b>door</b>.</p>", "<p>Veuillez ouvrir la <b>porte</b>.</p>"),
        ("markdown", "Open the **door**.", "Veuillez ouvrir la **porte**."),
        ("text", "Open the <b>door</b>.", "Veuillez ouvrir la <b>porte</b>."),
        ("html", "The <i>red</i> car costs 7 euros.", "La voiture <i>rouge</i> est à 7 euros."),
    ],
)
def test_tags_stand_at_their_words(server: httpx.Client, form: str, text: str, expected: str) -> None:
    memory = server.post("/memories", json={"name": "Doors", "source": "en", "target": "fr"}).json()["id"]
    pairs = [
        {"source": "Open the door.", "target": "Veuillez ouvrir la porte."},
        {"source": "The red car costs 5 euros.", "target": "La voiture rouge est à 5 euros."},
    ]
    server.post(f"/memories/{memory}/segments", json={"segments": pairs}).raise_for_status()
    body = {"text": text, "source": "en", "target": "fr", "format": form, "memory_id": memory}
    [translation] = server.post("/translate", json=body).raise_for_status().json()["translations"]
    assert translation["text"] == expected
    assert len(translation["memory"]) == 1
