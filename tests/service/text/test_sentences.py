import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text import sentences as module
from service.text.sentences import (
    CELLS,
    LETTER_MARK,
    MARK,
    WINDOW,
    halves,
    is_speaker,
    join_sentences,
    sentence_spans,
    speaker_name,
    strip_span,
)
from service.text.spans import Span

TEXTS = st.text(st.one_of(st.sampled_from(" \n\r\t.!?,;:ab。、\u2028\x85"), st.characters(exclude_categories=["Cs"])))


def sentences(text: str, language: str = "en") -> list[str]:
    return [span.of(text) for span in sentence_spans(text, language)]


def test_sentences_are_split_without_the_white_space_around_them() -> None:
    assert sentences("  Mr. Smith ran.  Did he?\tYes! ") == ["Mr. Smith ran.", "Did he?", "Yes!"]


def test_a_line_break_ends_a_sentence() -> None:
    assert sentences("one\ntwo\r\n\r\nthree") == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- one\n- two\n\t* three", ["one", "two", "three"]),
        ("> [!NOTE]\n> [!tip]+ One\n> two [!x] [!y](z)", ["One", "two [!x] [!y](z)"]),
        ("a) Open it.\n12) Come in.\n• Go.", ["Open it.", "Come in.", "Go."]),
        ("## The dog\n> > I am here.\n---\n***", ["The dog", "I am here."]),
        ("Home | News |\nName:\tTom\t\tAge:\t35", ["Home", "News", "Name:", "Tom", "Age:", "35"]),
        ("Go to Settings > Network > Proxy.", ["Go to Settings", "Network", "Proxy."]),
        ("設定 > ネットワーク", ["設定", "ネットワーク"]),
        ("If a > b, or 5 > 3, a >B > c", ["If a > b, or 5 > 3, a >B > c"]),
        ("Hello，friend。I go！Now", ["Hello，friend。", "I go！", "Now"]),
        ("2 - 1 = 1, a|b, #1 and A-B", ["2 - 1 = 1, a|b, #1 and A-B"]),
        ("(a) Open it.\n(iii) Go.\n1)The dog\nа) Да.", ["Open it.", "Go.", "The dog", "Да."]),
        ("1.1 Overview\n1.2.3. The dog\n1.5 million", ["Overview", "The dog", "1.5 million"]),
        ("a. Open it.\nb. Go.\n\nC. Einstein was here.", ["Open it.", "Go.", "C. Einstein was here."]),
        ("А. Один\nБ. Два", ["Один", "Два"]),
        ("#1 Open it.\n#2. Go.\n#1\n#42 is it\n#7 VIP", ["Open it.", "Go.", "#1", "#42 is it", "#7 VIP"]),
        ("№ 1 Да.\n- § 2 Scope\n§ 5 BGB", ["Да.", "Scope", "§ 5 BGB"]),
        ("3.50 Euro.\n1.5 GB\n10.30 Breakfast\n1.10 Dollies", ["3.50 Euro.", "1.5 GB", "Breakfast", "Dollies"]),
        ("It is.* Go.²³ *He* is. Go.†\nOh.*He* is.", ["It is.*", "Go.²³", "*He* is.", "Go.†", "Oh.", "*He* is."]),
        ("I. Open it.\nII. Go.\n\nix. One\nx. Two\nxi. Three", ["Open it.", "Go.", "One", "Two", "Three"]),
        ("I. Newton\nIII. One\nV. Woolf\nvi. two", ["I. Newton", "III.", "One", "V. Woolf", "vi.", "two"]),
        ("A. Einstein was here.\nI. Newton too.", ["A. Einstein was here.", "I. Newton too."]),
        ("00:01.000 --> 00:04.000 align:start position:0%\nHello.\n01:00:01,000 --> 01:00:02,000", ["Hello."]),
        ("Name       Age\nAlexander  12\nTom        9", ["Name", "Age", "Alexander", "12", "Tom", "9"]),
        ("  -h, --help     show it   - \n\tOpen file       Ctrl+O", ["-h, --help", "show it", "Open file", "Ctrl+O"]),
        ("a.   Open it.\nb.   Go.\n\n00:01.000 --> 00:04.000   align:start", ["Open it.", "Go."]),
        ("The dog  is here.  It sleeps.\nThe cats  too.", ["The dog  is here.", "It sleeps.", "The cats  too."]),
    ],
)
def test_marks_of_entries_and_lines_between_columns_are_no_part_of_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Waiter: What would you like?\n- Old woman: Go! I am here.", ["Waiter", "Old woman"]),
        (
            "Frau Müller : Wo ist er?\nMr. O’Neil: “Here.”\n  Speaker 1: Yes…",
            ["Frau Müller", "Mr. O’Neil", "Speaker 1"],
        ),
        ("Официант: Что вы хотите?\nウェイター：何になさいますか？\n先生: はい。", ["Официант", "ウェイター", "先生"]),
        ("Note: the door is open.\nSubject: Meeting on Monday\nName: Tom", []),
        ("Waiter:", []),
        ("It is 10:30. Go.\nhttp://a.org: It is.\nWe go to the house: It is big.\n10: Go.", []),
    ],
)
def test_the_name_of_a_speaker_is_read_alone(text: str, names: list[str]) -> None:
    spans = sentence_spans(text, "en")
    assert [span.of(text) for span in spans if is_speaker(text, span)] == names
    assert all(":" not in span.of(text) for span in spans) or not names


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("serveur.", "Waiter", "Serveur"),
        ("ウェイター：", "Waiter", "ウェイター"),
        ("Warten Sie!", "Waiter", None),
        ("Ja, bitte", "Waiter", None),
        ("der Kellner des Hauses", "Waiter", None),
        (".", "Waiter", None),
    ],
)
def test_a_speaker_has_a_name_only(target: str, source: str, expected: str | None) -> None:
    assert speaker_name(target, source) == expected


