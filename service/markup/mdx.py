"""What MDX adds to Markdown: imports and exports, and tags whose attributes are expressions."""

import re

from markdown_it.rules_block import StateBlock

MODULE = re.compile(
    r"""import[ \t]+(?:(?:[\w$]+[ \t]*,?\s*)?(?:\{[^{}]{0,2000}\}\s*|\*\s*as\s+[\w$]+\s+)?from\s+)?
        ["'][^"'\n]+["'];?[ \t]*$
    |export[ \t]+(?:(?:const|let|var)[ \t]+[\w${\[][^\n=]*=|[{*]
        |default[ \t]+(?:(?:async[ \t]+)?(?:function|class)\b|[({]|[\w$.]+(?:\(|;?[ \t]*$))
        |(?:async[ \t]+)?function\b[ \t*]*[\w$]*[ \t]*\(|class[ \t]+[\w$]+[ \t]*(?:\{|extends\b))""",
    re.MULTILINE | re.VERBOSE,
)
"""The beginning of an import or export of MDX. An import may have several lines."""
_BRACES = r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"
JSX = re.compile(
    rf"""<[A-Za-z][\w.:-]*+(?:\s++[\w:-]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|{_BRACES}))?+|\s*+{_BRACES})*+\s*+/?>"""
)
"""A tag of MDX, whose attributes may have expressions in braces."""


def module(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    """Read imports and exports of MDX up to an empty line. This is a rule for the parser."""
    is_module = not state.level and not state.sCount[first] and MODULE.match(state.src, state.bMarks[first])
    if is_module and not silent:
        state.line = next((line for line in range(first, after) if state.isEmpty(line)), after)
    return bool(is_module)
