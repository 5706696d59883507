from hypothesis import example, given
from hypothesis import strategies as st

from service.documents import markdown
from service.documents.encodings import CONTROL
from service.markup.markdown import parse
from service.markup.passages import Passage
from tests.service.documents.test_html import shape
from tests.service.documents.translating import Opened, in_capitals, translated
from tests.service.markup.test_markdown_properties import MARKDOWN

LONG = "word " * 500
FILES = st.lists(MARKDOWN | st.sampled_from(["\n\n", f"\n\n{LONG}\n\n", f"\n\n- {LONG}\n\n"]), max_size=8).map("".join)


def passages(text: str) -> list[tuple[object, ...]]:
    return [shape(part) for part in parse(text).parts if isinstance(part, Passage)]


@given(FILES)
@example(f"---\nt: x\n---\n{LONG}\n\n---\nt: x\n---\n\n{LONG}\n\n[a][r] b\n\n[r]: /u")
@example(f"---\nt: x\n---\r\n\r\n# a\r\n{LONG}\r\n\r\n    b\n")
@example(f"{LONG}\n\n[x][a B] and [ a\n b ]\n\n{LONG}\n\n[A  b]: <http://x/ y> 't'\n")
def test_a_text_in_pieces_reads_as_a_whole(text: str) -> None:
    text = CONTROL.sub("", text)
    contents = Opened(markdown.rewrite, text.encode())
    assert contents.write(contents.texts) == text.encode()
    assert [passage for piece in contents.texts for passage in passages(piece)] == passages(text)


def test_a_long_text_has_many_pieces_and_its_links_go_where_they_went() -> None:
    text = (
        f"---\ntitle: x\n---\n# One [link][a]\n\n{LONG}\n\n" * 1 + f"[two][A] *three*\n\n{LONG}\n\n" * 4 + "[a]: /u\n"
    )
    contents = Opened(markdown.rewrite, text.encode())
    assert len(contents.texts) == 5
    assert translated(contents).decode() == in_capitals(text, "markdown")
    assert "*THREE*" in translated(contents).decode()
    assert "[TWO][A]" in translated(contents).decode()
