"""What must come out of a translation unchanged does, with the shipped models: once each, alone as in a crowd."""

from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.process

SENTENCES = {
    "en": [
        "Hello {}, you have a new message from {}.",
        "Please open {} and then write to {} before Monday.",
        "Copy {} to {}, and then copy {} to {}.",
        "The file {} is missing.",
        "My brother saw {} in the garden.",
        "Your order {} will arrive on Friday.",
        "We changed {}, {} and {} in the new version.",
        "If you see {}, close the window and call {}.",
        "The price of {} is lower than that of {}.",
        "{} is the best song that I know.",
    ],
    "fr": [
        "Bonjour {}, vous avez un nouveau message de {}.",
        "Ouvrez {}, puis écrivez à {} avant lundi.",
        "Copiez {} dans {}, puis copiez {} dans {}.",
        "Le fichier {} est introuvable.",
        "Mon frère a vu {} dans le jardin.",
        "Votre commande {} arrivera vendredi.",
        "Nous avons modifié {}, {} et {} dans la nouvelle version.",
        "Si vous voyez {}, fermez la fenêtre et appelez {}.",
        "Le prix de {} est plus bas que celui de {}.",
        "{} est la meilleure chanson que je connaisse.",
    ],
    "de": [
        "Hallo {}, du hast eine neue Nachricht von {}.",
        "Öffne {} und schreibe dann vor Montag an {}.",
        "Kopiere {} nach {}, und kopiere dann {} nach {}.",
        "Die Datei {} fehlt.",
        "Mein Bruder hat {} im Garten gesehen.",
        "Deine Bestellung {} kommt am Freitag an.",
        "Wir haben {}, {} und {} in der neuen Version geändert.",
        "Wenn du {} siehst, schließe das Fenster und rufe {} an.",
        "Der Preis von {} ist niedriger als der von {}.",
        "{} ist das beste Lied, das ich kenne.",
    ],
    "ru": [
        "Привет, {}! Есть новое сообщение от {}.",
        "Откройте {}, затем напишите на {} до понедельника.",
        "Скопируйте {} к {}, затем скопируйте {} к {}.",
        "Нет файла {}.",
        "Мой брат видел {} около сада.",
        "Ваш заказ {} придёт после пятницы.",
        "Мы изменили {}, {} и {} для новой версии.",
        "Если вы видите {}, закройте окно и позвоните {}.",
        "Цена {} ниже, чем цена {}.",
        "{} это лучшая песня, которую я знаю.",
    ],
    "ja": [
        "こんにちは、{}さん。{}から新しいメッセージがあります。",
        "{}を開いて、月曜日までに{}に書いてください。",
        "{}を{}にコピーして、次に{}を{}にコピーします。",
        "{}というファイルがありません。",
        "兄は庭で{}を見ました。",
        "ご注文の{}は金曜日に届きます。",
        "新しいバージョンで{}、{}と{}を変更しました。",
        "{}が見えたら、窓を閉めて{}に電話してください。",
        "{}の値段は{}より安いです。",
        "{}は私が知っている一番いい歌です。",
    ],
}
"""As software, mails, orders and chats have them."""
KEPT = [
    ["{name}", "{{user}}", "%s", "${place}", "%(who)s"],
    ["https://example.org/a?b=1", "bob@example.org", "www.example.org", "192.168.0.1", "kevin@example.com"],
    ["`config.yaml`", "/etc/hosts", "main.py", "--verbose", "MAX_SIZE"],
    ["@kevin", "#music", ":smile:", "A1B2-C3", "v2.1.0"],
    ["<0/>", "{link}", "<name>", "{count}", "{b}"],
]
ORDINARY = {
    "en": ["Peter", "Berlin", "Mary", "Rome"],
    "fr": ["Pierre", "Berlin", "Marie", "Rome"],
    "de": ["Peter", "Berlin", "Maria", "Rom"],
    "ru": ["Пётр", "Берлин", "Мария", "Рим"],
    "ja": ["太郎", "ベルリン", "花子", "ローマ"],
}
DIRECTIONS = ["en-fr", "en-de", "en-ru", "en-ja", "fr-en", "de-en", "ru-en", "ja-en"]


def translated(client: httpx.Client, direction: str, texts: list[str], **options: Any) -> list[dict[str, Any]]:
    source, target = direction.split("-")
    body = {"text": texts, "source": source, "target": target, **options}
    found: list[dict[str, Any]] = client.post("/translate", json=body).raise_for_status().json()["translations"]
    return found


def suite(language: str) -> list[tuple[str, list[str]]]:
    """Texts, and what each has to keep."""
    made = []
    for number, sentence in enumerate(SENTENCES[language]):
        for kinds in KEPT:
            spans = [kinds[(number + i) % len(kinds)] for i in range(sentence.count("{}"))]
            made.append((sentence.format(*spans), spans))
    return made


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_each_span_comes_out_once_and_no_text_is_made_up(server: httpx.Client, direction: str) -> None:
    language = direction[:2]
    ordinary = [sentence.format(*ORDINARY[language]) for sentence in SENTENCES[language]]
    as_long = [len(answer["text"]) for answer in translated(server, direction, ordinary)]
    texts = suite(language)
    answers = translated(server, direction, [text for text, _ in texts])
    wrong, long = [], []
    for place, ((text, spans), answer) in enumerate(zip(texts, answers, strict=True)):
        found = [answer["text"].count(span) for span in spans]
        if found != [1] * len(spans) or answer["finish_reason"] != "eos":
            wrong.append((text, answer["text"]))
        n_others = len(answer["text"]) - sum(map(len, spans))
        if n_others > 1.5 * as_long[place // len(KEPT)] + 5:
            long.append((text, answer["text"]))
    assert not wrong
    assert len(long) <= len(texts) // 50, long


@pytest.mark.parametrize("direction", ["en-fr", "ja-en"])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_answer_with_slots_is_the_same_alone(server: httpx.Client, direction: str, beam_size: int) -> None:
    texts = [text for text, _ in suite(direction[:2])[::4]]
    together = translated(server, direction, texts, beam_size=beam_size)
    assert [translated(server, direction, [text], beam_size=beam_size)[0] for text in texts] == together


def test_attention_is_shown_where_all_slots_came_out_and_nothing_needs_alignment(server: httpx.Client) -> None:
    (alone,) = translated(server, "en-de", ["The file is in {folder}."])
    (attended,) = translated(server, "en-de", ["The file is in {folder}."], attention=True)
    assert attended["text"] == alone["text"]
    assert "{folder}" in [attended["text"][slice(*token["span"])] for token in attended["attention"]["target"]]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_alternatives_and_alignment_know_of_slots(server: httpx.Client, direction: str) -> None:
    for text, spans in suite(direction[:2])[:15:5]:
        (answer,) = translated(server, direction, [text], alternatives=2, alignment=True)
        for other in answer.get("alternatives", []):
            assert [other["text"].count(span) for span in spans] == [1] * len(spans), other["text"]
        for span in spans:  # what stands for it is one word
            there = answer["text"].index(span)
            for start, end in [word["span"] for word in answer["alignment"]["words"]["target"]]:
                assert end <= there or start >= there + len(span) or (start <= there and end >= there + len(span))
