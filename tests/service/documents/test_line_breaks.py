import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents.office.line_breaks import BREAK, join_lines, part_lines
from service.documents.wrapping import visible_text

WITHIN = [
    "The yearly report/of the small town",
    "Le rapport annuel/de la petite ville",
    "Der Jahresbericht/der kleinen Stadt",
    "Годовой отчёт/маленького города",
    "小さな町の/年次報告書",
    "this is a sentence/that begins small.",
    "We went to the/market, bought/bread and/(as always) came home.",
    "Dear Ms Miller,/thank you for your letter.",
    "The town had/500 people in May.",
    "It happened in/May of last year.",
    "Il habite à/Paris depuis dix ans.",
    "Собрание состоится в/Москве завтра.",
    "We write to/info@example.org for help.",
    "Sales rose by more than/€15 million last year.",
    "Please send your application to the office in/London before the end of May.",
    "昨日は友達と一緒に町へ行ってから/映画を見ました。",
    "The “quick”/“brown” fox is here.",
    "The man said/l'homme is French.",
    "It is a well-known/well-made car",
]
BETWEEN = [
    "The dog sleeps./The cat runs.",
    "The dog sleeps./and the cat runs.",
    "John Smith/12 High Street/London",
    "Rathaus/Marktplatz 3/12345 Berlin",
    "apples/pears/plums",
    "Fruit/apples/pears",
    "Shopping list/two eggs/some milk",
    "Ingredients:/two eggs and milk",
    "Call us today/www.example.org/info@example.org",
    "Our address/phone: 123/fax number: 456",
    "Things to do/- buy milk/- read books",
    "Things to do/1) buy milk/2) read books",
    "You need 5 kg/Flour and 20 ml/Milk for the bread.",
    "It is in/London",
    "Our new town hall/The building was opened in May.",
    "りんご/もも/みかん",
    "お知らせ/明日は休みです。",
    "東京都千代田区/丸の内1-1",
]


def html_of(lines: str) -> str:
    first, *others = lines.split("/")
    return first + "".join(f'<br id="{i}">{line}' for i, line in enumerate(others))


@pytest.mark.parametrize("lines", WITHIN)
def test_a_break_within_a_sentence_is_not_read(lines: str) -> None:
    joined, _ = join_lines(html_of(lines), lambda _: True)
    assert joined == lines.replace("/", "" if lines[0] > "\u3000" else " ")
    assert join_lines(html_of(lines), lambda _: False)[0] == html_of(lines)


@pytest.mark.parametrize("lines", BETWEEN)
def test_a_break_between_sentences_and_lines_of_a_list_is_read(lines: str) -> None:
    assert join_lines(html_of(lines), lambda _: True)[0] == html_of(lines)


def test_nouns_of_german_are_no_beginnings() -> None:
    html = html_of("Der Hund läuft über eine/Wiese und bellt.")
    assert join_lines(html, lambda _: True, "de")[0] == "Der Hund läuft über eine Wiese und bellt."
    for lines, language in [
        ("Der Hund läuft über eine/Wiese und bellt.", "en"),
        ("Unser neues Rathaus/Das Haus ist fertig.", "de"),
        ("Brot kaufen/Milch holen", "de"),
    ]:
        assert join_lines(html_of(lines), lambda _: True, language)[0] == html_of(lines)


def test_japanese_is_cut_between_phrases() -> None:
    _, lines = join_lines(html_of("The children are/in the garden of the school."), lambda _: True)
    assert part_lines("子供たちは学校の庭にいる。", lines) == '子供たちは<br id="0">学校の庭にいる。'
    assert part_lines("学校", lines) == '学<br id="0">校'


def test_a_break_at_the_edge_of_an_element_stays_in_it() -> None:
    html = 'The report<ins id="1"><br id="0"></ins>of the town'
    assert join_lines(html, lambda _: True)[0] == html
    inside = 'The <ins id="1">report<br id="0">of</ins> the town'
    assert join_lines(inside, lambda _: True)[0] == 'The <ins id="1">report of</ins> the town'


def test_a_translation_gets_its_breaks_where_words_meet() -> None:
    joined, lines = join_lines(
        'The <b id="7">yearly</b> report <br id="0">of the town.<br id="1">It is<br id="2"> short.', lambda _: True
    )
    assert joined == 'The <b id="7">yearly</b> report of the town.<br id="1">It is short.'
    new = part_lines('Der <b id="7">Jahresbericht</b> der Stadt. <br id="1"> Er ist kurz.', lines)
    assert new == 'Der <b id="7">Jahresbericht</b><br id="0">der Stadt. <br id="1"> Er ist<br id="2">kurz.'
    assert part_lines("Alles weg", lines) == "Alles weg"


WORDS = st.lists(st.sampled_from(["the", "Dog", "runs.", "2", "町は", "<b>x</b>", "", " "]), max_size=4)


@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=6), st.text("ab .", max_size=20))
def test_no_break_is_lost_or_doubled(lines: list[str], translation: str) -> None:
    html = html_of("/".join(lines))
    joined, parts = join_lines(html, lambda number: number != 2)
    left = BREAK.findall(joined)
    for new in (joined, "".join([translation, *(f'<br id="{number}">{translation}' for number in left)])):
        assert BREAK.findall(part_lines(new, parts)) == BREAK.findall(html)
    assert "".join(visible_text(joined).split()) == "".join(visible_text(html).split())
