"""Counts short translations that invent or lose something: `python -m benchmarks.short_texts URL [SEED]`.

1,000 texts in each direction of the shipped models: 50 nouns, each with 14 numbers from 1 to 20 and six placeholders.
A translation has the number of its source, in digits or in words, no other number, the placeholder once, and a word
beside them. What `checks` tells of is counted apart. The judge shares no code with the service.
"""

import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx

from benchmarks.numbers import DIRECTIONS, TIMEOUT_S

N_NUMBERS = 14
PLACEHOLDERS = ("%d", "%lld", "{{count}}", "{n}", "%s", "{name}")
NOUNS = {
    "en": """dog hour user week apple item letter house cat table day page file book child car friend ticket photo
        message minute year door window tree bird horse chair street city train player student teacher phone computer
        bottle glass cup flower fish game song word line question answer room bed key""",
    "fr": """chien heure utilisateur semaine pomme article lettre maison chat table jour page fichier livre enfant
        voiture ami billet photo message minute année porte fenêtre arbre oiseau cheval chaise rue ville train joueur
        élève professeur téléphone ordinateur bouteille verre tasse fleur poisson jeu chanson mot ligne question réponse
        chambre lit clé""",
    "de": """Hund/e Stunde/n Benutzer/ Woche/n Apfel/Äpfel Artikel/ Brief/e Haus/Häuser Katze/n Tisch/e Tag/e Seite/n
        Datei/en Buch/Bücher Kind/er Auto/s Freund/e Karte/n Foto/s Nachricht/en Minute/n Jahr/e Tür/en
        Fenster/ Baum/Bäume Vogel/Vögel Pferd/e Stuhl/Stühle Straße/n Stadt/Städte Zug/Züge Spieler/
        Schüler/ Lehrer/ Telefon/e Computer/ Flasche/n Glas/Gläser Tasse/n Blume/n Fisch/e Spiel/e Lied/er
        Wort/Wörter Zeile/n Frage/n Antwort/en Zimmer/ Bett/en Schlüssel/""",
    "ru": """собака/собаки/собак час/часа/часов пользователь/пользователя/пользователей неделя/недели/недель
        яблоко/яблока/яблок товар/товара/товаров письмо/письма/писем дом/дома/домов кошка/кошки/кошек стол/стола/столов
        день/дня/дней страница/страницы/страниц файл/файла/файлов книга/книги/книг ребёнок/ребёнка/детей
        машина/машины/машин друг/друга/друзей билет/билета/билетов фотография/фотографии/фотографий
        сообщение/сообщения/сообщений минута/минуты/минут год/года/лет дверь/двери/дверей окно/окна/окон
        дерево/дерева/деревьев птица/птицы/птиц лошадь/лошади/лошадей стул/стула/стульев улица/улицы/улиц
        город/города/городов поезд/поезда/поездов игрок/игрока/игроков студент/студента/студентов
        учитель/учителя/учителей телефон/телефона/телефонов компьютер/компьютера/компьютеров бутылка/бутылки/бутылок
        стакан/стакана/стаканов чашка/чашки/чашек цветок/цветка/цветов рыба/рыбы/рыб игра/игры/игр песня/песни/песен
        слово/слова/слов строка/строки/строк вопрос/вопроса/вопросов ответ/ответа/ответов комната/комнаты/комнат
        кровать/кровати/кроватей ключ/ключа/ключей""",
    "ja": """犬 時計 利用者 週間 りんご 品物 手紙 家 猫 テーブル 日記 ページ ファイル 本 子供 車 友達 切符 写真
        メッセージ 分野 年 ドア 窓 木 鳥 馬 椅子 道 町 電車 選手 学生 先生 電話 パソコン 瓶 グラス カップ 花 魚
        ゲーム 歌 言葉 線 質問 答え 部屋 ベッド 鍵""",
}
"""50 nouns in each language: the forms after one and after more, in Russian after 1, 2 and 5."""
WORDS = {
    "en": """one|a|an|single two|both three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen twenty""",
    "fr": """un|une|seul|seule deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
        dix-sept dix-huit dix-neuf vingt""",
    "de": """ein|eine|einen|einer|eines|einem|eins zwei|beide drei vier fünf sechs sieben acht neun zehn elf zwölf
        dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig""",
    "ru": """один|одна|одно|одного|одну|одной два|две|двух|двое|оба три|трёх|трех|трое четыре|четырёх|четырех пять|пяти
        шесть|шести семь|семи восемь|восьми девять|девяти десять|десяти одиннадцать двенадцать тринадцать четырнадцать
        пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать""",
    "ja": """一|ひとつ|ひとり 二|ふたつ|ふたり 三|みっつ 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六 十七 十八
        十九 二十""",
}
"""The words of each language for the numbers from 1 to 20."""