@pytest.mark.parametrize(
    ("text", "source", "target", "expected"),
    [
        ("Tom: Go.", "en", "de", "TOM: GO."),
        ("Tom: Go.", "en", "fr", "TOM : GO."),
        ("Tom: Go.", "en", "ja", "TOM：GO."),
        ("Tom : Va.", "fr", "en", "TOM: VA."),
        ("先生：はい。", "ja", "en", "先生: はい。"),
    ],
)
def test_a_colon_after_a_speaker_is_that_of_the_language(text: str, source: str, target: str, expected: str) -> None:
    spans = sentence_spans(text, source)
    assert join_sentences(text, spans, [span.of(text).upper() for span in spans], source, target)[0] == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "M. Dupont est là. Il dort.", ["M. Dupont est là.", "Il dort."]),
        ("fr", "Le Dr. Martin vit en 50 av. J.-C. en Grèce.", ["Le Dr. Martin vit en 50 av. J.-C. en Grèce."]),
        (
            "de",
            "Im 19. Jahrhundert gab es sie. Am 3. Oktober auch.",
            ["Im 19. Jahrhundert gab es sie.", "Am 3. Oktober auch."],
        ),
        ("de", "Er starb im Jahr 19. Die Frau lebte.", ["Er starb im Jahr 19.", "Die Frau lebte."]),
        ("de", "Wir gehen am 5. Kommst du mit?", ["Wir gehen am 5.", "Kommst du mit?"]),
        ("de", "Brot, Milch usw. Danach ist am 14. Mai Kino.", ["Brot, Milch usw.", "Danach ist am 14. Mai Kino."]),
        (
            "de",
            "Das war 50 v. Chr. Die Römer kamen u. a. Sie.",
            ["Das war 50 v. Chr.", "Die Römer kamen u. a.", "Sie."],
        ),
        ("de", "5 Min. Fußweg, 80 kg. Das ist z. B. Der Hund.", ["5 Min. Fußweg, 80 kg.", "Das ist z. B. Der Hund."]),
        ("en", "Apples, etc. Apples are red, etc. and so on.", ["Apples, etc.", "Apples are red, etc. and so on."]),
        (
            "fr",
            "Du pain, etc. Les 5 kg. Elle dort au 5 av. Foch.",
            ["Du pain, etc.", "Les 5 kg.", "Elle dort au 5 av. Foch."],
        ),
        (
            "ru",
            "Хлеб и т. д. Цена 5 тыс. руб. Он на 5 ул. Мира.",
            ["Хлеб и т. д.", "Цена 5 тыс. руб.", "Он на 5 ул. Мира."],
        ),
        ("de", "3.000 Menschen kamen.\n10.30 Uhr ist zu spät.", ["3.000 Menschen kamen.", "10.30 Uhr ist zu spät."]),
        ("fr", "J'aime l'art. Il mesure 5 m. Oui.", ["J'aime l'art.", "Il mesure 5 m.", "Oui."]),
        ("fr", "C'est beau, c.-à-d. grand.", ["C'est beau, c.-à-d. grand."]),
        ("ru", "См. рис. 3 на стр. 15. Там 5 млн. человек.", ["См. рис. 3 на стр. 15.", "Там 5 млн. человек."]),
        (
            "ru",
            "Это театр им. Горького. Около 300 г. до н. э. там жили.",
            ["Это театр им. Горького.", "Около 300 г. до н. э. там жили."],
        ),
        ("ru", "Ножи и т. д. лежат там. Иди.", ["Ножи и т. д. лежат там.", "Иди."]),
        ("ru", "Я помогаю им. Они ушли.", ["Я помогаю им.", "Они ушли."]),
        ("ru", "Это улица им. Ю. А. Гагарина.", ["Это улица им. Ю. А. Гагарина."]),
        ("ru", "«Да!» — сказал он. Ушёл.", ["«Да!» — сказал он.", "Ушёл."]),
        ("ru", "— Привет! — сказал он. — Как дела?", ["Привет! — сказал он.", "— Как дела?"]),
        ("ja", "「行くよ。」と言った。本当？", ["「行くよ。」と言った。", "本当？"]),
        ("ja", "『はい。そうです。』と言った。", ["『はい。そうです。』と言った。"]),
        ("ja", '"はい。"と言った。どうして？と聞いた。', ['"はい。"と言った。', "どうして？と聞いた。"]),
        ("ja", "来た！3時だ。53人いる。", ["来た！", "3時だ。", "53人いる。"]),
        (
            "ja",
            "今年は１０．５％増えた。「そう。」もう帰ろう。",
            ["今年は１０．５％増えた。", "「そう。」", "もう帰ろう。"],
        ),
        ("ja", "（１）犬\n１．猫\n②鳥\n１．５倍だ\n（株）山田", ["犬", "猫", "鳥", "１．５倍だ", "（株）山田"]),
        ("ja", "ア．犬だ。\nイ．猫", ["犬だ。", "猫"]),
        ("ja", "本当？とても遠い。", ["本当？", "とても遠い。"]),
        ("ja", "これはDr. Smithの本。ASP.NETだ。", ["これはDr. Smithの本。", "ASP.NETだ。"]),
        ("ja", "・犬\n(株) 山田\n(ア) 猫", ["犬", "(株) 山田", "猫"]),
        ("ja", "「行くよ。」「はい。」", ["「行くよ。」", "「はい。」"]),
        ("en", "See vol. 3 of it. It is approx. 5 km.", ["See vol. 3 of it.", "It is approx. 5 km."]),
        ("en", "Open Mon.-Fri. from 9. Add 2 tbsp. of it.", ["Open Mon.-Fri. from 9.", "Add 2 tbsp. of it."]),
        ("en", "it is approx. ten. I am tired. see you", ["it is approx.", "ten.", "I am tired.", "see you"]),
        ("en", "I like it. the dog is mad. see you", ["I like it.", "the dog is mad.", "see you"]),
        ("en", "Close the door. iPhones ring.", ["Close the door.", "iPhones ring."]),
        (
            "de",
            "20 Euro inkl. MwSt. und Versand. Dipl.-Ing. Ott ist da.",
            ["20 Euro inkl. MwSt. und Versand.", "Dipl.-Ing. Ott ist da."],
        ),
        (
            "de",
            "Der Dr.-Ing. Ott ist Mo.-Fr. da. Mo.-Fr. Ott ruht.",
            ["Der Dr.-Ing. Ott ist Mo.-Fr. da.", "Mo.-Fr.", "Ott ruht."],
        ),
        (
            "fr",
            "Ici J.-J. Rousseau est né. En 50 av. J.-C. Les Gaulois.",
            ["Ici J.-J. Rousseau est né.", "En 50 av. J.-C.", "Les Gaulois."],
        ),
        (
            "fr",
            "S.N.C.F. annonce tout. Voir op. cit. p. 5 le 5 janv. 1990.",
            ["S.N.C.F. annonce tout.", "Voir op. cit. p. 5 le 5 janv. 1990."],
        ),
        ("fr", "Le magasin est lun. et mar. fermé.", ["Le magasin est lun. et mar. fermé."]),
        ("ru", "Это англ. слово. Он ушёл 5 янв. 1990 года.", ["Это англ. слово.", "Он ушёл 5 янв. 1990 года."]),
        ("es", "La tienda abre lun.-vie. de 9 a 5.", ["La tienda abre lun.-vie. de 9 a 5."]),
    ],
)
def test_full_stops_of_abbreviations_and_ordinals_end_nothing(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Thank you 🙏🏽 I love it 😍 See you soon", ["Thank you 🙏🏽", "I love it 😍", "See you soon"]),
        ("en", "I love you so ❤️🥰❤️ Have a nice day", ["I love you so ❤️🥰❤️", "Have a nice day"]),
        ("ru", "Спасибо тебе 🙏 До встречи", ["Спасибо тебе 🙏", "До встречи"]),
        ("de", "Danke 🙏 Ich liebe es 😍 Bis bald", ["Danke 🙏", "Ich liebe es 😍", "Bis bald"]),
        ("de", "Heute gibt es 😋 Pizza mit Käse", ["Heute gibt es 😋 Pizza mit Käse"]),
        ("en", "I ❤ Paris and we all 💙 New York", ["I ❤ Paris and we all 💙 New York"]),
        ("en", "We 😍 Paris a lot and love 😍 Rome", ["We 😍 Paris a lot and love 😍 Rome"]),
        ("en", "We saw it 😍 NASA is great", ["We saw it 😍 NASA is great"]),
        ("en", "Welcome to 🏖 Miami Beach and 🇫🇷 France is", ["Welcome to 🏖 Miami Beach and 🇫🇷 France is"]),
    ],
)
def test_emoji_end_sentences_that_begin_with_capitals(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


def test_white_space_only_has_no_sentences() -> None:
    assert sentences(" \n\t \r\n") == []


def test_sentences_are_split_where_no_space_is_written() -> None:
    assert sentences("你好。再见！", "zh") == ["你好。", "再见！"]


@pytest.mark.parametrize("space", "\u00a0\u1680\u2003\u202f\u205f\u3000")
def test_any_white_space_may_stand_before_a_full_stop(space: str) -> None:
    """sentencex 1.0.32 panics at it behind a capital letter, which it takes for an initial."""
    assert sentences(f"Vitamin C{space}. Really{space}?{space}Yes.") == [f"Vitamin C{space}. Really{space}?", "Yes."]


def test_a_long_line_has_the_sentences_that_its_parts_have() -> None:
    sentence = "Mr. Smith paid 3.50, and left."
    assert sentences(" ".join([sentence] * 300)) == [sentence] * 300
    assert sentences("你好。" * 3000, "zh") == ["你好。"] * 3000


def test_a_sentence_without_end_is_cut_between_words() -> None:
    words = "neither here nor there, " * 300
    pieces = sentences(words)
    assert len(pieces) == -(-len(words) // WINDOW)
    assert " ".join(pieces) == words.strip()
    assert "".join(sentences("a" * 5 * WINDOW)) == "a" * 5 * WINDOW


@pytest.mark.parametrize("text", ["\"'“" * 3000, "漢字。" * 3000, "a " * 5000, "a. B" + "c" * 9000, " " * 9000])
def test_a_long_line_is_never_looked_at_as_a_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among 50,000 quotation marks the search for sentences stopped the whole service for ten seconds."""
    looked_at: list[int] = []
    segment = module.sentencex.segment

    def watched(language: str, part: str) -> list[str]:
        looked_at.append(len(part))
        return segment(language, part)  # type: ignore[no-any-return]

    monkeypatch.setattr(module.sentencex, "segment", watched)
    sentence_spans(text, "en")
    assert max(looked_at) <= WINDOW
    assert sum(looked_at) <= 2 * len(text)


@given(TEXTS, st.sampled_from(["en", "fr", "de", "ru", "ja", "xx"]))
def test_joining_the_sentences_themselves_gives_the_text_back(text: str, language: str) -> None:
    spans = sentence_spans(text, language)
    joined, places = join_sentences(text, spans, [span.of(text) for span in spans], language, language)
    assert joined == text
    assert places == spans


@given(TEXTS, st.sampled_from(["en", "ja"]), st.sampled_from([1, 4, WINDOW]))
def test_between_sentences_there_is_nothing_but_white_space_and_marks(text: str, language: str, window: int) -> None:
    rest = list(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", window)
        spans = sentence_spans(text, language)
    for span in spans:
        assert strip_span(text, span) == span
        rest[span.start : span.end] = [""] * (span.end - span.start)
    cells = [f"{cell.strip()} " for cell in CELLS.split("".join(rest)) if cell.strip()]
    assert all(MARK.fullmatch(cell) or LETTER_MARK.match(f"{cell}A") for cell in cells)


@given(TEXTS, st.lists(st.text(max_size=5), min_size=100, max_size=100))
def test_the_target_spans_are_where_the_targets_stand(text: str, targets: list[str]) -> None:
    spans = sentence_spans(text, "en")[:100]
    joined, places = join_sentences(text, spans, targets[: len(spans)], "en", "fr")
    assert [place.of(joined) for place in places] == targets[: len(spans)]


def test_a_space_is_put_in_where_only_the_target_language_writes_one() -> None:
    text = "你好。再见！\n好。"
    spans = sentence_spans(text, "zh")
    assert join_sentences(text, spans, ["Hello.", "Bye!", "Good."], "zh", "en")[0] == "Hello. Bye!\nGood."
    assert join_sentences(text, spans, ["は。", "で！", "い。"], "zh", "ja")[0] == "は。で！\nい。"


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("one two three, four five six", "one two three,", "four five six"),
        ("a, two three four five six", "a, two three", "four five six"),  # the clause ends too near to the start
        ("one two", "one", "two"),
        ("abcdef", "abc", "def"),
        ("你好你好、再见再见", "你好你好、", "再见再见"),
        ("ab", "a", "b"),
    ],
)
def test_a_long_sentence_is_halved_at_a_clause_or_a_word_or_a_character(text: str, left: str, right: str) -> None:
    parts = halves(text, Span(0, len(text)))
    assert parts is not None
    assert [part.of(text) for part in parts] == [left, right]


@given(TEXTS)
def test_halves_are_shorter_and_lose_nothing_but_white_space(text: str) -> None:
    span = strip_span(text, Span(0, len(text)))
    if span is None:
        return
    parts = halves(text, span)
    if parts is None:
        assert span.end - span.start == 1
        return
    left, right = parts
    assert span.start == left.start < left.end <= right.start < right.end == span.end
    assert text[left.end : right.start].strip() == ""
