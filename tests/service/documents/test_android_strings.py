import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization import android_strings
from tests.growth import check_linear
from tests.service.documents.translating import Opened, translated

STRINGS = r"""<?xml version="1.0" encoding="utf-8"?>
<!-- <string name="x">a comment</string> -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="app" translatable="false">Dog Walker</string>
    <string name="a">Don\'t stop &amp; go\nnow</string>
    <string name='b'>"it's quoted"</string>
    <string name="c">The <b>big</b> dog of <xliff:g id="name" example="x">%1$s</xliff:g> runs</string>
    <string name="d"><![CDATA[the <a href="https://example.org">terms</a> &amp; so]]></string>
    <string name="e">caf\u00e9\u0020</string>
    <string name="f">\@home is \"sweet\"</string>
    <string name="g"/>
    <string-array name="h">
        <item>one dog</item>
    </string-array>
    <string-array name="i" translatable="false"><item>no dog</item></string-array>
    <plurals name="p">
        <!-- a comment -->
        <item quantity="one">%d dog</item>
        <item quantity="other">%d dogs</item>
    </plurals>
    <color name="x">white</color>
</resources>
"""


def to(target: str, source: str = "en") -> ReadOptions:
    return ReadOptions(source=source, target=target)


def test_strings_are_translated_and_everything_else_stays() -> None:
    new = translated(Opened(android_strings.rewrite, STRINGS.encode(), to("de"))).decode()
    expected = STRINGS
    for before, after in {
        r"Don\'t stop &amp; go\nnow": r"DON\'T STOP &amp; GO\nNOW",
        '"it\'s quoted"': r'"IT\'S QUOTED"',
        "The <b>big</b> dog of ": "THE <b>BIG</b> DOG OF ",
        "</xliff:g> runs": "</xliff:g> RUNS",
        'the <a href="https://example.org">terms</a> &amp; so': 'THE <a href="https://example.org">TERMS</a> &amp; SO',
        r"caf\u00e9\u0020": r"CAFÉ\u0020",
        r"\@home is \"sweet\"": r"\@home IS \"SWEET\"",
        ">one dog": ">ONE DOG",
        "%d dog": "%d DOG",
        "DOGs": "DOGS",
    }.items():
        expected = expected.replace(before, after)
    assert new == expected


def test_escaped_tags_go_where_their_words_went() -> None:
    string = "the &lt;b>big &lt;a href='x'&gt;red&lt;/a&gt; dog&lt;/b> of <i>&lt;Tom</i>"
    data = f'<resources><string name="a">{string}</string></resources>'.encode()
    contents = Opened(android_strings.rewrite, data, to("de"))
    [text] = contents.texts
    assert text == 'the <x-escaped id="1">big <x-escaped id="0">red</x-escaped> dog</x-escaped> of <i>&lt;Tom</i>'
    assert contents.write(contents.texts) == data
    new = contents.write(['<x-escaped id="1">Hund <x-escaped id="0">rot</x-escaped></x-escaped>']).decode()
    assert ">&lt;b>Hund &lt;a href='x'&gt;rot&lt;/a&gt;&lt;/b><" in new


@pytest.mark.parametrize(
    ("target", "quantities"), [("ru", ["one", "few", "many", "other"]), ("ja", ["other"]), ("de", ["one", "other"])]
)
def test_plurals_have_the_quantities_of_the_target(target: str, quantities: list[str]) -> None:
    new = translated(Opened(android_strings.rewrite, STRINGS.encode(), to(target))).decode()
    begin, _, rest = new.partition("<plurals")
    plurals = rest.partition("</plurals>")[0]
    items = [line for line in plurals.splitlines() if "<item" in line]
    assert [item.split('"')[1] for item in items] == quantities
    assert all(item.startswith("        <item") and item.endswith("</item>") for item in items)
    assert begin.count("<item") == STRINGS.partition("<plurals")[0].count("<item")


