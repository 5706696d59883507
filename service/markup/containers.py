"""Blocks with indented content that is no code: footnotes, abbreviations, definitions, admonitions and tabs."""

import re

from markdown_it.rules_block import StateBlock

LABEL = re.compile(r"(?:\[\^[^\[\]]{1,80}\]:|\*\[[^\[\]]{1,80}\]:|:(?=[ \t]+\S))[ \t]*")
"""The label of a footnote ([^1]:), of an abbreviation (*[HTML]:) or of a definition (:)."""
TITLE = re.compile(r'(?:(?:!{3}|\?{3}\+?)[ \t]*+[\w-][\w \t-]*+(?:$|(?="))|={3}[!+]{0,2}[ \t]+(?="))(?:"(.*)"[ \t]*)?$')
"""The first line of an admonition (!!! note) or of a tab (=== "Title")."""
INDENT = 4


def container(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    """Read a block with its content after a label, or on the line after a title. This is a rule for the parser."""
    start, end = state.bMarks[first] + state.tShift[first], state.eMarks[first]
    if state.is_code_block(first):
        return False
    if label := LABEL.match(state.src, start, end):
        if not silent:
            _parse_labelled(state, first, after, label.end())
        return True
    title = TITLE.match(state.src, start, end)
    last = _end_of_indented(state, first, after) if title else first
    if title and last > first + 1 and not silent:
        _parse_titled(state, first, last, title[1] or "")
    return last > first + 1


def _parse_labelled(state: StateBlock, first: int, after: int, content: int) -> None:
    line = state.bMarks[first], state.tShift[first], state.sCount[first]
    state.bMarks[first], state.tShift[first], state.sCount[first] = content, 0, state.blkIndent + INDENT
    opening = state.push("container_open", "", 1)
    _parse_content(state, first, after)
    opening.map = [first, state.line]
    state.bMarks[first], state.tShift[first], state.sCount[first] = line


def _parse_titled(state: StateBlock, first: int, last: int, title: str) -> None:
    n_lines, state.lineMax = state.lineMax, last  # otherwise a line after the block could continue its last paragraph
    state.push("container_open", "", 1).map = [first, last]
    inline = state.push("inline", "", 0)
    inline.content, inline.map = title, [first, first + 1]
    _parse_content(state, first + 1, last)
    state.lineMax = n_lines


def _parse_content(state: StateBlock, first: int, after: int) -> None:
    state.blkIndent += INDENT
    state.md.block.tokenize(state, first, after)
    state.blkIndent -= INDENT
    state.push("container_close", "", -1)


def _end_of_indented(state: StateBlock, title: int, after: int) -> int:
    end = title + 1
    min_indent = min(state.sCount[title], state.blkIndent) + INDENT  # the title may end a more indented paragraph
    for line in range(title + 1, after):
        if not state.isEmpty(line):
            if state.sCount[line] < min_indent:
                break
            end = line + 1
    return end
