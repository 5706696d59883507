"""Markdown in, Markdown out: what is no text stays as it is, and marks go around the words that they were around."""

from pathlib import Path

import pytest

from service.kept.projection import Region
from service.kept.restoration import Restored
from service.markup.flanking import make_flanking
from service.markup.markdown import parse
from service.text.spans import Edits, Span
from tests.service.markup.documents import aligned, rendered, unchanged


@pytest.mark.parametrize(
    ("markdown", "passages"),
    [
        ("# One *two* #\n\nThree\nfour\n====\n", ["One two", "Three four"]),
        ("> One\n> two\nlazy\n>\n> - three\n>   four\n", ["One two lazy", "three four"]),
        ("1. One\n2) Two\n   + Three\n- [ ] Four\n- [x] Five\n", ["One", "Two", "Three", "Four", "Five"]),
        ("One  \ntwo\\\nthree", ["One", "two", "three"]),
        ("| One | `x` |\n|-----|:---:|\n| a \\| b |\n| c | d | more |\n", ["One", "\ufffc", "a | b", "c", "d"]),
        ("> One | two\n> -|-\n> three | four\n", ["One", "two", "three", "four"]),
        ("```sh\nls\n```\n\n    code\n\n~~~\nx\n~~~\n***\n", []),
        ("---\ntitle: One\n---\n\nTwo\n\n---\n", ["Two"]),
        ("---\ndate created: 2024-01-02\ntags: [a, b]\n---\n\nTwo\n", ["Two"]),
        ("---\n# c\n'title': One\n\nb: c\n...\nTwo\n", ["Two"]),
        ("---\n\n  title: One\n  b: c\n---\nTwo\n", ["Two"]),
        ("+++\ntitle = 'One'\n...\n+++\nTwo\n", ["Two"]),
        ("---\nOne is two.\n---\n", ["One is two."]),
        ("---\nPlease note: One.\n\nTwo\n\n---\nThree\n", ["Please note: One.", "Two", "Three"]),
        ("---\n\nNote: One.\n\n---\nTwo\n", ["Note: One.", "Two"]),
        ("---\n# One\n\nTwo\n\n---\nThree\n", ["One", "Two", "Three"]),
        ("<div>\n<p>One <b>two</b></p>\n</div>\n\n<!-- x -->\n", ["One two"]),
        ("One[^1] [two][r] [three].\n\n[^1]: Four\n\n[r]: /u 'five'\n[three]: /v\n", ["One two three.", "Four"]),
        ("> [!NOTE]\n> One\n", ["One"]),
        ("> [!my-tip]- One\n> two\n> three\n\nfour [!x] five\n", ["One", "two three", "four [!x] five"]),
        ("Press <kbd>Ctrl</kbd>+`C`, <http://a.b>", ["Press \ufffc+\ufffc, \ufffc"]),
        ("![One](a.png) ![](b.png)two", ["One two"]),
        ("snake_case, 2 * 3, a*b, ** x **, \\*y\\*, ~z~", ["snake_case, 2 * 3, a*b, ** x **, *y*, ~z~"]),
        (
            "[^1]: One\nlazy\n\n    Two\n\n    - three\n[^2]: # Four\n\nFive\n",
            ["One lazy", "Two", "three", "Four", "Five"],
        ),
        ("- [^1]:\n\n      One\n- [^a b]: two\n", ["One", "two"]),
        ("> [^1]: One\n>\n>     two\n> !!! note\n>     three\n", ["One", "two", "three"]),
        ("One\n:   Two\n:   Three\n\n    Four\n\nFive\n\n:   six\n", ["One", "Two", "Three", "Four", "Five", "six"]),
        ("*[A]: One two\n*[B]: Three\n", ["One two", "Three"]),
        ("!!! note\n    One\n\n        code\n\n    - two\nThree\n", ["One", "two", "Three"]),
        ('One\n??? tip inline "Say "two""\n    Three\n???+ a ""\n\n\tfour\n', ["One", 'Say "two"', "Three", "four"]),
        ('=== "One"\n\n    Two\n\n    !!! tip\n\n        Three\n', ["One", "Two", "Three"]),
        ("!!! One two\nthree\n\n??? Four\n", ["!!! One two three", "??? Four"]),
        ("One\n===\n    code\n", ["One"]),
        ("One\n:::tip Two\nthree\nfour\n:::\n", ["One", "three four"]),
        (
            "One\n{: .note }\ntwo\n{:toc}\n\n- Three\n  {: .a}\n- {: #b } four\n",
            ["One", "two", "Three", "{: #b } four"],
        ),
        (
            'One\n{{% notice tip %}}\ntwo\n{{% /notice %}}\n\n{{< x y="z" >}}\n{{< a >}} Three {{< /a >}}\n',
            ["One", "two", "{{< a >}} Three {{< /a >}}"],
        ),
        ("{% for a in b %}\n    One\n{%- endfor -%}\n{% x %} two {% y %}\n", ["One", "{% x %} two {% y %}"]),
        ("> :::: note\n> - One\n> ::::\n", ["One"]),
        ("One\n$$\nx_1 *\n\\$\n$$\ntwo\n$$x$$\nthree $$y$$ :::\n", ["One", "two", "three \ufffc :::"]),
        (r"One $x_{i}$, $a_1 * b_1 = c$ \( \frac{a}{b} \) \(x\)", ["One \ufffc, \ufffc \ufffc \ufffc"]),
        ("the $n$th and 第$n$章 [$O(n)$-time](u)", ["the \ufffcth and 第\ufffc章 \ufffc-time"]),
        ("> One $x +\n> y_1$ two\n", ["One \ufffc two"]),
        *(
            (prose, [prose])
            for prose in (
                "It costs $5 and then $10, $1-$2 or US$ 3, 4$ (5$)",
                "${a} and ${b}, ${a}/${b}, $HOME/$PATH",
                '"$HOME" or "$PATH", $name$',
            )
        ),
        ("**$HOME** and **$PATH** [$A](u) [$B](v)", ["$HOME and $PATH $A $B"]),
        (r"\(see below\) \(optional\)", ["(see below) (optional)"]),
        ("a &amp; b &lt;c&gt; &copy;\n", ["a & b <c> ©"]),
        ("One\r\ntwo\r\n\r\n* three\r\n", ["One two", "three"]),
        ('import A from "a";\nimport {\n  B,\n} from \'b\'\n\nexport const c = {\n  d: "one",\n};\n\nOne\n', ["One"]),
        ("import taxes\n\nexport goods\n", ["import taxes", "export goods"]),
        (
            "You can\nexport default values.\n\nexport default values now\n",
            ["You can export default values.", "export default values now"],
        ),
        ('import duties are in "A"\n\nexport default function A() {\n}\n', ['import duties are in "A"']),
        ('<Tabs>\n\n# One\n\n</Tabs>\n\n<Go onClick={() => go("home")} />\n', ["One", "\ufffc"]),
        ('One <Go to={{a: 1}} {...b} x="y">two</Go> 3 < 5\n', ["One two 3 < 5"]),
    ],
)
def test_passages_are_paragraphs_headings_and_cells(markdown: str, passages: list[str]) -> None:
    assert [passage.text for passage in parse(markdown).passages] == passages
    assert unchanged(parse(markdown)) == markdown


