"""Overrides of style in SubStation's texts, such as {\\i1}: their words become an element of HTML."""

import re
from collections.abc import Iterable
from functools import partial
from itertools import accumulate, groupby

from service.documents.inline_tags import Numbering, escaped, texts_and_tags
from service.documents.subtitles.cues import Line

DRAWING = re.compile(r"\{[^{}]*\\p\s{0,9}[1-9](?:(?!\\p\s{0,9}0)[^{}])*\}")
_ENDS_DRAWING = r"\{[^{}]*\\p\s{0,9}0[^{}]*\}"
BLOCK = re.compile(
    rf"({DRAWING.pattern}[^{{}}]*+(?:(?!{_ENDS_DRAWING})\{{[^{{}}]*\}}[^{{}}]*+)*+(?:{_ENDS_DRAWING})?|\{{[^{{}}]*\}})"
)
"""A block of overrides, with the drawing that it begins and the block that ends it."""
STYLE = re.compile(
    r"\\(fn|fscx|fscy|fsp|fs|frx|fry|frz|fr|fax|fay|fe|[xy]?bord|[xy]?shad|blur|be|alpha|[1-4]a|[1-4]?c(?!lip)"
    r"|[bius](?!clip)|r)((?:\([^()]*\)?|[^\\()}])*)"
)
"""An override for the words after it, and its value. All other overrides are for the whole event."""
OF_TIME = re.compile(r"\\[kK][fot]?\s{0,9}\d*|\\t\((?:[^()]|\([^()]*\))*\)?")
"""Karaoke, and styles that change in time."""
TOGGLES = frozenset("bius")
State = dict[str, str]
"""The value of each override that is in force, by name."""
Change = tuple[tuple[str, str], ...]
"""Differences from the style of an event; "" for an override that is not in force."""


class Overrides:
    """The overrides of a file. Each different change of style has a separate element, <x0>: the translation of a
    sentence over several events may take it to another event."""

    def __init__(self) -> None:
        self._changes = Numbering[Change]()
        self.begin_event([])

    def begin_event(self, lines: Iterable[str]) -> None:
        """Forget the state: an event begins with the style that it names. Overrides that are in force for all of its
        words need no element; in `{\\i1}Yes{\\i0}, sir` the element is around Yes."""
        self._state: State = {}
        parts = BLOCK.split("\n".join(lines))
        states = accumulate(parts[1::2], _next_state, initial=self._state)
        of_words = [state for state, text in zip(states, parts[::2], strict=True) if _plain(text).strip()]
        names = set[str]().union(*of_words[:1]).intersection(*of_words)
        self._base = {name: of_words[0][name] for name in names}

    def line(self, cue: int, line_break: str, text: str, speaker: str) -> str | Line:
        """Return a line of an event, with the line break before it. A line without visible text stays as it is."""
        parts = BLOCK.split(text)
        blocks = parts[1::2]
        states = [*accumulate(blocks, _next_state, initial=self._state)]
        earlier, self._state = self._state, states[-1]
        shown = [i for i, part in enumerate(parts[::2]) if _plain(part).strip()]
        if not shown:
            return line_break + text
        first, last = shown[0], shown[-1]
        if any(map(DRAWING.match, blocks[first:last])):  # it has its place between words
            return line_break + text
        before_words, words = "".join(parts[: 2 * first]), "".join(parts[2 * first : 2 * last + 1])
        spaced = words.replace(r"\h", "  ")  # as long as the words
        start, end = (len(before_words) + n for n in (len(spaced) - len(spaced.lstrip()), len(spaced.rstrip())))
        pieces = [(_change(self._base, states[i]), _plain(parts[2 * i])) for i in range(first, last + 1)]
        groups = groupby(pieces, key=lambda piece: piece[0])
        html = "".join(self._element(change, escaped("".join(text for _, text in alike))) for change, alike in groups)
        moved = "".join(map(_of_event, blocks[first:last]))
        before = line_break + text[:start] + moved
        after = "".join(map(_of_event, blocks[last:]))
        write = partial(self._written, before, text[end:], after, (self._base, states[first], states[last], states[-1]))
        dropped = "".join(map(_of_event, blocks)) + _written_change(earlier, self._state)
        return Line(cue, html.strip(), line_break + text, write, "", dropped, speaker, is_balanced=True)

    def _element(self, change: Change, html: str) -> str:
        if not change:
            return html
        number = self._changes.of(change)
        return f"<x{number}>{html}</x{number}>"

    def _written(
        self, before: str, after: str, after_of_event: str, states: tuple[State, State, State, State], html: str
    ) -> str:
        """Return a line with other words. `after` becomes the overrides of the whole event if the words end in another
        style. The states are of the event, of the first word, of the last word, and of the line's end."""
        base, state, words_end, line_end = states
        wanted = base
        written = [before]
        for part in texts_and_tags(html):
            if isinstance(part, str):
                written += [_written_change(state, wanted), part.replace("\xa0", r"\h")]
                state = wanted
            else:
                change = () if part.number is None else self._changes.codes[part.number]
                wanted = {name: value for name, value in {**base, **dict(change)}.items() if value}
        written.append(after if state == words_end else after_of_event + _written_change(state, line_end))
        return "".join(written)


def _plain(text: str) -> str:
    return text.replace(r"\h", "\xa0")


def _next_state(state: State, block: str) -> State:
    """A toggle that changes back is no longer in force."""
    state = {**state}
    for written, value in STYLE.findall(OF_TIME.sub("", block)):
        name = "c" if written == "1c" else written
        if name == "r":
            state = {name: value} if value else {}
        elif not value or (name in TOGGLES and state.get(name, value) != value):
            state.pop(name, None)
        else:
            state[name] = value
    return state


def _change(base: State, state: State) -> Change:
    return tuple((name, state.get(name, "")) for name in sorted({*base, *state}) if state.get(name) != base.get(name))


def _written_change(state: State, wanted: State) -> str:
    written = ""
    if state.get("r") != wanted.get("r"):
        written, state = rf"\r{wanted.get('r', '')}", {"r": wanted.get("r", "")}
    for name, value in _change(state, wanted):
        if name != "r":
            back = "" if name not in TOGGLES else "1" if state.get(name) == "0" else "0"
            written += rf"\{name}{value or back}"
    return f"{{{written}}}" if written else ""


def _of_event(block: str) -> str:
    """Return the overrides of a block for its whole event, its comments, and its drawing."""
    if DRAWING.match(block):
        return block
    kept = STYLE.sub("", OF_TIME.sub("", block))
    return kept if kept.strip("{} ") else ""