@pytest.mark.parametrize(("source", "after"), [("en", "de"), ("fr", "en-US")])
def test_the_language_of_a_file_becomes_the_target(source: str, after: str) -> None:
    data = '<resources xmlns:tools="t" tools:locale="en-US"><string name="a">dog</string></resources>'
    new = translated(Opened(android_strings.rewrite, data.encode(), to("de", source))).decode()
    assert new == data.replace("en-US", after).replace("dog", "DOG")


@pytest.mark.parametrize(
    ("before", "html", "after"),
    [
        ("dog", 'l\'été &amp; "x"', r"l\'été &amp; \"x\""),
        ("dog", "@x ?y", r"\@x ?y"),
        ("dog", '<font color="red">x</font>', '<font color="red">x</font>'),
        ("<![CDATA[dog]]>", "l'x]]&gt;", r"<![CDATA[l\'x]]&gt;]]>"),
        ('say "dog"', "dog", "dog"),
        ("it&apos;s", "it&apos;s &quot;", r"it\&apos;s \&quot;"),
    ],
)
def test_a_translation_is_escaped_as_android_reads_it(before: str, html: str, after: str) -> None:
    data = f"<resources><string>{before}</string></resources>"
    assert Opened(android_strings.rewrite, data.encode()).write([html]).decode() == data.replace(before, after)


@pytest.mark.parametrize(
    ("before", "html", "after"),
    [
        ("%,d files in %s", "%s: %,d", "%2$s: %1$,d"),
        (
            '<b>%d</b> files in <xliff:g id="a">%s</xliff:g>',
            '<xliff-g id="0"/>: <b>%d</b>',
            '<xliff:g id="a">%2$s</xliff:g>: <b>%1$d</b>',
        ),
        ("%s, %&lt;s and %d", "%d, %s und %&lt;s", "%d, %s und %&lt;s"),
    ],
)
def test_conversions_in_another_order_get_numbers(before: str, html: str, after: str) -> None:
    data = f'<resources xmlns:xliff="x"><string>{before}</string></resources>'
    assert Opened(android_strings.rewrite, data.encode()).write([html]).decode() == data.replace(before, after)


CONTENT = st.lists(
    st.sampled_from(
        ["dog", " ", "\\'", "'", '"', "\\n", "\\u00e9", "\\ud83d", "<b>x</b>", "&lt;", "<a:g>%s</a:g>", "<a:g/>"]
    )
    | st.sampled_from(["<![CDATA[<b>x\\'</b>]]>", "<!-- c -->", "@", "\\@", "\\\\"]),
    max_size=6,
)


@given(CONTENT.map("".join))
def test_without_a_translation_a_file_comes_out_byte_for_byte(content: str) -> None:
    data = f'<resources xmlns:a="x"><string name="a">{content}</string></resources>'.encode()
    contents = Opened(android_strings.rewrite, data, to("ru"))
    assert contents.write(contents.texts) == data
    again = Opened(android_strings.rewrite, contents.write([f"{text}." for text in contents.texts]))
    assert [text.removesuffix(".") for text in again.texts] == contents.texts


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<resources><string></resources>",
        b"<root/>",
        b'<!DOCTYPE resources [<!ENTITY a "b">]><resources><string>&a;</string></resources>',
        b"<resources>" + b"<a>" * 20_000,
        b"<resources>caf\xe9</resources>",
    ],
)
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(android_strings.rewrite, data)


@pytest.mark.parametrize("unit", ["<", "<a:g>", "<a:g ", "<!--", '"', "\\", "<a '", "&"])
def test_a_hostile_string_takes_time_in_proportion(unit: str) -> None:
    def read(n: int) -> None:
        data = f"<resources><string><![CDATA[{unit * (n // len(unit))}]]></string></resources>".encode()
        contents = Opened(android_strings.rewrite, data)
        contents.write(["x"] * len(contents.texts))

    check_linear(read, 50_000)