@pytest.mark.parametrize(
    ("markdown", "text", "links", "expected"),
    [
        ("**Note:** The door", "Hinweis: Die Tür", "0-0 1-1 2-2 3-3", "**Hinweis:** Die Tür"),
        ("Das ist **sehr wichtig**.", "This is very important.", None, "This is **very important**."),
        (
            "Open the [**door**](/x) now.",
            "Öffne jetzt die Tür.",
            "0-0 3-1 1-2 2-3 4-4",
            "Öffne jetzt die [**Tür**](/x).",
        ),
        ("I *really* like it.", "Ich mag es wirklich.", "0-0 2-1 3-2 1-3 4-4", "Ich mag es *wirklich*."),
        ("***both*** ~~no~~ __b _i___", "und nein b i", None, "***und*** ~~nein~~ __b _i___"),
        ("==red== ++dog++ [**||is||**](/u)", "chien rouge est", "1-0 0-1 2-2", "++chien++ ==rouge== [**||est||**](/u)"),
        ("a == b !![d](e)", "x == y !z", None, "x == y !![z](e)"),
        ("as a:[...], (...)", "so a:[...], (...)", None, "so a:[...], (...)"),
        ("a `x_y` b", "z Boston w", None, "z `x_y` w"),
        ("a > b\\* c", "x > y z", None, "x > y\\* z"),
        ("[a *b*] c\n\n[A *B*]: /u", "x y z", None, "[x *y*][a *b*] z\n\n[A *B*]: /u"),
        ("[a][] ![b]\n\n[a]: /u\n[b]: /v", "a y", None, "[a][] ![y][b]\n\n[a]: /u\n[b]: /v"),
        ("![a car](u) b", "voiture b", "1-0 2-1", "![voiture](u) b"),
    ],
)
def test_marks_go_where_the_aligned_words_went(markdown: str, text: str, links: str | None, expected: str) -> None:
    assert rendered(parse(markdown), (text, links)) == expected


