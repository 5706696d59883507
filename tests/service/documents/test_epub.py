import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument, TooLarge
from service.documents.contents import ReadOptions
from service.documents.kinds import kind_of
from service.documents.web import epub
from service.markup.xml import is_well_formed
from tests.service.documents.translating import Opened, translated

GERMAN = ReadOptions(source="en", target="de")
CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="O%20B/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version='1.0' encoding='utf-8'?>
<!DOCTYPE package PUBLIC "+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN" "http://openebook.org/dtds/oeb-1.2/oebpkg12.dtd">
<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="id" xml:lang='en'>
 <metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><!-- <dc:title>a comment</dc:title> -->
  <dc:title xml:lang="en">
    The sea &amp; me</dc:title><dc:title xml:lang="la">1984</dc:title><dc:identifier id="id">the-id</dc:identifier>
  <dc:creator xml:lang="en">Anna Smith</dc:creator><dc:language>en-GB</dc:language><dc:language>la</dc:language>
  <dc:description>&lt;p&gt;A &lt;b&gt;day&lt;/b&gt; &amp;amp; a night&lt;/p&gt;</dc:description>
 </metadata>
 <manifest>
  <item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
  <item id="two" href="pages/two.xhtml" media-type="application/xhtml+xml"/>
  <item id="one" href="pages/the%20one.xhtml" media-type="application/xhtml+xml"/>
  <item id="notes" href="../notes.xhtml" media-type="application/xhtml+xml"/>
  <item id="style" href="a.css" media-type="text/css"/>
  <item id="lost" href="lost.xhtml" media-type="application/xhtml+xml"/>
 </manifest>
 <spine toc="ncx"><itemref idref="one"/><itemref idref="two"/><itemref idref="one"/><itemref idref="none"/></spine>
 <guide><reference type="cover" title="The 'cover'" href="pages/two.xhtml"/></guide>
</package>"""
NCX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1" xml:lang="en">
<head><meta name="a" content="b c"/></head>
<docTitle><text>Our sea</text></docTitle><docAuthor><text>Anna Smith</text></docAuthor>
<navMap><navPoint id="a" playOrder="1">
<navLabel><text>First part</text></navLabel><content src="pages/two.xhtml"/></navPoint>
</navMap><pageList><pageTarget id="p"><navLabel><text>12</text></navLabel></pageTarget></pageList></ncx>"""
ONE = """\ufeff<?xml version="1.0" encoding="utf-8"?>\r
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">\r
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en-US"><head><title/><script src="a.js"/>\r
<style type="text/css">/*<![CDATA[*/ a &gt; b {} /*]]>*/</style></head>\r
<body><p>A<a id="p12"/> dog<br/>runs&nbsp;far.<img src="a.png" alt="A &quot;big&quot; dog"/></p><p/>\r
<p xml:lang="la">Et tu &amp; x</p><svg xmlns="http://www.w3.org/2000/svg"><text>a car</text></svg></body></html>"""
TWO = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Second page</p></body></html>'
FILES = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "O B/book.opf": PACKAGE,
    "O B/toc.ncx": NCX,
    "O B/pages/two.xhtml": TWO,
    "O B/pages/the one.xhtml": ONE,
    "notes.xhtml": TWO.replace("Second page", "A note"),
    "O B/a.css": "p { content: 'a word' }",
    "O B/other.xhtml": "<p>not in the manifest</p>",
}


