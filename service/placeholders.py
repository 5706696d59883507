"""What comes out of a translation as it went in: URLs, e-mail addresses, {name}, %s, and pieces that the caller names.

A model that was trained on everyday sentences copies names, cities and numbers, and garbles URLs. So each placeholder
goes through the model as such a word, its stand-in, and is put back afterwards.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np

from service.projection import AlignedWords, Copies, core
from service.sentences import Span

Kind = Literal["person", "place", "number"]

STAND_INS: dict[Kind, tuple[str, ...]] = {
    "person": ("Tom", "Paul", "David", "Alice", "Emma", "Robert", "Daniel", "Laura", "Martin", "Victor", "Oscar", "Nina"),
    "place": ("Boston", "Chicago", "Berlin", "Toronto", "Madrid", "Dallas", "Denver", "Oslo", "Kyoto", "Milan", "Lima"),
    "number": ("37", "48", "53", "64", "76", "82", "94", "29", "67", "86", "43", "58"),
}
"""Words that models copy, by what they stand for, the best first."""

_BODY = r"""(?:[^\s<>"(){}«»“”\u3000-\u30ff\u3400-\u9fff\uff00-\uffef] | \([^\s()<>]*\) | \{[^\s{}]*\})"""
_END = r"(?<![.,;:!?'’…*\]])"  # noqa: RUF001  What ends a sentence does not end a URL.
_PRINTF = r"%(?:\d+\$)?[-+0#]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[diufgxXsc@](?:px|ms|s|x|[kKMGT]?B)?"
_PLACEHOLDER = re.compile(
    rf"""
      (?P<url>    (?:(?:https?|ftp)://|www\.){_BODY}+{_END} )
    | (?P<email>  (?:mailto:)?(?<![A-Za-z0-9.+-])[A-Za-z0-9_%+-][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+ )
    | (?P<domain> (?<![\w.@-])(?:[A-Za-z0-9-]+\.)+(?:com|org|net|edu|gov|info|io|dev)(?![\w-])(?:/{_BODY}*{_END})? )
    | (?P<braces> [$%]?\{{\{{[^{{}}\n]{{1,80}}\}}\}} | [$%#]?\{{[\w.:!\[\]-]{{0,80}}(?:,\s?[\w.:/#-]+){{0,2}}\}} )
    | (?P<named>  %\([^\s()]{{1,80}}\)[-+0#]*\d*(?:\.\d+)?[diufgxXsc] )
    | (?P<printf> (?<![\w%])(?:{_PRINTF})(?:{_PRINTF}|%%)*(?!\w) )
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"%.*[diufgxX]|[$%#]*\{+\s*(?:\d*|n|.*(?:count|num|total|amount).*)\s*\}+", re.IGNORECASE)
_GLUE = r"[^\W\u0590-\U0010ffff]"
"""A letter or digit of a script that puts spaces between words, where "x{name}" is no name."""
_GLUE_AFTER = re.compile(f"{_GLUE}*")
_WORD = re.compile(f"{_GLUE}+")
