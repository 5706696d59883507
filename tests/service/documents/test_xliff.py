"""XLIFF: sources become targets with their codes, and nothing else of the file changes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization.xliff import rewrite
from tests.service.documents.translating import Opened, translated

FRENCH = ReadOptions(source="en", target="fr")
STATE = 'state="needs-review-translation"'


def first(units: str, file: str = "", line_end: str = "\n") -> bytes:
    """A file of version 1.2 with these units."""
    return f"""<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<!-- <source>no</source> --><file source-language="en-US" original="a"{file}>
<header><note>no</note></header><body>
{units}
</body></file></xliff>
""".replace("\n", line_end).encode()


def second(unit: str, root: str = "") -> bytes:
    """A file of version 2 with this unit."""
    return (
        f'<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"{root}>'
        f'<file id="f"><unit id="1">{unit}</unit></file></xliff>'
    ).encode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("prefix", ["", "xlf:"])
def test_sources_become_targets_and_all_else_stays(line_end: str, prefix: str) -> None:
    before = """  <trans-unit id="1" extra='"'>
    <source>a dog</source>
    <note>a note</note>
  </trans-unit>
  <trans-unit id="2" approved="no"><source>two</source><target state="final-" state-qualifier="x"/></trans-unit>
  <trans-unit id="3" translate="no"><source>three</source></trans-unit>
  <group translate="no"><trans-unit id="4"><source>four</source></trans-unit></group>
  <trans-unit id="5"><source>five</source><alt-trans><source>six</source><target>sechs</target></alt-trans></trans-unit>
  <trans-unit id="6" approved="yes"><source>six</source><target>sechs</target></trans-unit>
  <trans-unit id="7"><source/></trans-unit>"""
    after = (
        before.replace("dog</source>", f"dog</source>\n    <target {STATE}>A DOG</target>")
        .replace('<target state="final-" state-qualifier="x"/>', f"<target {STATE}>TWO</target>")
        .replace("five</source>", f"five</source><target {STATE}>FIVE</target>")
    )

    def file(units: str, language: str) -> bytes:
        data = first(units, language, line_end).decode()
        return (
            re.sub("(</?)(?=[a-z])", rf"\1{prefix}", data).replace("xmlns=", f"xmlns{':xlf' * bool(prefix)}=").encode()
        )

    contents = Opened(rewrite, file(before, ""), FRENCH)
    assert (contents.texts, contents.source) == (["a dog", "two", "five"], "en-US")
    assert translated(contents) == file(after, ' target-language="fr"')


CODES = [
    ('a <g id="1" ctype="bold">b</g> c<x id="2"/>', 'A <g id="1" ctype="bold">B</g> C<x id="2"/>'),
    ('<bpt id="1">&lt;b></bpt>b<ept id="1">&lt;/b></ept> c', '<bpt id="1">&lt;b></bpt>B<ept id="1">&lt;/b></ept> C'),
    ('<bx id="1" rid="7"/>b c<ex id="2" rid="7"/> d', '<bx id="1" rid="7"/>B C<ex id="2" rid="7"/> D'),
    ('a <ph id="1">&lt;br/></ph>b', 'A <ph id="1">&lt;br/></ph>B'),
    (
        'a <x id="S" equiv-text="&lt;i class=&apos;x&apos;&gt;"/>b<x id="E" equiv-text="&lt;/i&gt;"/>',
        'A <x id="S" equiv-text="&lt;i class=&apos;x&apos;&gt;"/>B<x id="E" equiv-text="&lt;/i&gt;"/>',
    ),
    ('a <mrk mtype="protected">b</mrk> c', 'A <mrk mtype="protected">b</mrk> C'),
    ("a &lt;i&gt; &amp; <!-- b -->c", "A &lt;i&gt; &amp; <!-- b -->C"),
    ("<![CDATA[a & b]]>", "<![CDATA[A & B]]>"),
    ("a <ph id='1'><sub>b</sub></ph> c", "A <ph id='1'><sub>b</sub></ph> C"),
]


@pytest.mark.parametrize(("source", "target"), CODES)
def test_codes_stay_with_their_words(source: str, target: str) -> None:
    written = translated(Opened(rewrite, first(f"<trans-unit id='1'><source>{source}</source></trans-unit>"), FRENCH))
    assert f"<source>{source}</source><target {STATE}>{target}</target>" in written.decode()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('<bx id="1"/>b<ex id="1"/> c', "C B"),
        ('<g id="1">b</g> c', "C B"),
        ('<x id="1" equiv-text="&lt;b&gt;"/>b<x id="2" equiv-text="&lt;/b&gt;"/> c', "C B"),
    ],
)
def test_codes_go_where_their_words_go(source: str, words: str) -> None:
    data = first(f"<trans-unit id='1'><source>{source}</source></trans-unit>")
    written = translated(Opened(rewrite, data, FRENCH), backwards=True).decode()
    target = re.search(r"<target.*?>(.*)</target>", written)
    assert target is not None
    codes = re.findall("<.*?>", source)
    assert target[1] == f"C {codes[0]}B{codes[1]}"


def test_segments_are_translated_one_by_one() -> None:
    unit = """<trans-unit id="1"><source>A. B.</source>