@pytest.mark.parametrize(
    ("markdown", "text", "links", "expected"),
    [
        ("**Stop!** Go.", "止まれ！行け。", "0-0 1-1 2-2", "**止まれ**！行け。"),
        ("go! [home](u)", "Go!home", "0-0 1-1 2-2", "Go! [home](u)"),
        ("met on January 1.", "1. Januar.", "3-0", "1\\. Januar."),
        ("the # sign", "# sign", "1-0", "\\# sign"),
        ("a ::: b", "::: b", "1-0 2-1", "\\::: b"),
        ("a : b", ": b", "1-0 2-1", "\\: b"),
        ("x ~ ~~a~~ b", "~~", "2-0", "~~\\~\\~~~"),
        ("[a [b] c](u) d", "x] y [z w", "0-0 1-1 2-2 3-3 4-4 5-5", "[x\\] y \\[z](u) w"),
        ("![b](u) c", "y]z w", "0-0 0-1 0-2 1-3", "![y\\]z](u) w"),
        (r"[a\]b](u) c", "x]y z", "0-0 1-1 2-2 3-3", r"[x\]y](u) z"),
    ],
)
def test_marks_are_read_as_such(markdown: str, text: str, links: str, expected: str) -> None:
    assert rendered(parse(markdown), (text, links)) == expected


def translation(source: str, target: str) -> Restored:
    """One with nothing copied, in which each word is aligned to the one with the same number."""
    return Restored(target, Edits((), ()), [], lambda: [aligned(source, target, None)])


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        (r"1986\. A great year.", r"1986\. A GREAT YEAR."),
        (r"1\) a (b)", r"1\) A (B)"),
        (r"\# a # b", r"\# A # B"),
        (r"\- a - b", r"\- A - B"),
        (r"\+ a + b", r"\+ A + B"),
        (r"\* a * b", r"\* A * B"),
        (r"\> 5 > 4 a", r"\> 5 > 4 A"),
        (r"\~~~ a ~ b", r"\~~~ A ~ B"),
        (r"\<a b < c", r"\<A B < C"),
        (r"\[a]: b [c]", r"\[A]: B [C]"),
        (r"\[a\](b) and [c]", r"\[A\](B) AND [C]"),
        (r"\!\[a\](b) [c]!", r"!\[A\](B) [C]!"),
        (r"\*a\* 2 * 3", r"\*A\* 2 * 3"),
        (r"*a b\* 2 * c*", r"*A B\* 2 * C*"),
        (r"\_a\_ b_c", r"\_A\_ B_C"),
        (r"\~~a\~~ b ~ c", r"\~\~A\~\~ B ~ C"),
        (r"\`a\` b ` c", r"\`A\` B ` C"),
        (r"\<b> a < b", r"\<B> A < B"),
        (r"a & b \&amp; c", r"A & B \&AMP; C"),
        (r"a &lt;b> < c", r"A \<B> < C"),
        (r"a \\_ \ b", r"A \\\_ \ B"),
        ("a  \n1986\\. b. c", "A  \n1986\\. B. C"),
        ("| a |\n|---|\n| \\*b\\* * c |", "| A |\n|---|\n| \\*B\\* * C |"),
        ("# # a", "# # A"),
        ("a<br>- b", "A<br>- B"),
    ],
)
def test_signs_that_are_no_marks_are_none_in_the_translation(markdown: str, expected: str) -> None:
    """Where the source has the same character without a backslash, too."""
    document = parse(markdown)
    assert document.render(translation(passage.text, passage.text.upper()) for passage in document.passages) == expected


@pytest.mark.parametrize(
    ("markdown", "text", "expected"),
    [
        ("2 * 3 * 4 a", "2*3*4 A", "2\\*3\\*4 A"),
        ("5 $ 6 $", "$5 6$", "\\$5 6$"),
        ("see [1] (page 4)", "見[1](第4頁)", "見\\[1\\](第4頁)"),
        ("a [x]", "[x] A", "\\[x] A"),
        ("a [b] c\n\n[d]: /u", "A [d] C", "A \\[d\\] C"),
    ],
)
def test_signs_that_would_become_marks_are_escaped(markdown: str, text: str, expected: str) -> None:
    document = parse(markdown)
    assert document.render([translation(document.passages[0].text, text)]).partition("\n\n")[0] == expected


