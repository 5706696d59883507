"""Translated sentences as a text: the space between them and the marks at their ends, as a language has them."""

import pytest

from service.text.sentences import halves, join_sentences, sentence_spans, with_wide_marks
from service.text.spans import Span


def joined(text: str, *targets: str, source: str = "en", target: str = "ja") -> str:
    whole, places = join_sentences(text, sentence_spans(text, source), targets, source, target)
    assert [place.of(whole) for place in places] == [*targets]
    return whole


@pytest.mark.parametrize(
    ("text", "targets", "expected"),
    [
        ("Go. Stop!  Run.", ["行け。", "止まれ！", "走れ。"], "行け。止まれ！走れ。"),
        ("  Go. Stop!\n\n  Run.\n", ["行け。", "止まれ！", "走れ。"], "  行け。止まれ！\n\n  走れ。\n"),
        ("Go.\tStop!", ["行け。", "止まれ！"], "行け。\t止まれ！"),
        ("- Go. Stop!\n- Run.", ["行け。", "止まれ！", "走れ。"], "- 行け。止まれ！\n- 走れ。"),
        ("Go. Stop! Run? Hide.", ["行け", "止まれ", "走る", "隠れろ"], "行け。止まれ！走る？隠れろ"),
        ("OK. Go.", ["OK.", "行け。"], "OK.行け。"),
        ("Item    Price", ["項目", "価格"], "項目    価格"),
        ("OK! CD.", ["OK!", "CD."], "OK! CD."),
        ("Go. CD.", ["行け。", "CD."], "行け。CD."),
    ],
)
def test_japanese_sentences_have_no_space_between_them(text: str, targets: list[str], expected: str) -> None:
    assert joined(text, *targets) == expected


def test_parts_of_a_sentence_that_is_too_long_have_nothing_between_them() -> None:
    text = "When it rains, I stay."
    parts = halves(text, Span(0, len(text)))
    assert parts is not None
    assert join_sentences(text, parts, ["雨が降ると", "家にいる。"], "en", "ja")[0] == "雨が降ると家にいる。"


def test_other_languages_keep_their_spaces() -> None:
    assert joined("Go. Stop!", "Иди.", "Стой!", target="ru") == "Иди. Стой!"
    assert joined("行け。止まれ！", "Go.", "Stop!", source="ja", target="en") == "Go. Stop!"
    assert joined("Go. Stop!", "去。", "停！", target="yue") == "去。停！"
    assert joined("行け。 止まれ！", "去。", "停！", source="ja", target="zh") == "去。 停！"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Go.", "行け.", "行け。"),
        ("Go!", "行け!", "行け！"),
        ("Go?!", "行け?!", "行け？！"),
        ('He said "Go."', "「行け.」", "「行け。」"),
        ("It is {name}.", "それはTom.", "それはTom。"),
        ("Go...", "行け...", "行け..."),
        ("Go", "行け!", "行け!"),
        ("v1.2 is here", "v1.2.", "v1.2."),
        ("OK.", "OK.", "OK."),
        ("Go. Now.", "行け. 今.", "行け. 今。"),
        ("Go.", "行け。", "行け。"),
    ],
)
def test_japanese_sentences_end_in_wide_marks_if_sources_have_marks(source: str, target: str, expected: str) -> None:
    assert with_wide_marks(target, source, "ja") == expected
    assert with_wide_marks(target, source, "ru") == target