def book(changed: dict[str, str | None] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as writing:
        for name, content in {**FILES, **(changed or {})}.items():
            if content is not None:
                method = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
                writing.writestr(zipfile.ZipInfo(name), content.encode(), method)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


def test_readable_text_is_translated_and_everything_else_stays() -> None:
    expected = dict(FILES)
    for name, old, new in (
        ("O B/book.opf", "The sea &amp; me", "THE SEA &amp; ME"),
        ("O B/book.opf", "A &lt;b&gt;day&lt;/b&gt; &amp;amp; a night", "A &lt;b&gt;DAY&lt;/b&gt; &amp;amp; A NIGHT"),
        ("O B/book.opf", "The 'cover'", "THE 'COVER'"),
        ("O B/book.opf", "xml:lang='en'", "xml:lang='de'"),
        ("O B/book.opf", '<dc:title xml:lang="en">', '<dc:title xml:lang="de">'),
        ("O B/book.opf", "<dc:language>en-GB<", "<dc:language>de-DE<"),
        ("O B/toc.ncx", "Our sea", "OUR SEA"),
        ("O B/toc.ncx", "First part", "FIRST PART"),
        ("O B/toc.ncx", 'xml:lang="en"', 'xml:lang="de"'),
        ("O B/pages/two.xhtml", "Second page", "SECOND PAGE"),
        ("notes.xhtml", "A note", "A NOTE"),
        ("O B/pages/the one.xhtml", 'A<a id="p12"/> dog<br/>runs&nbsp;far', 'A<a id="p12"/> DOG<br/>RUNS\xa0FAR'),
        ("O B/pages/the one.xhtml", "A &quot;big&quot; dog", "A &quot;BIG&quot; DOG"),
        ("O B/pages/the one.xhtml", "Et tu &amp; x", "ET TU &amp; X"),
        ("O B/pages/the one.xhtml", "<text>a car", "<text>A CAR"),
        ("O B/pages/the one.xhtml", 'xml:lang="en-US"', 'xml:lang="de-DE"'),
    ):
        assert expected[name].count(old) == 1
        expected[name] = expected[name].replace(old, new)
    assert unpacked(translated(Opened(epub.rewrite, book(), GERMAN))) == expected


def test_texts_are_in_the_order_of_the_book() -> None:
    texts = Opened(epub.rewrite, book()).texts
    order = [texts.index(text) for text in ("The sea &amp; me", "Et tu &amp; x", "Second page", "A note", "First part")]
    assert order == sorted(order)
    assert texts.count("Second page") == 1


def test_a_book_says_what_it_is_in_its_first_file_which_is_not_compressed() -> None:
    written = translated(Opened(epub.rewrite, book(), GERMAN))
    assert written[30:58] == b"mimetypeapplication/epub+zip"
    assert kind_of("a.zip", written).name == "epub"
    methods = {info.compress_type for info in zipfile.ZipFile(io.BytesIO(written)).infolist()[1:]}
    assert methods == {zipfile.ZIP_DEFLATED}


def test_a_book_that_is_not_translated_comes_out_byte_for_byte() -> None:
    contents = Opened(epub.rewrite, book(), GERMAN)
    assert contents.write(contents.texts) == book()


def test_an_empty_title_page_gets_its_language_with_the_rest() -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><body><img src="a.png" alt=""/></body></html>'
    written = unpacked(translated(Opened(epub.rewrite, book({"notes.xhtml": page}), GERMAN)))
    assert written["notes.xhtml"] == page.replace('"en"', '"de"')


XHTML_TEXT = st.text(st.sampled_from("aé b.1&<>'\"\n"), max_size=6).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
)
XHTML = st.recursive(
    st.one_of(XHTML_TEXT, st.sampled_from(["<br/>", "<img alt='a b' src='x'/>", "<a id='x'/>", "<!-- a -->", "<p/>"])),
    lambda inner: st.builds(
        '<{0} title="{2}">{1}</{0}>'.format,
        st.sampled_from(["p", "b", "i", "div", "code", "x:y", "td"]),
        st.lists(inner, max_size=4).map("".join),
        XHTML_TEXT.map(lambda text: text.replace('"', "&quot;")),
    ),
    max_leaves=10,
)


@given(st.lists(XHTML, max_size=4).map("".join), st.booleans())
def test_xhtml_stays_well_formed(body: str, backwards: bool) -> None:
    page = f'<?xml version="1.0"?>\n<html xmlns:x="u"><body>{body}</body></html>'
    data = book({"O B/pages/two.xhtml": page})
    contents = Opened(epub.rewrite, data, GERMAN)
    assert contents.write(contents.texts) == data
    written = unpacked(translated(contents, backwards))["O B/pages/two.xhtml"]
    assert is_well_formed(written.split("?>\n", 1)[1])


def encryption(algorithm: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><e:EncryptedData '
        f'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptionMethod Algorithm="{algorithm}"/>'
        "</e:EncryptedData></encryption>"
    )


def test_a_book_with_hidden_fonts_is_translated_and_an_encrypted_one_is_refused() -> None:
    fonts = encryption("http://www.idpf.org/2008/embedding")
    assert Opened(epub.rewrite, book({"META-INF/encryption.xml": fonts})).texts
    with pytest.raises(InvalidDocument, match="copy protection"):
        Opened(
            epub.rewrite, book({"META-INF/encryption.xml": encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")})
        )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"META-INF/container.xml": None}, "no META-INF/container.xml"),
        ({"META-INF/container.xml": "<container/>"}, "names no file"),
        ({"META-INF/container.xml": "<container"}, "damaged"),
        ({"META-INF/container.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, "document type"),
        ({"O B/book.opf": None}, "names no file"),
        ({"O B/book.opf": "<a>" * 20_000}, "damaged"),
        ({"O B/book.opf": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, "document type"),
        ({"O B/pages/two.xhtml": '<?xml version="1.0" encoding="klingon"?><p/>'}, "klingon"),
        ({"O B/pages/two.xhtml": "<p>\0</p>"}, "control character"),
    ],
)
def test_a_damaged_book_is_refused(changed: dict[str, str | None], says: str) -> None:
    with pytest.raises(InvalidDocument, match=says):
        Opened(epub.rewrite, book(changed))


def test_a_book_that_is_too_large_is_refused() -> None:
    with pytest.raises(TooLarge):
        Opened(epub.rewrite, book({"O B/a.css": "a" * 100_000}), ReadOptions(max_bytes=100_000))


@pytest.mark.parametrize("content", ["<!--" * 50_000, "<docAuthor>" * 50_000, "<a b='" * 50_000, "<text>" * 50_000])
def test_a_hostile_table_of_contents_is_read_quickly(content: str) -> None:
    table = {"O B/toc.ncx": content}
    assert len(Opened(epub.rewrite, book(table)).texts) == len(Opened(epub.rewrite, book()).texts) - 2