def suite(direction: str, seed: int) -> Iterator[tuple[str, int | str]]:
    """Yield each text with its number or its placeholder."""
    language, chance = direction[:2], random.Random(f"{direction} {seed}")
    for forms in NOUNS[language].split():
        first, *more = forms.split("/")
        if language == "de" and more:
            more = [more[0] if more[0][:1].isupper() else first + more[0]]
        elif language in ("en", "fr"):
            irregular = {"child": "children", "fish": "fish", "cheval": "chevaux", "oiseau": "oiseaux", "jeu": "jeux"}
            regular = first if first[-1] == "s" else f"{first}{'es' if first == 'glass' else 's'}"
            more = [irregular.get(first) or regular]
            more = ["glasses" if first == "glass" else "cities" if first == "city" else more[0]]
        for number in [1, *chance.sample(range(2, 21), N_NUMBERS - 1)]:
            form = first if number == 1 or not more else more[0 if number < 5 else -1]
            yield (f"{number}個の{first}" if language == "ja" else f"{number} {form}"), number
        for placeholder in PLACEHOLDERS:
            yield (f"{placeholder}個の{first}" if language == "ja" else f"{placeholder} {first}"), placeholder


def fault(translation: str, expected: int | str, language: str) -> str | None:
    """Return what is wrong in a translation: invented, number, placeholder or noun (lost); None if nothing is."""
    text = unicodedata.normalize("NFKC", translation).lower()
    if isinstance(expected, str):
        if text.count(expected.lower()) != 1:
            return "placeholder"
        text = text.replace(expected.lower(), " ")
    values, rest = [int(digits) for digits in re.findall(r"\d+", text)], re.sub(r"\d+", " ", text)
    articles = 0
    for number, words in reversed([*enumerate(WORDS[language].split(), 1)]):
        pattern = f"(?:{words})" if language == "ja" else rf"(?<![\w-])(?:{words})(?![\w-])"
        rest, n = re.subn(pattern, " ", rest)
        values += [number] * n * (number > 1)
        articles += n * (number == 1)
    if any(value != expected for value in values) or len(values) > 1:
        return "invented"
    if isinstance(expected, int) and not values and not (expected == 1 and articles):
        return "number"
    return None if any(map(str.isalpha, rest)) else "noun"


def main() -> None:
    client = httpx.Client(base_url=sys.argv[1], timeout=TIMEOUT_S)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for direction in DIRECTIONS:
        rows = [*suite(direction, seed)]
        source, target = direction.split("-")
        answers: list[dict[str, Any]] = []
        for start in range(0, len(rows), 100):
            texts = [text for text, _ in rows[start : start + 100]]
            body = {"text": texts, "source": source, "target": target, "checks": True, "timeout_s": TIMEOUT_S}
            answers += client.post("/translate", json=body).raise_for_status().json()["translations"]
        counts: Counter[str] = Counter()
        for (text, expected), answer in zip(rows, answers, strict=True):
            told = any(not check["mended"] for check in answer["checks"])
            counts["told of"] += told
            if (kind := fault(answer["text"], expected, target)) is not None:
                counts[kind] += 1
                counts["not told"] += not told
                print(f"{direction} {kind}{' (told)' * told}: {text} -> {answer['text']}", file=sys.stderr)
        print(f"{direction}: " + ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items())), flush=True)


if __name__ == "__main__":
    main()
