import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument, TooLarge
from service.documents.archive import MAX_TAGS
from service.documents.localization import resx
from tests.service.documents.translating import Opened, translated

RESOURCES = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <!-- <data name="x"><value>a comment</value></data> -->
  <resheader name="version"><value>two point zero</value></resheader>
  <data name="a" xml:space="preserve">
    <value>Hello &amp; {0}
 again</value>
    <comment>a greeting</comment>
  </data>
  <data name='b &gt; c'><value><![CDATA[<b>bold</b> & so]]></value></data>
  <data name="typed" type="System.String, mscorlib"><value>typed text</value></data>
  <data name="icon" type="System.Resources.ResXFileRef"><value>an icon.png</value></data>
  <data name="image" mimetype="application/x-base64"><value>an image</value></data>
  <data name="&gt;&gt;label.Name"><value>label one</value></data>
  <data name="empty"><value /></data>
</root>
"""


def test_strings_are_translated_and_everything_else_stays() -> None:
    new = translated(Opened(resx.rewrite, RESOURCES.encode())).decode()
    expected = RESOURCES.replace("typed text", "TYPED TEXT").replace(
        "Hello &amp; {0}\n again", "HELLO &amp; {0}\n AGAIN"
    )
    assert new == expected.replace("<b>bold</b> & so", "<B>BOLD</B> & SO")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "shift_jis", "utf-16"])
def test_a_file_keeps_the_encoding_that_it_declares(encoding: str) -> None:
    text = '<?xml version="1.0" encoding="{}"?><root><data name="a"><value>a {} dog</value></data></root>'
    data = text.format(encoding, "犬" if encoding == "shift_jis" else "é").encode(encoding)
    contents = Opened(resx.rewrite, data)
    assert contents.write([contents.texts[0].replace("dog", "犬\x01")]).decode(encoding) == data.decode(
        encoding
    ).replace("dog", "犬" if encoding in ("shift_jis", "utf-16") else "&#29356;")


@given(st.text(st.sampled_from("a <>&\"'é]\n"), min_size=1), st.booleans())
def test_a_translation_is_read_as_it_is_and_nothing_else_changes(text: str, is_cdata: bool) -> None:
    value = "<![CDATA[dog]]>" if is_cdata else "dog"
    data = f'<root><data name="a"><value>{value}</value></data></root>'.encode()
    contents = Opened(resx.rewrite, data)
    assert contents.write(["dog"]) == data
    new = Opened(resx.rewrite, contents.write([text]))
    assert "".join(new.texts) == text or not text.strip() or "]]>" in text


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InvalidDocument),
        (b"<root><data></root>", InvalidDocument),
        (b"<resources/>", InvalidDocument),
        (b'<!DOCTYPE root [<!ENTITY a "b">]><root>&a;</root>', InvalidDocument),
        (b"<root>" + b"<a>" * 20_000, InvalidDocument),
        (b"<root>" + b"<a/>" * MAX_TAGS + b"</root>", TooLarge),
    ],
)
def test_another_file_is_refused(data: bytes, error: type[InvalidDocument | TooLarge]) -> None:
    with pytest.raises(error):
        Opened(resx.rewrite, data)
