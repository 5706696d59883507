import io
import shutil
import subprocess
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from hypothesis import example, given
from hypothesis import strategies as st

from service.base.errors import InvalidDocument
from service.documents.contents import ReadOptions
from service.documents.localization.po import rewrite
from tests.growth import check_linear
from tests.service.documents.translating import Opened, translated

FRENCH = ReadOptions(source="en", target="fr")
HEADER = r"""# The title.
#, fuzzy
msgid ""
msgstr ""
"POT-Creation-Date: 2026-01-01 00:00+0000\n"
"Language: \n"
"Content-Type: text/plain; charset=CHARSET\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"
"""
MESSAGES = (
    HEADER
    + r"""
#. For the title bar
#: a.c:1 b.c:2
msgctxt "menu"
msgid "a \"red\"	bus\n"
msgstr ""

# By a person
#, c-format
#| msgid "%d cat"
msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] "Old"
msgstr[1] ""

#, fuzzy
#~ msgid "gone"
#~ msgstr "parti"

msgid ""
"one\n"
"two"
msgstr "three"
"""
)
TRANSLATED = (
    MESSAGES.replace("Language: ", "Language: fr")
    .replace("CHARSET", "UTF-8")
    .replace("INTEGER; plural=EXPRESSION;", "2; plural=(n == 0 || n == 1) ? 0 : 1;")
    .replace('msgctxt "menu"', '#, fuzzy\nmsgctxt "menu"')
    .replace('bus\\n"\nmsgstr ""', 'bus\\n"\nmsgstr "A \\"RED\\"\\tBUS\\n"')
    .replace("#, c-format", "#, fuzzy, c-format")
    .replace('#| msgid "%d cat"\n', "")
    .replace('msgstr[0] "Old"\nmsgstr[1] ""', 'msgstr[0] "%D DOG"\nmsgstr[1] "%D DOGS"')
    .replace('msgid ""\n"one', '#, fuzzy\nmsgid ""\n"one')
    .replace('msgstr "three"', 'msgstr ""\n"ONE\\n"\n"TWO"')
)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_messages_are_translated_and_all_else_stays(line_end: str) -> None:
    contents = Opened(rewrite, MESSAGES.replace("\n", line_end).encode(), FRENCH)
    assert contents.texts == ['a "red"\tbus\n', "%d dog", "%d dogs", "one\ntwo"]
    assert translated(contents).decode() == TRANSLATED.replace("\n", line_end)


def test_the_previous_message_goes_with_its_translation() -> None:
    previous = '#| msgctxt "old"\n#| msgid ""\n#| "a cat"\n'
    messages = f'# A\n{previous}#. B\nmsgid "a dog"\nmsgstr "un chat"\n\n{previous}msgid "  "\nmsgstr "c"\n'
    written = translated(Opened(rewrite, messages.encode(), FRENCH)).decode()
    expected = messages.replace(previous, "", 1).replace('msgid "a dog"', '#, fuzzy\nmsgid "a dog"')
    assert written.endswith(expected.replace("un chat", "A DOG"))


TEXT = st.text(st.characters(exclude_categories=["C", "Z"]) | st.sampled_from(" \n\t"), min_size=1, max_size=90)


@given(st.lists(st.tuples(TEXT, TEXT | st.none(), TEXT | st.none(), TEXT)), st.sampled_from([76, 0]))
@example([("a dog", None, None, "x"), ("a dog", " ", "context", "x")], 76)
def test_files_of_babel_are_read_and_reverse(
    messages: list[tuple[str, str | None, str | None, str]], width: int
) -> None:
    catalog = Catalog(locale="de")
    for message, plural, context, comment in messages:
        catalog.add((message, plural) if plural else message, context=context, auto_comments=["x" + comment.strip()])
    file = io.BytesIO()
    write_po(file, catalog, width=width)
    contents = Opened(rewrite, file.getvalue(), ReadOptions(target="de"))
    assert contents.write(contents.texts) == file.getvalue()
    written = read_po(io.BytesIO(contents.write([f"-{text}" for text in contents.texts])))
    assert [message.id for message in written] == [message.id for message in catalog]
    for message in [*written][1:]:
        ids = message.id if isinstance(message.id, tuple) else (message.id,)
        strings = message.string if isinstance(message.string, tuple) else (message.string,)
        assert [*strings] == [f"-{text}" if all(map(str.strip, ids)) else "" for text in ids]
        assert message.fuzzy or not any(strings)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ["%D DOG", "%D DOGS"]),
        ("fr", ["%D DOG", "%D DOGS"]),
        ("ja", ["%D DOGS"]),
        ("ru", ["%D DOG", "%D DOGS", "%D DOGS"]),
        ("ar", ["%D DOGS", "%D DOG", "%D DOGS", "%D DOGS", "%D DOGS", "%D DOGS"]),
    ],
)
def test_each_plural_form_of_the_target_is_made_of_the_message_that_it_is_for(language: str, forms: list[str]) -> None:
    written = read_po(io.BytesIO(translated(Opened(rewrite, MESSAGES.encode(), ReadOptions(target=language)))))
    plural = written.get("%d dog")
    assert plural is not None
    assert [*plural.string] == forms


