"""Any Markdown: what is not translated comes out byte for byte, and marks of emphasis stay marks."""

from collections import Counter
from itertools import accumulate

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.kept.restoration import Restored
from service.markup.markdown import parse
from service.text.aligned_words import AlignedWords
from service.text.spans import Edits, Span
from tests.service.markup.documents import unchanged, words
from tests.service.stand_ins import protect, restore

FRAGMENTS = st.sampled_from(
    [
        *["a", "b.", " ", "x_y", "2 * 3", "你好", "。", "é", "\0", "\u00a0", "{n}", "https://a.b/c_d_e", "&", "&amp;"],
        *["*", "**", "***", "_", "__", "~~", "`", "``", "\\*", "\\n", "\\", "$", "$$", "\\(", "\\)"],
        *["==", "++", "((", "))", "''", "##"],
        *["[", "](", ")", '](u "t")', "![", "<http://a.b>", "[^1]", "[^1]: ", "[r]", "[r]: /u", "[ ] "],
        *["<b>", "</b>", "<br>", "<!-- c -->", "<div>", "</div>", "<kbd>", "</kbd>", "<x/>"],
        *["\n", "\n", "\n\n", "\r\n", "\r", "  \n", "\\\n", "\t", "    "],
        *["# ", "## ", "> ", "- ", "* ", "1. ", "---", "===", "```", "~~~", "|", "|:--|", "---\nt: x\n---\n"],
        *["!!! note\n", '??? a "b"\n', '=== "a"\n', ":   ", "*[a]: ", "{: .a}", "{% a %}", "{{< a >}}"],
    ]
)
MARKDOWN = st.lists(FRAGMENTS, max_size=20).map("".join)


@given(MARKDOWN)
@example("a | b\n-|-\n`\\|` | \\|\n> c\n")
@example("> a\n>b  \n   c\\\n> ***d*** `e\n> f`\n")
@example("<del>\n\n*a*\n\n</del>")
def test_markdown_comes_out_byte_for_byte_without_a_translation(markdown: str) -> None:
    assert unchanged(parse(markdown)) == markdown


WORDS = st.lists(st.sampled_from(["one", "two.", "three", "(four)", "x5"]), min_size=1, max_size=3).map(" ".join)
PAIRS = st.sampled_from([("*", "*"), ("**", "**"), ("__", "__"), ("_", "_"), ("~~", "~~"), ("[", "](/u)")])
INLINE = st.recursive(
    WORDS,
    lambda inner: st.lists(
        WORDS | st.tuples(inner, PAIRS).map(lambda drawn: drawn[0].join(drawn[1])), min_size=1, max_size=3
    ).map(" ".join),
    max_leaves=6,
).map("x {}".format)
TRANSLATED = st.lists(
    st.sampled_from(["uno", "dos.", "«tres»", "四", "五。", "six!", "*", "~~", "]", "[x"]), min_size=8, max_size=12
)
READER = MarkdownIt("commonmark").enable("strikethrough")


LITERAL = st.lists(
    st.sampled_from(
        [
            *["a", "b>", "(u)", "amp;", " ", " ", "1986", "1.", "- ", "# ", "]: "],
            *[*"-+#.*_~[]!<>&`:", *map("\\".__add__, "-+#.*_~[]!<>&`:\\")],
        ]
    ),
    min_size=1,
    max_size=12,
)


def read(markdown: str) -> str | None:
    """What one paragraph says that has no marks."""
    tokens = READER.parse(markdown)
    inside = tokens[1].children or [] if len(tokens) == 3 and tokens[0].type == "paragraph_open" else []
    texts = [token.content for token in inside if token.type == "text"]
    return "".join(texts) if texts and len(texts) == len(inside) else None


@given(LITERAL, LITERAL)
@example(["1986", "\\.", " ", "a", "."], ["1986", ".", " ", "a"])
@example([":", ":", ":"], ["a"])
@example(["a"], [":", ":", ":"])
@example(["a"], [":", " "])
@example(["a"], [":", ":", "a", ":", ":"])
def test_text_without_marks_has_none_in_the_translation(source: list[str], translated: list[str]) -> None:
    """Whether the source has backslashes before all of what could be a mark, before some, or before none."""
    markdown, text = "".join(source).strip() + "x", "".join(translated).replace("\\", "")
    text = " ".join([*text.split(), "y"])
    assume(read(markdown) is not None)
    passages = parse(markdown).passages
    assume([passage.text for passage in passages] == [read(markdown)] != [text])  # with no mark that READER knows not
    rendered = passages[0].render(Restored(text, Edits((), ()), [], list))
    assert read(rendered) == text
    assert [passage.text for passage in parse(rendered).passages] == [text]


def marks(markdown: str) -> Counter[str]:
    inline = READER.parseInline(markdown)[0].children or []
    return Counter(token.type + token.markup for token in inline if token.nesting)


@given(INLINE, TRANSLATED, st.sampled_from(["", " "]), st.lists(st.integers(0, 3), min_size=24, max_size=24))
@example("x *one.* two", ["五。", "四", *["uno"] * 6], "", [1, 0, 0, 0, 1, 0] * 4)
@example("x *~~*(four)* one~~*", ["uno"] * 8, "", [0] * 24)
@example("x _one_ two", ["四", "uno", *["dos."] * 6], "", [0, 0, 1, 0, 1, 0, 0, 0, 1] * 3)
def test_marks_of_emphasis_are_such_in_the_translation(
    markdown: str, translated: list[str], between: str, attention: list[int]
) -> None:
    """Beside punctuation and where no spaces are, too, if there is a word for each of them."""
    (passage,) = parse(markdown).passages
    text = between.join(translated)
    starts = accumulate((len(word) + len(between) for word in translated), initial=0)
    target = [Span(start, start + len(word)) for start, word in zip(starts, translated, strict=False)]
    protected = protect(passage.text)
    source = words(protected.text)
    mass = np.resize(np.array(attention, np.float32), (len(target), len(source)))
    mass /= np.maximum(1, mass.sum(axis=1, keepdims=True))
    restored = restore(protected, text, [AlignedWords(source, target, mass)])
    assume(all(element.span.start < element.span.end for element in passage.place_elements(restored)))
    lineages: list[list[str]] = []
    for element in passage.elements:
        lineages.append([*([] if element.parent is None else lineages[element.parent]), element.start_tag])
    assume(all(len(set(lineage)) == len(lineage) for lineage in lineages))  # "*a *b**" is "**a**" where a is no word
    rendered = passage.render(restored)
    assert marks(rendered) == marks(markdown)
