"""Counts translations whose numbers are those of the source: `python -m benchmarks.numbers URL [SEED]`.

50 sentences in each direction of the shipped models, each with a random number in one of ten forms. The judge reads
digits alone and shares no code with the service: all digits of a translation, one after the other, must be those of the
number in a form that people write. So nothing may be missing, changed or invented.
"""

import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations

import httpx

DIRECTIONS = ("en-fr", "en-de", "en-ru", "en-ja", "fr-en", "de-en", "ru-en", "ja-en")
PER_FORM = 5
TIMEOUT_S = 300.0

MARKS = {"en": (",", "."), "ja": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "ru": ("\u00a0", ",")}
"""The signs between thousands and before decimals."""
SENTENCES = {
    "en": {
        "amount": ["The bill is {}.", "She paid {} for the old lamp."],
        "thousands": ["The town has {} people.", "We counted {} birds last year."],
        "decimal": ["The average is {} points.", "The river is {} metres deep here."],
        "date": ["He was born on {}.", "The shop opened on {}."],
        "time": ["The train leaves at {}.", "The meeting begins at {} today."],
        "seconds": ["The runner finished after {}.", "The recording stops at {}."],
        "percentage": ["About {} of the students came.", "Prices rose by {} this year."],
        "unit": ["The box weighs {} kg.", "The road is {} km long."],
        "group": ["Her number is {}.", "Please call {} tomorrow."],
        "range": ["It lasted from {}.", "Read pages {} of the book."],
    },
    "fr": {
        "amount": ["La facture est de {}.", "Elle a payé {} pour la vieille lampe."],
        "thousands": ["La ville a {} habitants.", "Nous avons compté {} oiseaux l'année dernière."],
        "decimal": ["La moyenne est de {} points.", "La rivière a {} mètres de profondeur ici."],
        "date": ["Il est né le {}.", "Le magasin a ouvert le {}."],
        "time": ["Le train part à {}.", "La réunion commence à {} aujourd'hui."],
        "seconds": ["Le coureur a fini après {}.", "L'enregistrement s'arrête à {}."],
        "percentage": ["Environ {} des élèves sont venus.", "Les prix ont augmenté de {} cette année."],
        "unit": ["La boîte pèse {} kg.", "La route est longue de {} km."],
        "group": ["Son numéro est le {}.", "Appelez le {} demain."],
        "range": ["Cela a duré de {}.", "Lisez les pages {} du livre."],
    },
    "de": {
        "amount": ["Die Rechnung beträgt {}.", "Sie zahlte {} für die alte Lampe."],
        "thousands": ["Die Stadt hat {} Einwohner.", "Wir haben letztes Jahr {} Vögel gezählt."],
        "decimal": ["Der Durchschnitt liegt bei {} Punkten.", "Der Fluss ist hier {} Meter tief."],
        "date": ["Er wurde am {} geboren.", "Der Laden wurde am {} eröffnet."],
        "time": ["Der Zug fährt um {} ab.", "Die Sitzung beginnt heute um {}."],
        "seconds": ["Der Läufer war nach {} im Ziel.", "Die Aufnahme endet bei {}."],
        "percentage": ["Etwa {} der Schüler kamen.", "Die Preise stiegen dieses Jahr um {}."],
        "unit": ["Die Kiste wiegt {} kg.", "Die Straße ist {} km lang."],
        "group": ["Ihre Nummer ist {}.", "Bitte rufen Sie morgen {} an."],
        "range": ["Es dauerte von {}.", "Lies die Seiten {} des Buches."],
    },
    "ru": {
        "amount": ["Счёт составляет {}.", "Она заплатила {} за старую лампу."],
        "thousands": ["В городе живёт {} человек.", "В прошлом году мы насчитали {} птиц."],
        "decimal": ["Среднее значение {} балла.", "Глубина реки здесь {} метра."],
        "date": ["Он родился {}.", "Магазин открылся {}."],
        "time": ["Поезд отправляется в {}.", "Сегодня собрание начинается в {}."],
        "seconds": ["Бегун финишировал через {}.", "Запись заканчивается на {}."],
        "percentage": ["Пришло около {} учеников.", "Цены выросли в этом году на {}."],
        "unit": ["Коробка весит {} кг.", "Длина дороги {} км."],
        "group": ["Её номер {}.", "Позвоните завтра по номеру {}."],
        "range": ["Это длилось в {} годах.", "Прочитайте страницы {} этой книги."],
    },
    "ja": {
        "amount": ["請求額は{}です。", "彼女は古いランプに{}払いました。"],
        "thousands": ["その町には{}人が住んでいます。", "去年は{}羽の鳥を数えました。"],
        "decimal": ["平均は{}点です。", "ここの川の深さは{}メートルです。"],
        "date": ["彼は{}に生まれました。", "その店は{}に開きました。"],
        "time": ["電車は{}に出ます。", "今日の会議は{}に始まります。"],
        "seconds": ["その走者は{}でゴールしました。", "録音は{}で終わります。"],
        "percentage": ["生徒の約{}が来ました。", "今年、物価は{}上がりました。"],
        "unit": ["その箱の重さは{}kgです。", "その道の長さは{}kmです。"],
        "group": ["彼女の番号は{}です。", "明日{}に電話してください。"],
        "range": ["それは{}年に続きました。", "その本の{}ページを読んでください。"],
    },
}

Number = tuple[str, list[list[str]]]
"""A number as it is written in the source, and the lists of digits that a translation of it may have."""


