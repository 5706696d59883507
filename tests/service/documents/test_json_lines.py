import json

import pytest

from service.base.errors import InvalidDocument, TooLarge
from service.documents import json_lines
from service.documents.contents import DEFAULT_OPTIONS, Contents, ReadOptions, write
from service.documents.json_lines import rewrite


def in_capitals(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> bytes:
    contents: Contents = next(rewrite(data, options))
    return write(rewrite(data, options), [text.upper() for text in contents.texts])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"a dog"\n', '"A DOG"\n'),
        ('"a \\u00e9\\n\\"b\\""\r\n', '"A É\\n\\"B\\""\r\n'),
        ('{"id": 1.0, "text": "a"}\n', '{"id": 1.0, "text": "a", "translation": "A"}\n'),
        ('{"text":"}"}', '{"text":"}", "translation": "}"}'),
        ('{"translation": "old", "text": "a"}\n', '{"translation": "A", "text": "a"}\n'),
        (
            '{"text": "a", "translation": "", "note": "\\ud83d"}\n',
            '{"text": "a", "translation": "A", "note": "\\ud83d"}\n',
        ),
        ('""\n', '""\n'),
        ("\n  \n", "\n  \n"),
    ],
)
def test_each_line_gets_its_translation(line: str, expected: str) -> None:
    data = f'"one"\n{line}'.encode()
    assert in_capitals(data) == f'"ONE"\n{expected}'.encode()


def test_what_has_a_translation_keeps_it_where_only_missing_ones_are_wanted() -> None:
    lines = [{"text": "a", "translation": "b"}, {"text": "a"}]
    written = in_capitals("\n".join(map(json.dumps, lines)).encode(), ReadOptions(only_missing=True))
    assert [json.loads(line)["translation"] for line in written.splitlines()] == ["b", "A"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'"a"\n{"text": ', "Line 2 is not JSON"),
        (b'"a"\n\n["b"]', "Line 3 is neither a text nor an object"),
        (b'{"texts": "a"}', "Line 1 is neither"),
        (b"1", "Line 1 is neither"),
        (b'"\\ud800"', "Line 1 has half of a surrogate pair"),
        (b"[" * 100_000, "Line 1 is not JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidDocument, match=message):
        next(rewrite(data, DEFAULT_OPTIONS))


def test_too_many_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_TEXTS", 2)
    assert len(next(rewrite(b'"a"\n' * 2, DEFAULT_OPTIONS)).texts) == 2
    with pytest.raises(TooLarge, match="3 texts"):
        next(rewrite(b'"a"\n' * 3, DEFAULT_OPTIONS))
