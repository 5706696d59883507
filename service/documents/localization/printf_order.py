"""Conversions of printf in another order: `%s has %d dogs` becomes `%2$d dogs has %1$s`."""

import re
from collections import Counter, defaultdict, deque
from itertools import accumulate, count

CONVERSION = re.compile(
    r"%%|%(?P<rest>[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:(?:hh|ll|[hlqjzt])?[diouxXeEfgGaAcsp@]|<PRI\w+>))"
)
NUMBERED = re.compile(r"%\d+\$")


def in_order(text: str, translation: str) -> str:
    """Return a translation with numbers in its conversions, if they have another order than in the text. Nothing
    changes if a conversion is lost, or has a number already (`%1$s`)."""
    before, after = _conversions(text), _conversions(translation)
    if before == after or Counter(before) != Counter(after) or NUMBERED.search(text):
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


def _conversions(text: str) -> list[str]:
    return [match["rest"] for match in CONVERSION.finditer(text) if match["rest"]]
