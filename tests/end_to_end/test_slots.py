"""What must come out of a translation unchanged does, with the shipped models: once each, alone as in a crowd."""

import re
from typing import Any

import httpx
import pytest

SENTENCES = {
    "en": [
        "Hello {name}, you have {count} new messages.",
        "Please open https://example.org/a?b=1 or write to bob@example.org.",
        "Copy {a} to {b}, and then copy {c} to {d}.",
        "The file `config.yaml` is missing in {folder}.",
    ],
    "fr": [
        "Bonjour {name}, vous avez {count} nouveaux messages.",
        "Ouvrez https://example.org/a?b=1 ou écrivez à bob@example.org.",
        "Copiez {a} dans {b}, puis {c} dans {d}.",
        "Le fichier `config.yaml` manque dans {folder}.",
    ],
    "de": [
        "Hallo {name}, du hast {count} neue Nachrichten.",
        "Öffne https://example.org/a?b=1 oder schreibe an bob@example.org.",
        "Kopiere {a} nach {b}, und dann {c} nach {d}.",
        "Die Datei `config.yaml` fehlt in {folder}.",
    ],
    "ru": [
        "Привет, {name}! Там {count} новых сообщений.",
        "Откройте https://example.org/a?b=1 или напишите на bob@example.org.",
        "Скопируйте {a} к {b}, но потом {c} к {d}.",
        "Нет файла `config.yaml` внутри {folder}.",
    ],
    "ja": [
        "{name}さん、新しいメッセージが{count}通あります。",
        "https://example.org/a?b=1 を開くか、bob@example.org に書いてください。",
        "{a}を{b}にコピーして、次に{c}を{d}にコピーします。",
        "{folder}に`config.yaml`がありません。",
    ],
}
DIRECTIONS = ["en-fr", "en-de", "en-ru", "en-ja", "fr-en", "de-en", "ru-en", "ja-en"]
KEPT = re.compile(r"\{\w+\}|https://[!-~]+\w|[\w.]+@[a-z.]+[a-z]|`[^`]+`")


def translated(client: httpx.Client, direction: str, texts: list[str], **options: Any) -> list[dict[str, Any]]:
    source, target = direction.split("-")
    body = {"text": texts, "source": source, "target": target, **options}
    found: list[dict[str, Any]] = client.post("/translate", json=body).raise_for_status().json()["translations"]
    return found


def assert_kept(text: str, translation: str) -> None:
    assert {kept: translation.count(kept) for kept in KEPT.findall(text)} == dict.fromkeys(KEPT.findall(text), 1), (
        translation
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_each_span_comes_out_once_alone_and_beside_others(server: httpx.Client, direction: str, beam_size: int) -> None:
    texts = SENTENCES[direction[:2]]
    together = translated(server, direction, texts, beam_size=beam_size)
    for text, translation in zip(texts, together, strict=True):
        assert_kept(text, translation["text"])
        assert translation["finish_reason"] == "eos"
        assert len(translation["text"]) < 2 * len(text) + 20
        (alone,) = translated(server, direction, [text], beam_size=beam_size)
        assert alone == translation


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_alternatives_and_alignment_know_of_slots(server: httpx.Client, direction: str) -> None:
    for text in SENTENCES[direction[:2]][:2]:
        (answer,) = translated(server, direction, [text], alternatives=2, alignment=True)
        for other in answer.get("alternatives", []):
            assert_kept(text, other["text"])
        words = answer["alignment"]["words"]["target"]
        assert all(answer["text"][slice(*word["span"])] for word in words)