def test_a_singular_without_its_number_is_for_one_alone() -> None:
    data = b'msgid "One dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    for language, form in (("ru", "%D DOGS"), ("fr", "ONE DOG")):
        assert f'msgstr[0] "{form}"'.encode() in translated(Opened(rewrite, data, ReadOptions(target=language)))


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (
            "Language: fr_CA|Plural-Forms: nplurals=2; plural=n>1",
            "fr",
            "Language: fr_CA|Plural-Forms: nplurals=2; plural=n>1",
        ),
        (
            "Language: de|Plural-Forms: nplurals=2; plural=(n != 1)",
            "ja",
            "Language: ja|Plural-Forms: nplurals=1; plural=0;",
        ),
        (
            "Plural-Forms: nplurals=2; plural=n>1;|Language: ",
            "fr",
            "Plural-Forms: nplurals=2; plural=n>1;|Language: fr",
        ),
        (
            "Language: fr|Plural-Forms: nplurals=2; plural=n/0;",
            "de",
            "Language: de|Plural-Forms: nplurals=2; plural=(n != 1);",
        ),
        (
            'Language: fr|Plural-Forms: nplurals=2; "\n"plural=0;',
            "ja",
            "Language: ja|Plural-Forms: nplurals=1; plural=0;",
        ),
        ("X-A: Language: x", "zh-Hant", "X-A: Language: x|Plural-Forms: nplurals=1; plural=0;|Language: zh_Hant"),
    ],
)
def test_the_header_says_what_the_translation_is(before: str, target: str, after: str) -> None:
    def header(fields: str) -> str:
        return 'msgid ""\nmsgstr ""\n' + "".join(f'"{value}\\n"\n' for value in fields.split("|"))

    data = (header(before) + '\nmsgid "a"\nmsgstr ""\n').encode()
    written = translated(Opened(rewrite, data, ReadOptions(target=target))).decode()
    assert written == header(after) + '\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


def test_a_file_without_a_header_gets_one() -> None:
    written = translated(Opened(rewrite, b'msgid "a"\nmsgstr ""\n', FRENCH))
    catalog = read_po(io.BytesIO(written))
    assert (str(catalog.locale), catalog.num_plurals, catalog.charset) == ("fr", 2, "utf-8")


def test_human_translations_stay_if_only_missing_ones_are_wanted() -> None:
    data = b'msgid "a"\nmsgstr "x"\n\n#, fuzzy\nmsgid "b"\nmsgstr "y"\n\nmsgid "c"\nmsgstr ""\n'
    missing = ReadOptions(target="fr", only_missing=True)
    contents = Opened(rewrite, data, missing)
    assert contents.texts == ["b", "c"]
    assert b'msgid "a"\nmsgstr "x"' in translated(contents)
    german = b'msgid ""\nmsgstr "Language: de\\n"\n\n' + data
    assert Opened(rewrite, german, missing).texts == ["a", "b", "c"], "what is there is not French"


def test_a_file_keeps_its_encoding_if_that_has_the_letters() -> None:
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=iso-8859-1\\n"\n\n'
    contents = Opened(rewrite, (header + '# \xe9\nmsgid "caf\xe9 \\303\\251"\nmsgstr ""\n').encode("latin-1"), FRENCH)
    assert contents.texts == ["café Ã©"]
    assert 'msgstr "été"\n' in contents.write(["été"]).decode("latin-1")
    written = contents.write(["собака"]).decode()
    assert "charset=UTF-8" in written
    assert '# é\n#, fuzzy\nmsgid "café \\303\\251"\nmsgstr "собака"' in written