def test_an_address_that_comes_to_begin_a_line_stays_one() -> None:
    copies = [(Span(4, 5), Span(0, 1))]
    assert parse("see <http://a.b>").render([Restored("\ufffc 見", Edits((), ()), copies, list)]) == "<http://a.b> 見"


def test_a_line_that_is_no_list_is_none_through_a_third_language() -> None:
    first = translation("1986. A great year.", "1986. UN AN.")
    document = parse(r"1986\. A great year.")
    document = document.with_passages([passage.with_translation(first, [], []) for passage in document.passages])
    assert document.render([translation("1986. UN AN.", "1986. EIN JAHR.")]) == r"1986\. EIN JAHR."


EM, STRONG, WORD, LINK = ("*", "*"), ("**", "**"), ("_", "_"), ("[", "](/u)")


@pytest.mark.parametrize(
    ("text", "elements", "expected"),
    [
        ("あ重要い", [(1, 3, None, STRONG)], "あ**重要**い"),
        ("あ「重要。」い", [(1, 6, None, STRONG)], "あ「**重要**。」い"),
        ("あ重要い", [(1, 3, None, WORD)], "あ _重要_ い"),
        ("a。b", [(1, 2, None, EM)], "a *。* b"),
        ("あ。 。い", [(1, 4, None, STRONG)], "あ **。 。** い"),
        ("あ+重要い", [(1, 4, None, STRONG)], "あ+**重要**い"),
        ("あ重要い", [(1, 3, None, STRONG), (1, 3, 0, LINK)], "あ **[重要](/u)** い"),
        ("あ重要い", [(1, 3, None, STRONG), (1, 3, 0, EM)], "あ***重要***い"),
        ("重要", [(1, 2, None, STRONG), (0, 1, None, EM)], "*重* **要**"),
        ("a b ", [(1, 4, None, EM)], "a *b* "),
        ("a! b", [(3, 4, None, LINK), (0, 2, None, EM)], "*a!* [b](/u)"),
        ("止まれ!家", [(4, 5, None, LINK)], "止まれ! [家](/u)"),
        ("ab", [(1, 1, None, EM)], "a**b"),
    ],
)
def test_a_mark_that_would_not_be_read_moves_or_gets_a_space(
    text: str, elements: list[tuple[int, int, int | None, tuple[str, str]]], expected: str
) -> None:
    places = [Span(start, end) for start, end, _, _ in elements]
    parts = [Region(place, parent) for place, (_, _, parent, _) in zip(places, elements, strict=True)]
    tags, places = make_flanking(text, parts, [tags for *_, tags in elements], places)
    ends = [(place.end, -i, tag) for i, (place, (_, tag)) in enumerate(zip(places, tags, strict=True))]
    starts = [(place.start, i + 1, tag) for i, (place, (tag, _)) in enumerate(zip(places, tags, strict=True))]
    rendered = text
    for position, _, tag in sorted(starts + ends, reverse=True):
        rendered = rendered[:position] + tag + rendered[position:]
    assert rendered == expected


@pytest.mark.parametrize("mark", ["`", "$"])
def test_code_that_comes_to_touch_other_code_is_parted(mark: str) -> None:
    document = parse("use `a` or `b`".replace("`", mark))
    copies = [(Span(4, 5), Span(2, 3)), (Span(9, 10), Span(3, 4))]
    expected = "使う`a` `b`".replace("`", mark)
    assert document.render([Restored("使う\ufffc\ufffc", Edits((), ()), copies, list)]) == expected


@pytest.mark.slow
def test_our_own_pages_come_out_byte_for_byte() -> None:
    root = Path(__file__).parents[3]
    for page in [*root.glob("*.md"), *root.glob("docs/*.md")]:
        text = page.read_bytes().decode()
        assert unchanged(parse(text)) == text
        assert unchanged(parse(text.replace("\n", "\r\n"))) == text.replace("\n", "\r\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "*", "a*", "*a ", "**a* ", "_a_ ", "[", "![", "[a](", "[^a", "<", "<a ", "`a``", ">", "- ", "~~a", "|",
        "==", "==a", "((", "((a", "##a",
        "a: b\n", "$a", "\\(a", "\\$", "!!! a\n", "[^a]: ", ": a\n", "\n{: ", "\n{{<>}} ", "\n{%%} ",
    ],
)  # fmt: skip
def test_long_nonsense_is_read_in_time_that_grows_with_it(piece: str) -> None:
    assert all(parse(before + piece * 10_000) for before in ("a ", "---\n"))
