"""Texts in JSON Lines (.jsonl): each line is a text, or an object whose `text` is translated into its `translation`."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import Contents, ReadOptions, Rewriting
from service.documents.encodings import decode

MAX_TEXTS = 100_000
"""Most texts of one file."""
TEXT, TRANSLATION = "text", "translation"
SURROGATE = re.compile("[\ud800-\udfff]")


class _Line(NamedTuple):
    written: str
    value: dict[str, Any] | str
    text: str
    """What is translated; "" for a line that stays as it is."""

    def translated(self, translation: str) -> str:
        end = self.written[len(self.written.rstrip()) :]
        if isinstance(self.value, str):
            return _dumped(translation) + end
        if TRANSLATION in self.value:
            return _dumped(self.value | {TRANSLATION: translation}) + end
        inside, brace, after = self.written.rpartition("}")  # numbers stay as they are written
        return f'{inside.rstrip()}, "{TRANSLATION}": {_dumped(translation)}{brace}{after}'


def rewrite(data: bytes, options: ReadOptions) -> Rewriting:
    """Rewrite texts in JSON Lines. Raises InvalidDocument: a line is not JSON, or has no text. Raises TooLarge: there
    are too many texts."""
    content, encoding = decode(data)
    lines = [*_lines(content, options.only_missing)]
    if (n_texts := sum(line.text != "" for line in lines)) > MAX_TEXTS:
        raise TooLarge(f"The file has {n_texts} texts; the limit is {MAX_TEXTS}")
    translations = iter((yield Contents([line.text for line in lines if line.text], "text")))
    written = (line.translated(next(translations)) if line.text else line.written for line in lines)
    return encoding.encode("".join(written))


def _lines(content: str, only_missing: bool) -> Iterator[_Line]:
    for number, written in enumerate(re.findall(r"[^\n]*\n|[^\n]+", content), 1):
        if not written.strip():
            yield _Line(written, "", "")
            continue
        try:
            value = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise InvalidDocument(f"Line {number} is not JSON: {error}") from None
        text = value.get(TEXT) if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise InvalidDocument(f"Line {number} is neither a text nor an object with a `{TEXT}`")
        if SURROGATE.search(text):
            raise InvalidDocument(f"Line {number} has half of a surrogate pair")
        is_known = only_missing and isinstance(value, dict) and bool(value.get(TRANSLATION))
        yield _Line(written, value, text if text.strip() and not is_known else "")


def _dumped(value: Any) -> str:
    dumped = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if SURROGATE.search(dumped) else dumped