@pytest.mark.parametrize(
    ("text", "translation", "written"),
    [
        ("%s has %d%% of %s", "%d%% von %s hat %s", "%2$d%% von %1$s hat %3$s"),
        ("%-5.2f and %<PRId64>", "%<PRId64> und %-5.2f", "%2$<PRId64> und %1$-5.2f"),
        ("%s and %d", "%s und %d", "%s und %d"),
        ("%s and %d", "%d", "%d"),
        ("%2$s and %1$d", "%1$d und %2$s", "%1$d und %2$s"),
        ("%-*.*f and %s", "%s und %-*.*f", "%4$s und %3$-*1$.*2$f"),
        ("%s has 10% done of %d", "%d, 10% done, hat %s", "%2$d, 10% done, hat %1$s"),
        ("%s on %d %Y", "%d %Y: %s", "%d %Y: %s"),
    ],
)
def test_conversions_in_another_order_get_numbers(text: str, translation: str, written: str) -> None:
    for flag, expected in (("#, c-format\n", written), ("#, python-format\n", translation)):
        data = f'{flag}msgid "{text}"\nmsgstr ""\n'.encode()
        assert f'msgstr "{expected}"'.encode() in Opened(rewrite, data, FRENCH).write([translation])


@pytest.mark.parametrize(
    ("text", "read", "translation", "written"),
    [
        ("% d of %d dogs", "%d of %d dogs", "%d von %d Hunden", "% d von %d Hunden"),
        ("%- 5ld is 5 % done", "%-5ld is 5 % done", "%-5ld ist 5 % fertig", "%- 5ld ist 5 % fertig"),
    ],
)
def test_a_blank_may_be_a_flag_of_a_conversion(text: str, read: str, translation: str, written: str) -> None:
    for flag, shown, expected in (("#, c-format\n", read, written), ("", text, translation)):
        contents = Opened(rewrite, f'{flag}msgid "{text}"\nmsgstr ""\n'.encode(), FRENCH)
        assert contents.texts == [shown]
        assert f'msgstr "{expected}"'.encode() in contents.write([translation])


def test_lines_are_as_wide_as_those_of_the_file() -> None:
    long = "word " * 40
    for data, n_lines in ((b'msgid "a"\nmsgstr ""\n', 3), (f'msgid "{long}"\nmsgstr ""\n'.encode(), 1)):
        written = Opened(rewrite, data, FRENCH).write([f"-{long}"]).decode()
        strings = written.rpartition("msgstr ")[2]
        assert len([line for line in strings.splitlines() if line != '""']) == n_lines


@pytest.mark.parametrize(
    "data",
    [
        b"Hello",
        b'msgid "a"',
        b'msgid "a"\nmsgid "b"\nmsgstr ""',
        b'msgstr "a"',
        b'"a"',
        b'msgid "a\nmsgstr ""',
        b'msgid "caf\xe9"\nmsgstr ""',
        b'msgid ""\nmsgstr "Content-Type: text/plain; charset=klingon\\n"',
    ],
)
def test_a_file_that_is_not_a_po_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        Opened(rewrite, data)


@pytest.mark.parametrize("part", ['"Language: x" ', "#| a\n", '"\\\\" ', "#~ a\n\n", '"a\\n"\n'])
def test_a_large_file_is_read_and_written_in_time(part: str) -> None:
    data = 'msgid ""\nmsgstr ""\n' + part * (300_000 // len(part)) + '\nmsgid "a"\nmsgstr ""\n'
    assert b'msgstr "A"' in translated(Opened(rewrite, data.encode(), FRENCH))


def test_a_message_of_very_many_lines_is_read_in_time() -> None:
    def read(n: int) -> None:
        lines = '"The dog runs to the house, and the cat sleeps in the garden behind it.\\n"\n' * n
        assert len(Opened(rewrite, f'msgid ""\n{lines}msgstr ""\n'.encode(), FRENCH).texts) == 1

    check_linear(read, 15_000)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="msgfmt is not installed")
@pytest.mark.parametrize("language", ["fr", "ru", "ja", "ar", "pl"])
def test_gettext_itself_accepts_a_translation(language: str, tmp_path: Path) -> None:
    contents = Opened(rewrite, MESSAGES.encode(), ReadOptions(target=language))
    (tmp_path / "a.po").write_bytes(contents.write([text.replace("o", "ö") for text in contents.texts]))
    command = ["msgfmt", "--check-format", "--check-domain", "--use-fuzzy", "-o", tmp_path / "a.mo", tmp_path / "a.po"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
