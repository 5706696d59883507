"""Terms are read from files that others have made, and hostile ones do no harm."""

import codecs

import pytest

from service.base.errors import InvalidGlossary
from service.glossaries import exchange
from service.glossaries.entries import read_file
from service.glossaries.exchange import read_rows

DOCTYPE = '<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">'
STATUS = '<termNote type="administrativeStatus">{}-admn-sts</termNote>'
MARTIF = f"""<?xml version="1.0" encoding="UTF-8"?>
{DOCTYPE}
<martif type="TBX" xml:lang="en"><martifHeader/><text><body>
<termEntry id="1"><descrip type="subjectField">gardens</descrip>
<langSet xml:lang="en-US"><tig><term>garden</term></tig><tig><term>yard</term></tig></langSet>
<langSet xml:lang="fr"><ntig><termGrp><term>jardinet</term>{STATUS.format("deprecatedTerm")}</termGrp></ntig>
<ntig><termGrp><term>parc</term></termGrp></ntig>
<ntig><termGrp><term>le <hi>jardin</hi></term>{STATUS.format("preferredTerm")}</termGrp></ntig></langSet></termEntry>
<termEntry><langSet xml:lang="en"><tig><term>dog</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Hund</term></tig></langSet></termEntry>
<termEntry><langSet xml:lang="en"><tig><term>yard</term></tig></langSet>
<langSet xml:lang="fr"><tig><term>vergue</term></tig></langSet></termEntry>
</body></text></martif>
"""
TBX = """<tbx style="dct" type="TBX-Core" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min"><tbxHeader/><text><body><conceptEntry id="1">
<langSec xml:lang="en-GB"><termSec><term>colour</term></termSec></langSec>
<langSec xml:lang="en-US"><termSec><term>color</term></termSec></langSec>
<langSec xml:lang="fr-CA"><termSec><term>teinte</term>
<min:administrativeStatus>supersededTerm-admn-sts</min:administrativeStatus></termSec>
<termSec><term>couleur</term></termSec></langSec></conceptEntry></body></text></tbx>"""
TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="en-US"/><body>
<tu><tuv xml:lang="EN-US"><seg>the <bpt i="1">&lt;b><sub>x</sub></bpt>dog<ept i="1">/</ept> <hi>house</hi></seg></tuv>
<tuv xml:lang="FR"><seg>la
 niche &amp; Co</seg></tuv></tu>
<!-- a comment --><tu><prop>y</prop><tuv lang="en"><seg>cat</seg></tuv><tuv lang="fr"><seg>matou</seg></tuv></tu>
<tu><tuv lang="en"><seg>cat</seg></tuv><tuv lang="fr"><seg>chat</seg></tuv></tu></body></tmx>"""


@pytest.mark.parametrize(
    ("file", "source", "target", "expected"),
    [
        (MARTIF, "en", "fr", {"garden": "le jardin", "yard": "le jardin"}),
        (MARTIF, "en", "de-DE", {"dog": "Hund"}),
        (MARTIF, "fr", "en", {"jardinet": "garden", "parc": "garden", "le jardin": "garden", "vergue": "yard"}),
        (TBX, "en", "fr", {"color": "couleur", "colour": "couleur"}),
        (TBX, "fr", "en-GB", {"teinte": "colour", "couleur": "colour"}),
        (TBX, "fr", "en", {"teinte": "color", "couleur": "color"}),
        (TMX, "en", "fr", {"the dog house": "la niche & Co", "cat": "matou"}),
    ],
)
def test_the_terms_of_two_languages_are_read(file: str, source: str, target: str, expected: dict[str, str]) -> None:
    assert read_file("Terms.TMX", file.encode(), source, target) == expected


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_file_is_read_in_its_encoding(encoding: str) -> None:
    name = encoding.removesuffix("-sig")
    file = f'<?xml version="1.0" encoding="{name}"?>{TMX.partition("?>")[2]}'.replace("matou", "félin")
    assert ["cat", "félin"] in [row for _, row in read_rows(file.encode(encoding), "en", "fr")]


def of_terms(source: str, target: str, doctype: str = "") -> bytes:
    section = '\n<langSet xml:lang="{}"><tig><term>{}</term></tig></langSet>'
    entry = section.format("en", source) + section.format("fr", target)
    return f"{doctype}<martif><text><body><termEntry>{entry}</termEntry></body></text></martif>".encode()


BOMB = '<!DOCTYPE martif [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
FILE = '<!DOCTYPE martif [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (of_terms("a", ""), "^Line 2: the translation is empty"),
        (of_terms(" ", "b"), "^Line 2: the term is empty"),
        (of_terms("a", "b" * 201), "^Line 2: the translation has 201 characters; the limit is 200"),
        (of_terms("&b;", "b", BOMB), "must not define entities"),
        (of_terms("&a;", "b", FILE), "must not define entities"),
        (codecs.BOM_UTF16_LE + of_terms("&a;", "b", FILE).decode().encode("utf-16-le"), "must not define entities"),
        (of_terms("&a;", "b", '<!DOCTYPE martif SYSTEM "file:///etc/passwd">'), "unknown entity &a; in line 2"),
        (of_terms("&a;", "b"), "not XML"),
        (of_terms("<a>" * 300, "b"), "not XML"),
        (b"<a>" * 300, "not XML"),
        (b"", "not XML"),
        (b"\xff\xfe\x00", "not in its encoding, utf-16"),
        (b'<?xml version="1.0" encoding="x-none"?><tmx/>', "unknown encoding x-none"),
        (b"<tmx><body>caf\xe9</body></tmx>", "not XML"),
        (b"<html/>", "must be TBX or TMX, not html"),
        (b"<tmx/>", "no terms in both en and fr; available: none"),
        (MARTIF.replace('"fr"', '"ru"').encode(), "no terms in both en and fr; available: de, en, en-US, ru$"),
    ],
)
def test_unreadable_files_are_refused_in_words(data: bytes, part: str) -> None:
    with pytest.raises(InvalidGlossary, match=part):
        read_file("terms.tbx", data, "en", "fr")


def test_a_file_of_very_many_tags_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_TAGS", 10)
    with pytest.raises(InvalidGlossary, match="20 tags; the limit is 10"):
        read_rows(of_terms("a", "b"), "en", "fr")


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.csv", b"dog,clebs\n", {"dog": "clebs"}),
        ("a.TSV", "\ufeffdog\té".encode("utf-16-le"), {"dog": "é"}),
        ("a.tsv", "\ufeffdog\té".encode(), {"dog": "é"}),
    ],
)
def test_tables_are_read(name: str, data: bytes, expected: dict[str, str]) -> None:
    assert read_file(name, data, "en", "fr") == expected


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("a.tsv", b"dog\tclebs\ncat\t", "^Line 2: the translation is empty"),
        ("a.csv", b"dog,clebs\nhorse", "^Line 2 must have 2 columns"),
        ("a.csv", b'dog,"x', "^Line 1 is not CSV"),
        ("a.csv", b"caf\xe9,x", "must be UTF-8 or UTF-16"),
        ("a.xlsx", b"PK", "`file` must be a glossary, not .xlsx; available: .csv, .tbx, .tmx, .tsv"),
        ("a", b"a\tb", "not a file without an ending"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(name: str, data: bytes, part: str) -> None:
    with pytest.raises(InvalidGlossary, match=part):
        read_file(name, data, "en", "fr")
