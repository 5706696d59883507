import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.localization import apple_strings
from tests.service.documents.translating import Opened, translated

MESSAGES = r"""/* a comment; "a" = "b"; */
"hello" = "Hello \"you\"\nagain";
// another
key = value;
k2="caf\U00e9";   "k3" = 'x';
"lines" = "a dog
and a cat";
""".replace("'x'", '"it\'s"')


def test_values_are_translated_and_everything_else_stays() -> None:
    expected = MESSAGES.replace(r"Hello \"you\"\nagain", r"HELLO \"YOU\"\nAGAIN").replace("= value", "= VALUE")
    expected = (
        expected.replace(r"caf\U00e9", "CAFÉ").replace("it's", "IT'S").replace("a dog\nand a cat", "A DOG\nAND A CAT")
    )
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert translated(Opened(apple_strings.rewrite, MESSAGES.encode(encoding))) == expected.encode(encoding)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a = b;", "two words", 'a = "two words";'),
        ("a = b;", "c.d", "a = c.d;"),
        ('"a";', "c", '"a" = "c";'),
        ('"a" = "b";', 'a"\\\tb', r'"a" = "a\"\\\tb";'),
        ('"a" = "b";', "a\0\x1b", r'"a" = "a\U0000\U001b";'),
    ],
)
def test_a_translation_is_quoted_where_it_must_be(before: str, text: str, after: str) -> None:
    assert Opened(apple_strings.rewrite, before.encode()).write([text]).decode() == after


@pytest.mark.parametrize("before", ['"a" = "%d files in %@";', '"%d files in %@";'])
def test_conversions_in_another_order_get_numbers(before: str) -> None:
    new = Opened(apple_strings.rewrite, before.encode()).write(["%@ で %d ファイル"]).decode()
    assert new.endswith('"%2$@ で %1$d ファイル";')


ENTRIES = st.lists(
    st.sampled_from(['"a" = "b";', "a=b;", '"\\"";', "// x\n", "/* x */", " ", "\n", '"a"="\\U00e9\\n";'])
)


@given(ENTRIES.map("".join))
def test_a_translation_is_read_as_it_is_and_nothing_else_changes(text: str) -> None:
    contents = Opened(apple_strings.rewrite, text.encode())
    assert contents.write(contents.texts) == text.encode()
    new = [f'{i} "l\'été"\n\\ 犬' for i in range(len(contents.texts))]
    assert Opened(apple_strings.rewrite, contents.write(new)).texts == new


@pytest.mark.parametrize(
    "data", [b'"a" = "b"', b'"a" = "b', b"/* a", b'{"a": "b"}', b"bplist00", b'<?xml version="1.0"?><plist/>', b"\xff"]
)
def test_a_file_with_a_mistake_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(apple_strings.rewrite, data)


def test_a_mistake_has_its_line() -> None:
    with pytest.raises(InvalidDocument, match="Line 2 "):
        Opened(apple_strings.rewrite, b'"a" = "b";\n"c" =\n')


def test_both_halves_of_a_pair_are_read_in_any_letters() -> None:
    contents = Opened(apple_strings.rewrite, rb'"a" = "a dog \ud83d\udc36 \Ud83d\Udc36";')
    assert contents.texts == ["a dog \N{DOG FACE} \N{DOG FACE}"]