<seg-source><g id="1"><mrk mtype="seg" mid="0">a.</mrk> <mrk mtype="seg" mid="1">b.</mrk></g></seg-source>
</trans-unit>"""
    target = (
        f'<target {STATE}><g id="1"><mrk mtype="seg" mid="0">A.</mrk> <mrk mtype="seg" mid="1">B.</mrk></g></target>'
    )
    contents = Opened(rewrite, first(unit), FRENCH)
    assert contents.texts == ["a.", "b."]
    assert f"</seg-source>\n{target}\n</trans-unit>" in translated(contents).decode()


def test_lines_and_columns_of_a_preserved_text_stay_apart() -> None:
    for space, target in (("preserve", b">ONE\nTWO     THREE<"), ("default", b">ONE TWO THREE<")):
        data = first(f'<trans-unit id="1" xml:space="{space}"><source>one\ntwo     three</source></trans-unit>')
        assert target in translated(Opened(rewrite, data, FRENCH))


def test_version_2_has_states_of_segments() -> None:
    unit = (
        '<originalData><data id="d">%d</data></originalData>'
        '<segment id="s" state="initial" subState="x:y">'
        '<source>a <pc id="1">b</pc> <ph id="2" dataRef="d"/></source></segment>'
        "<ignorable><source>no</source></ignorable>"
        "<segment><source>two</source><target xml:lang='de'>x</target></segment>"
    )
    contents = Opened(rewrite, second(unit, ' trgLang="de"'), FRENCH)
    target = '<target>A <pc id="1">B</pc> <ph id="2" dataRef="d"/></target>'
    expected = (
        unit.replace('state="initial" subState="x:y"', 'state="translated"')
        .replace('dataRef="d"/></source>', f'dataRef="d"/></source>{target}')
        .replace("<segment><source>two", '<segment state="translated"><source>two')
        .replace("<target xml:lang='de'>x<", '<target xml:lang="fr">TWO<')
    )
    assert translated(contents) == second(expected, ' trgLang="fr"')
    assert contents.source == "en"


@pytest.mark.parametrize(
    ("target", "is_missing"),
    [
        ("", True),
        ("<target/>", True),
        ('<target state="new">one</target>', True),
        ('<target state="needs-translation">one</target>', True),
        ('<target state="translated">une</target>', False),
        ("<target>une</target>", False),
        ('<target><x id="1"/></target>', False),
    ],
)
def test_only_missing_targets_are_translated_if_wanted(target: str, is_missing: bool) -> None:
    data = first(f'<trans-unit id="1"><source>one</source>{target}</trans-unit>', ' target-language="fr-FR"')
    for only_missing, language, n_texts in ((True, "fr", is_missing), (False, "fr", True), (True, "de", True)):
        contents = Opened(rewrite, data, ReadOptions(target=language, only_missing=only_missing))
        assert len(contents.texts) == n_texts
    written = translated(contents).decode()
    assert 'target-language="de"' in written


def test_approved_targets_stay_unless_they_are_in_another_language() -> None:
    unit = '<trans-unit id="1" approved="yes"><source>one</source><target>une</target></trans-unit>'
    assert Opened(rewrite, first(unit), FRENCH).texts == []
    written = translated(Opened(rewrite, first(unit, ' target-language="fr"'), ReadOptions(target="de")))
    assert f'approved="no"><source>one</source><target {STATE}>ONE'.encode() in written


def test_codes_alone_are_copied() -> None:
    written = translated(Opened(rewrite, first('<trans-unit id="1"><source><x id="1"/></source></trans-unit>'
        '<trans-unit id="2"><source>a</source></trans-unit>'), FRENCH))  # fmt: skip
    assert f'<target {STATE}><x id="1"/></target>'.encode() in written


CONTENT = st.recursive(
    st.text(st.characters(exclude_categories=["C"]), max_size=5).map(
        lambda text: f"<![CDATA[{text.replace(']', '')}]]>"
    )
    | st.sampled_from(
        ["a ", "b&amp;", '<x id="1"/>', '<bpt id="1">&lt;</bpt>', '<ept id="1"/>', "<!-- c -->", "&#233;\n"]
    ),
    lambda inner: st.lists(inner).map("".join) | inner.map(lambda one: f'<g id="2">{one}</g>'),
)


@given(CONTENT)
def test_any_content_comes_out_in_order(content: str) -> None:
    data = first(f'<trans-unit id="1"><source>{content}</source></trans-unit>')
    contents = Opened(rewrite, data, FRENCH)
    assert contents.write(contents.texts) == data
    root = etree.fromstring(contents.write([f"{text} z" for text in contents.texts]))
    for unit in root.iter("{*}trans-unit"):
        source, *target = unit
        if contents.texts:
            assert "".join(target[0].itertext()) == "".join(source.itertext()) + " z"
            assert [one.tag for one in target[0].iter()][1:] == [one.tag for one in source.iter()][1:]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_file_keeps_its_encoding(encoding: str) -> None:
    data = first('<trans-unit id="1"><source>café</source></trans-unit>').decode()
    data = data.replace('"1.0"', f'"1.0" encoding="{encoding}"')
    written = Opened(rewrite, data.encode(encoding), FRENCH).write(["собака é"])
    target = etree.fromstring(written).find(".//{*}target")
    assert target is not None
    assert target.text == "собака é"
    assert f'encoding="{encoding}"' in written.decode(encoding)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html/>",
        b"<xliff><file>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><xliff>&b;</xliff>',
        b"<xliff>" + b"<g>" * 20_000 + b"</g>" * 20_000 + b"</xliff>",
        b"<xliff>\xe9</xliff>",
        b'<?xml version="1.0" encoding="klingon"?><xliff/>',
    ],
)
def test_a_file_that_is_not_xliff_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(rewrite, data)


@pytest.mark.parametrize("part", ["<x/>a ", '<bx id="1"/>', "<g>a</g>", "<![CDATA[a]]>", " ", "\n"])
def test_a_large_file_is_read_and_written_in_time(part: str) -> None:
    source = part * (50_000 // len(part))
    data = first(f'<trans-unit id="1" xml:space="preserve"><source>{source}</source></trans-unit>')
    contents = Opened(rewrite, data, FRENCH)
    assert len(contents.write([f"{text}x" for text in contents.texts])) >= len(data)
