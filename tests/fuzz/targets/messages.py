"""Messages of programs: every kind of file in `service/documents/localization`."""

from random import Random

from tests.fuzz.documents import ALLOWED, grown, mutate_document, nested, read_document, seed
from tests.fuzz.mutation import mutate_lines, mutate_xml
from tests.fuzz.target import MutateBytes, Target
from tests.service.documents import (
    test_android_strings,
    test_apple_strings,
    test_json_messages,
    test_po,
    test_properties,
    test_resx,
    test_string_catalog,
    test_xliff,
)

UNITS = (
    '<trans-unit id="1" approved="yes"><source>a <g id="1">red</g><x id="2"/> dog</source><target>x</target></trans-unit>'
    '<trans-unit id="2"><source>a<bpt id="1">&lt;b></bpt>b<ept id="1">&lt;/b></ept></source><seg-source>'
    '<mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source></trans-unit>'
)
SEGMENT = (
    '<originalData><data id="d1">&lt;i></data></originalData><segment state="initial"><source>a <pc id="1">red</pc> '
    '<ph id="2" dataRef="d1"/><sc id="3" dataRef="d1"/>dog<ec startRef="3"/></source></segment>'
)
YAML = """# a comment
en: &a
  greeting: "Hello\\tworld"
  'many': |
    Two lines
      of text

  folded: >-
    a long
    line
  dogs: {one: a dog, other: "%{count} dogs"}
  list: [one, 'it''s', *a, !!str 12]
  number: 1_000
"""
ICU = '{"a": "{n, plural, =0 {none} one {# dog} other {# dogs}}", "b_one": "a dog", "b_other": "{{count}} dogs"}'


def _seeds() -> list[bytes]:
    return [
        seed("po ru", test_po.MESSAGES),
        seed("po fr missing signs", test_po.TRANSLATED),
        seed("xlf fr", test_xliff.first(UNITS)),
        seed("xlf ja missing", test_xliff.second(SEGMENT)),
        seed("json ru", test_json_messages.MESSAGES),
        seed("json ar", test_json_messages.PLURALS),
        seed("json fr signs", ICU),
        seed("arb ru", test_json_messages.ARB),
        seed("xcstrings ru", test_string_catalog.catalog()),
        seed("yaml ru", YAML),
        seed("yaml fr signs unknown", YAML),
        seed("properties fr signs", test_properties.MESSAGES),
        seed("strings fr signs", test_apple_strings.MESSAGES),
        seed("resx fr signs", test_resx.RESOURCES),
        seed("xml ru signs", test_android_strings.STRINGS),
    ]


