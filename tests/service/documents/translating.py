"""A stand-in for a model: it writes each word in capitals, in the order of the source or in the reverse one."""

import re
from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
import pytest

from service.documents.contents import DEFAULT_OPTIONS, ReadOptions, Rewrite, Rewriting, write
from service.markup import html, markdown
from service.text.aligned_words import AlignedWords
from tests.service.markup.documents import words
from tests.service.stand_ins import protect, restore


class Opened:
    """A document that has been read, and may be written several times."""

    def __init__(self, rewrite: Rewrite, data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> None:
        self._rewriting = partial(rewrite, data, options)
        self._begun: list[Rewriting] = [self._rewriting()]
        contents = next(self._begun[0])
        self.texts, self.format, self.source = contents.texts, contents.format, contents.source

    def write(self, translations: Sequence[str]) -> bytes:
        """Write the document; the first time goes on from where it was read."""
        if not self._begun:
            return write(self._rewriting(), translations)
        with pytest.raises(StopIteration) as end:
            self._begun.pop().send([*translations])
        return cast(bytes, end.value.value)


def translated(contents: Opened, backwards: bool = False) -> bytes:
    """The document in that language."""
    return contents.write([in_capitals(text, contents.format, backwards) for text in contents.texts])


def in_capitals(text: str, kind: str, backwards: bool = False) -> str:
    if kind == "text":
        return text.upper()
    read = html.parse(text) if kind == "html" else markdown.parse(text)
    restored = []
    for passage in read.passages:
        protected = protect(passage.text, passage.keep)
        source = words(protected.text)
        stand_ins = {placeholder.stand_in for placeholder in protected.placeholders}

        def of(word: str, stand_ins: set[str] = stand_ins) -> str:
            return word if word in stand_ins else word.upper()

        if backwards:
            new = " ".join(of(word.of(protected.text)) for word in reversed(source))
        else:
            new = re.sub(r"\w+", lambda match: of(match.group()), protected.text)
        mass = np.eye(len(source), dtype=np.float32)[:: -1 if backwards else 1]
        restored.append(restore(protected, new, [AlignedWords(source, words(new), mass)]))
    return read.render(restored)
