"""Conversions of printf in another order: `%s has %d dogs` becomes `%2$d dogs has %1$s`.

A conversion may have a blank as a flag: `% d`. In prose "% d" is a percentage, so models read conversions without it.
"""

import re
from collections import Counter, defaultdict, deque
from itertools import accumulate, count

_SIZE = r"(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:hh|ll|[hlqjztL])?"
"""Width, precision and length."""
_WITH_BLANK = rf"(?<!\d%)[-+#0']* [-+ #0']*{_SIZE}[dieEfFgG](?!\w)"
_NAMED = r"#@|arg\b"
"""Beginnings of Xcode's `%#@dogs@` and `%arg`, which name their arguments."""
CONVERSION = re.compile(
    rf"%%|%(?P<rest>(?!{_NAMED})[-+#0',]*{_SIZE}[diouxXeEfgGaAcsp@]|[-+#0']*(?:\d+)?<PRI\w+>|{_WITH_BLANK})"
)
BLANK = re.compile(rf"(?<!%)%{_WITH_BLANK}")
UNKNOWN = re.compile(r"%(?:[A-Za-z0-9#<(]|&lt;)")
"""Begins what is no conversion here, such as `%1$s`, `%arg`, Java's `%<s` and `%Y` of a date."""


def in_order(text: str, translation: str) -> str:
    """Return a translation with numbers in its conversions, if they have another order than in the text. Nothing
    changes if a conversion is lost, or if one has a number (`%1$s`), has a name (`%#@dogs@`), or is not known."""
    before, after = _conversions(text), _conversions(translation)
    if before == after or Counter(before) != Counter(after) or UNKNOWN.search(CONVERSION.sub(" ", text)):
        return translation
    free: defaultdict[str, deque[int]] = defaultdict(deque)
    for i, rest in enumerate(before):
        free[rest].append(i)
    first_arguments = [*accumulate((1 + conversion.count("*") for conversion in before), initial=1)]

    def numbered(match: re.Match[str]) -> str:
        if match["rest"] is None:
            return match.group()
        i = free[match["rest"]].popleft()
        arguments = count(first_arguments[i])  # each * takes one, before the conversion does
        rest = re.sub(r"\*", lambda _: f"*{next(arguments)}$", match["rest"])
        return f"%{next(arguments)}${rest}"

    return CONVERSION.sub(numbered, translation)


def without_blanks(text: str) -> str:
    """Return a text whose conversions have no blank as a flag."""
    return BLANK.sub(lambda match: match.group().replace(" ", ""), text)


def with_blanks(text: str, translation: str) -> str:
    """Return the translation of a text that was read without blanks, with these."""
    written: defaultdict[str, deque[str]] = defaultdict(deque)
    for conversion in map(re.Match.group, CONVERSION.finditer(text if BLANK.search(text) else "")):
        written[conversion.replace(" ", "")].append(conversion)

    def rewritten(match: re.Match[str]) -> str:
        return written[match.group()].popleft() if written[match.group()] else match.group()

    return CONVERSION.sub(rewritten, translation)


def _conversions(text: str) -> list[str]:
    return [match["rest"] for match in CONVERSION.finditer(text) if match["rest"]]