def _mutate_file(file: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    is_xml = file.lstrip()[:1] == b"<"
    return (mutate_xml if is_xml and random.random() < 0.8 else mutate_lines)(file, random, mutate_bytes)


XLIFF = '<xliff version="1.2"><file source-language="en"><body>', "</body></file></xliff>"
UNIT = '<trans-unit id="1"><source>', "</source></trans-unit>"
PO = 'msgid ""\nmsgstr "Language: fr\\n"\n\n'
RESX, ANDROID = ("<root>", "</root>"), ("<resources>", "</resources>")
GROWN = {
    "po entries": grown("po", PO, 'msgid "a dog §"\nmsgstr ""\n\n'),
    "po one long line": grown("po", PO + 'msgid "', "a dog ", '"\nmsgstr ""\n'),
    "po one long word": grown("po", PO + 'msgid "', "a", '"\nmsgstr ""\n'),
    "po lines": grown("po", PO + 'msgid ""\n', '"a dog %d"\n', 'msgstr ""\n'),
    "po escapes": grown("po", PO + 'msgid "', "\\x41\\n", '"\nmsgstr ""\n'),
    "po flags": grown("po", PO + "#, ", "fuzzy, ", '\nmsgid "a"\nmsgstr ""\n'),
    "po header": grown("po", 'msgid ""\nmsgstr ""\n"Language: de\\n"\n', '"A: b\\n"\n', '\nmsgid "a"\nmsgstr ""\n'),
    "po header without ends": grown("po", 'msgid ""\nmsgstr ""\n', '"Language"\n', '\nmsgid "a"\nmsgstr ""\n'),
    "po conversions": grown("po", PO + '#, c-format\nmsgid "', "%s %d ", '"\nmsgstr ""\n'),
    "po plural forms": grown("po", PO + 'msgid "a"\nmsgid_plural "b"\n', 'msgstr[§] ""\n'),
    "po plural forms of blanks": grown("po", 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=', " ", 'n != 1; x\\n"\n\nmsgid "a"\nmsgstr ""\n'),
    "po messages of conversions": grown("po", PO, '#, c-format\nmsgid "' + "%s %d " * 7_000 + '"\nmsgstr ""\n\n'),
    "po quotes": grown("po", PO + "msgid ", '"" ', 'msgstr ""\n'),
    "po comments": grown("po", PO, "#| a\n", 'msgid "a"\nmsgstr ""\n'),
    "po content types": grown("po", "", '"Content-Type: '),
    "xliff units": grown("xlf", XLIFF[0], UNIT[0] + "a dog §" + UNIT[1], XLIFF[1]),
    "xliff codes": grown("xlf", XLIFF[0] + UNIT[0], 'a<x id="§"/>', UNIT[1] + XLIFF[1]),
    "xliff groups": grown("xlf", XLIFF[0] + UNIT[0], '<g id="§">a</g>', UNIT[1] + XLIFF[1]),
    "xliff nested": nested("xlf", XLIFF[0] + UNIT[0], "<g>", "a", "</g>", UNIT[1] + XLIFF[1]),
    "xliff starts": grown("xlf", XLIFF[0] + UNIT[0], 'a<bpt id="§">x</bpt>', UNIT[1] + XLIFF[1]),
    "xliff lines": grown("xlf", XLIFF[0] + UNIT[0], "a\n", UNIT[1] + XLIFF[1]),
    "xliff segments": grown("xlf", XLIFF[0] + UNIT[0] + "a</source><seg-source>", '<mrk mtype="seg">a</mrk>', "</seg-source></trans-unit>" + XLIFF[1]),
    "xliff blanks in a tag": grown("xlf", XLIFF[0] + '<trans-unit id="1" ', " ", "><source>a</source><target/></trans-unit>" + XLIFF[1]),
    "xliff blanks in a target": grown("xlf", XLIFF[0] + "<trans-unit><source>a</source><target ", " ", ' state="new"/></trans-unit>' + XLIFF[1]),
    "xliff blanks before a sign": grown("xlf", XLIFF[0] + "<trans-unit><source>a</source><target state", " ", '= "new"/></trans-unit>' + XLIFF[1]),
    "xliff attributes": grown("xlf", XLIFF[0] + '<trans-unit id="1" ', 'a§="b" ', "><source>a</source></trans-unit>" + XLIFF[1]),
    "xliff children": grown("xlf", XLIFF[0], '<trans-unit><note/></trans-unit>', XLIFF[1]),
    "xliff notes in a unit": grown("xlf", XLIFF[0] + '<trans-unit id="1"><source>a</source>', "<note/>", "</trans-unit>" + XLIFF[1]),
    "xliff data": grown("xlf", '<xliff version="2.0" srcLang="en"><file id="f"><unit><originalData>', '<data id="§">b</data>', "</originalData><segment><source>a</source></segment></unit></file></xliff>"),
    "xliff blanks before": grown("xlf", XLIFF[0], " ", UNIT[0] + "a" + UNIT[1] + XLIFF[1]),
    "xliff comments": grown("xlf", XLIFF[0], "<!--", XLIFF[1]),
    "xliff sections": grown("xlf", XLIFF[0] + UNIT[0], "<![CDATA[a]]>", UNIT[1] + XLIFF[1]),
    "json strings": grown("json", '{"x": 1', ', "a§": "a dog"', "}"),
    "json nested": nested("json", "", '{"a":', '"a dog"', "}"),
    "json lists": nested("json", "", "[", '"a dog"', "]"),
    "json plurals": grown("json", '{"x": 1', ', "a_one": "a dog", "a_other": "{{n}} dogs"', "}"),
    "json one plural": grown("json", '{"x": 1', ', "a_other": "{{n}} dogs"', "}"),
    "json line of spaces": grown("json", '{"a_one": "a dog",', " ", '"a_other": "{{n}} dogs"}'),
    "json long text": grown("json", '{"a": "', "a dog ", '"}'),
    "json escapes": grown("json", '{"a": "', "\\u0041", '"}'),
    "json messages": grown("json", '{"a": "', "{n, plural, one {a} other {b}} ", '"}'),
    "json nested messages": nested("json", '{"a": "', "{n, plural, other {", "a", "}}", '"}'),
    "json branches": grown("json", '{"a": "{n, plural, other {x}', " =§ {b}", '}"}'),
    "json braces": grown("json", '{"a": "', "{", '"}'),
    "json braces of messages": grown("json", '{"a": "', "{n, plural, ", '"}'),
    "json quoted braces": grown("json", '{"a": "{n, plural, other {x}} ', "'{", '"}'),
    "json identifiers": grown("json", '{"a": "', "aB", '"}'),
    "json dotted": grown("json", '{"a": "', "a.", '!"}'),
    "json digits": grown("json", '{"a": "x", "b": ', "1", "}"),
    "arb strings": grown("arb", '{"@@locale": "en"', ', "a§": "a dog {n}"', "}"),
    "catalog strings": grown("xcstrings", '{"sourceLanguage": "en", "strings": {"x": {}', ', "a§": {}', "}}"),
    "catalog languages": grown("xcstrings", '{"sourceLanguage": "en", "strings": {"a": {"localizations": {"x": {}', ', "a§": {}', "}}}}"),
    "catalog of one name": grown("xcstrings", '{"sourceLanguage": "en", "strings": {"x": {}', ', "a": {}', "}}"),
    "catalog nested": nested("xcstrings", '{"sourceLanguage": "en", "strings": {"a": {"localizations": {"en": ', '{"variations": {"device": {"mac": ', '{"stringUnit": {"value": "a"}}', "}}}", "}}}}"),
    "yaml strings": grown("yaml", "en:\n", "  a§: a dog\n"),
    "yaml flow": nested("yaml", "", "{a: ", "a dog", "}"),
    "yaml lists": nested("yaml", "", "[", "a dog", "]"),
    "yaml items": grown("yaml", "a:\n", "- a dog\n"),
    "yaml nested items": grown("yaml", "", "- ", "a dog"),
    "yaml block": grown("yaml", "a: |\n", "  a dog\n"),
    "yaml folded": grown("yaml", "a: >\n", "  a dog\n"),
    "yaml folded words": grown("yaml", "a: >\n  ", "a dog "),
    "yaml quoted": grown("yaml", "a: '", "it''s ", "'\n"),
    "yaml comments": grown("yaml", "a: &b ", "# c\n", " d\n"),
    "yaml anchors": grown("yaml", "a: !b ", " # c\n ", " d\n"),
    "yaml documents": grown("yaml", "", "--- a dog\n"),
    "yaml escapes": grown("yaml", 'a: "', "\\x41", '"\n'),
    "yaml keys": grown("yaml", "", "? a\n"),
    "properties": grown("properties", "", "a.§ = a dog\n"),
    "properties continued": grown("properties", "a = ", "a dog\\\n  "),
    "properties escapes": grown("properties", "a = ", "\\u0041"),
    "properties blanks": grown("properties", "", " \\\n"),
    "properties backslashes": grown("properties", "a = ", "\\"),
    "properties keys": grown("properties", "", "a\\ "),
    "properties quotes": grown("properties", "a = {0} ", "'"),
    "strings": grown("strings", "", '"a§" = "a dog";\n'),
    "strings long": grown("strings", '"a" = "', "a dog", '";'),
    "strings escapes": grown("strings", '"a" = "', "\\U0041", '";'),
    "strings comments": grown("strings", "", "/* a */", '"a" = "a dog";'),
    "strings open comments": grown("strings", "", "/*"),
    "strings slashes": grown("strings", "", "// "),
    "strings words": grown("strings", "", "a"),
    "resx strings": grown("resx", RESX[0], '<data name="a§"><value>a dog</value></data>', RESX[1]),
    "resx values": grown("resx", RESX[0] + '<data name="a">', "<value>a dog</value>", "</data>" + RESX[1]),
    "resx sections": grown("resx", RESX[0] + '<data name="a"><value>', "<![CDATA[a]]>", "</value></data>" + RESX[1]),
    "resx references": grown("resx", RESX[0] + '<data name="a"><value>', "&amp;", "</value></data>" + RESX[1]),
    "android strings": grown("xml", ANDROID[0], '<string name="a§">a dog</string>', ANDROID[1]),
    "android placeholders": grown("xml", ANDROID[0] + '<string name="a">', "<xliff:g>%1$s</xliff:g> ", "</string>" + ANDROID[1]),
    "android nested placeholders": nested("xml", ANDROID[0] + '<string name="a">', "<x:g>", "a", "</x:g>", "</string>" + ANDROID[1]),
    "android tags": grown("xml", ANDROID[0] + '<string name="a">', "<b>a</b> ", "</string>" + ANDROID[1]),
    "android quotes": grown("xml", ANDROID[0] + '<string name="a">"', "a ", '"</string>' + ANDROID[1]),
    "android escapes": grown("xml", ANDROID[0] + '<string name="a">', "\\u0041", "</string>" + ANDROID[1]),
    "android apostrophes": grown("xml", ANDROID[0] + '<string name="a">', "\\'", "</string>" + ANDROID[1]),
    "android plurals": grown("xml", ANDROID[0] + '<plurals name="a">', '<item quantity="one">a</item>', "</plurals>" + ANDROID[1]),
    "android items": grown("xml", ANDROID[0] + '<string-array name="a">', "<item>a dog</item>", "</string-array>" + ANDROID[1]),
}  # fmt: skip

TARGET = Target(
    read=read_document,
    seeds=_seeds,
    allowed=ALLOWED,
    mutate=mutate_document(_mutate_file),
    words=[
        b"msgid", b"msgstr", b"msgctxt", b"msgid_plural", b"msgstr[0]", b'"\n"', b"#, fuzzy", b"#~ ", b"#| ",
        b"Plural-Forms: nplurals=2; plural=(n != 1);\\n", b"charset=UTF-16", b"<source>", b"<target/>", b"<g id='1'>",
        b"</g>", b"<mrk mtype='seg'>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"&#xD800;", b"&amp;", b"{n, plural, ",
        b"other {", b"one {", b"=0 {", b"select", b"selectordinal", b"offset:1", b"#", b"'{", b"\\ud800", b"\\u0000",
        b"one", b"other", b"_one", b"_other", b"variations", b"stringUnit", b"substitutions", b"device", b"&a ", b"*a",
        b"!!str ", b"|\n", b">-\n", b"? ", b"--- ", b"%YAML 1.1\n", b"<<: ", b"\\\n", b"\\U", b"@@locale",
        b"<xliff:g>", b"</xliff:g>", b"quantity='one'", b"tools:locale", b"xml:lang", b"xml:space='preserve'",
    ],
    grown=GROWN,
)  # fmt: skip
