import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.localization import properties
from tests.service.documents.translating import Opened, translated

MESSAGES = r"""# a comment: no text
! another
hello = Hello you
it:It''s {0}''s dog
plain   It's a dog
path=a\\b
key\ of\:x =\
    one two \
    three\n\
    four
uni = caf\u00e9 \ud83d\ude00
  empty =
nothing
"""


def test_values_are_translated_and_everything_else_stays() -> None:
    expected = MESSAGES
    for text in ("Hello you", "It''s {0}''s dog", "It's a dog", r"=a\\b"):
        expected = expected.replace(text, text.upper())
    expected = expected.replace("one two \\\n    three\\n\\\n    four", "ONE TWO THREE\\n\\\n    FOUR")
    expected = expected.replace(r"caf\u00e9 \ud83d\ude00", r"CAF\u00C9 \uD83D\uDE00")
    assert translated(Opened(properties.rewrite, MESSAGES.encode())).decode() == expected


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a=b", "é", rb"a=\u00E9"),
        ("ü=b".encode(), "é", "ü=é".encode()),
        ("ü=b".encode("latin-1"), "é犬", "ü=é\\u72AC".encode("latin-1")),
        (b"a=b", " b\n", rb"a=\ b\n"),
        (b"a=b", "l'x", b"a=l'x"),
        (b"a=b", "c\0\x1b", rb"a=c\u0000\u001B"),
        (b"a={0} b", "l'{0}", b"a=l''{0}"),
        (b"a=b '{0}'", "'{0}' l'x", b"a='{0}' l'x"),
    ],
)
def test_a_translation_is_escaped_as_java_reads_it(before: bytes, text: str, after: bytes) -> None:
    assert Opened(properties.rewrite, before).write([text]) == after


@given(st.text(st.sampled_from("ab \\\n\r\t=:#!'{0}é犬😀\f"), max_size=30), st.sampled_from(["utf-8", "latin-1"]))
def test_a_translation_is_read_as_it_is_and_nothing_else_changes(text: str, encoding: str) -> None:
    data = text.encode(encoding, "ignore")
    contents = Opened(properties.rewrite, data)
    assert contents.write(contents.texts) == data
    new = [f"{i} l'été\n\\ 犬 {{0}}" for i in range(len(contents.texts))]
    again = Opened(properties.rewrite, contents.write(new))
    assert again.texts == new


@pytest.mark.parametrize("data", [b"a=\0", "a=b".encode("utf-16-le")])
def test_a_file_that_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(properties.rewrite, data)