def amount(chance: random.Random, language: str) -> Number:
    sign, units, cents = chance.choice("$€£¥"), chance.randint(13, 9999), _with_pairs(chance, 2)
    thousands, decimals = MARKS[language]
    written = f"{units:,}".replace(",", thousands) + (f"{decimals}{cents}" if sign != "¥" else "")
    digits = [str(units), *([cents] if sign != "¥" else [])]
    is_before = language in ("en", "ja")
    return f"{sign}{written}" if is_before else f"{written} {sign}", [digits]


def thousands(chance: random.Random, language: str) -> Number:
    n = chance.randint(10_000, 999_999)
    return f"{n:,}".replace(",", MARKS[language][0]), [[str(n)]]


def decimal(chance: random.Random, language: str) -> Number:
    digits = [str(chance.randint(2, 99)), _with_pairs(chance, 2)]
    return MARKS[language][1].join(digits), [digits]


def date(chance: random.Random, language: str) -> Number:
    day, month, year = chance.randint(13, 28), chance.randint(1, 12), chance.randint(1901, 2029)
    parts = [str(day), str(month), str(year)]
    written = {"en": f"{month}/{day}/{year}", "ja": f"{year}年{month}月{day}日"}.get(language, f"{day}.{month}.{year}")
    allowed = [[*order] for order in permutations(parts)] + [[str(day), str(year)], [str(year), str(day)]]
    padded = [[part.zfill(2) for part in order] for order in allowed]
    return written, allowed + padded


def time(chance: random.Random, language: str) -> Number:
    hour, minute = chance.randint(0, 23), chance.randint(1, 59)
    written = f"{hour}時{minute}分" if language == "ja" else f"{hour:02}:{minute:02}"
    return written, _times(hour, f"{minute:02}", str(minute))


def seconds(chance: random.Random, _language: str) -> Number:
    hour, minute, second = chance.randint(0, 23), _with_pairs(chance, 2, 59), _with_pairs(chance, 2, 59)
    return f"{hour:02}:{minute}:{second}", _times(hour, minute + second)


def percentage(chance: random.Random, language: str) -> Number:
    digits = [str(chance.randint(13, 99)), str(chance.randint(1, 9))]
    space = " " * (language in ("fr", "de", "ru"))
    return f"{MARKS[language][1].join(digits)}{space}%", [digits]


def unit(chance: random.Random, _language: str) -> Number:
    n = _with_pairs(chance, chance.randint(2, 4)).lstrip("0") or "77"
    return n, [[n]]


def group(chance: random.Random, _language: str) -> Number:
    digits = [str(chance.randint(1, 9)), _with_pairs(chance, 3)]
    return " ".join(digits), [digits]


def number_range(chance: random.Random, _language: str) -> Number:
    first = chance.randint(1801, 1990)
    digits = [str(first), str(first + chance.randint(1, 30))]
    return "–".join(digits), [digits]


FORMS: dict[str, Callable[[random.Random, str], Number]] = {
    "amount": amount,
    "thousands": thousands,
    "decimal": decimal,
    "date": date,
    "time": time,
    "seconds": seconds,
    "percentage": percentage,
    "unit": unit,
    "group": group,
    "range": number_range,
}


def _with_pairs(chance: random.Random, length: int, limit: int = 9999) -> str:
    """Return digits, half of the time with two equal neighbours, which models often lose."""
    while True:
        digits = "".join(chance.choice("0123456789") for _ in range(length))
        if chance.random() < 0.5:
            digits = digits[:-1] + digits[-2]
        if int(digits) <= limit:
            return digits


def _times(hour: int, *rests: str) -> list[list[str]]:
    hours = {hour, hour + 12, hour - 12} & {*range(25)}
    return [[written, rest] for h in hours for written in (str(h), f"{h:02}") for rest in rests]


def suite(direction: str, seed: int) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield the form, the text, and the digits that its translation may have, of each sentence."""
    language, chance = direction[:2], random.Random(f"{direction} {seed}")
    for form, make in FORMS.items():
        for i in range(PER_FORM):
            templates = SENTENCES[language][form]
            written, allowed = make(chance, language)
            yield form, templates[i % len(templates)].format(written), allowed


def is_right(translation: str, allowed: list[list[str]]) -> bool:
    """Return whether all digits of a translation, one after the other, are allowed ones. 125万 counts as 1250000."""
    text = unicodedata.normalize("NFKC", translation)
    text = re.sub(r"(?<=\d)[., '\u2019](?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(\d+)万(?:(\d+)千?)?", lambda match: f"{match[1]}{(match[2] or '').zfill(4)}", text)
    return "".join(re.findall(r"\d", text)) in {"".join(digits) for digits in allowed}


def main() -> None:
    client = httpx.Client(base_url=sys.argv[1], timeout=TIMEOUT_S)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    right: Counter[str] = Counter()
    n: Counter[str] = Counter()
    for direction in DIRECTIONS:
        rows = [*suite(direction, seed)]
        source, target = direction.split("-")
        body = {"text": [text for _, text, _ in rows], "source": source, "target": target, "timeout_s": TIMEOUT_S}
        answers = client.post("/translate", json=body).raise_for_status().json()["translations"]
        for (form, text, allowed), answer in zip(rows, answers, strict=True):
            is_good = is_right(answer["text"], allowed)
            for counted in (direction, form, "all"):
                right[counted] += is_good
                n[counted] += 1
            if not is_good:
                print(f"{direction} {form}: {text} -> {answer['text']}")
    for counted in n:
        print(f"{counted}: {right[counted]} of {n[counted]}, {right[counted] / n[counted]:.1%}")


if __name__ == "__main__":
    main()
