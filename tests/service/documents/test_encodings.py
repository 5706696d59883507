import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents import plain
from service.documents.encodings import BYTE_ORDER_MARKS, decode
from tests.service.documents.translating import Opened


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.sampled_from([*BYTE_ORDER_MARKS, b""]))
def test_a_file_is_written_as_it_was_read(text: str, mark: bytes) -> None:
    data = mark + text.encode(BYTE_ORDER_MARKS.get(mark, "utf-8"))
    read, encoding = decode(data)
    assert encoding.encode(read) == data


@pytest.mark.parametrize("mark", BYTE_ORDER_MARKS)
def test_a_byte_order_mark_is_no_text_where_it_is_repeated(mark: bytes) -> None:
    data = 3 * mark + "en: a dog".encode(BYTE_ORDER_MARKS[mark])
    text, encoding = decode(data)
    assert (text, encoding.encode(text)) == ("en: a dog", data)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"caf\xe9", "not UTF-8: unexpected end of data at byte 3"),
        (codecs.BOM_UTF8 + b"a\xff", "not UTF-8: invalid start byte at byte 4"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8", "not UTF-16-LE: unexpected end of data at byte 2"),
        (codecs.BOM_UTF16_BE + b"a", "not UTF-16-BE: truncated data at byte 2"),
        (b"GIF89a\0\0", "control character 0"),
    ],
)
def test_binary_files_are_refused_with_the_place(data: bytes, part: str) -> None:
    with pytest.raises(InvalidDocument, match=part):
        Opened(plain.rewrite, data)
