from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.__main__ import app
from model.augmentation.ding import FEWEST_SENTENCES, ding_pairs, ding_sentences, entries
from model.data import DataError, Row, read_tsv

HEADER = "# Version :: devel\n"
WORDS = [
    "Schlitten {m} [mach.] | Schlitten {pl} :: slide; carriage | slides",
    "Schlitten {m} (für Kinder); Rodel {f} [Ös.] | Schlitten fahren :: sled; sledge | to go by sledge",
    "etw. zumachen; schließen {vt} | Mach die Tür zu! | zumachend :: to close sth. | Close the door! | closing",
    "jdm. etw. (aus)leihen {vt} :: to lend sb. sth.",
    "Straßenbahn {f} [Dt.] [Ös.]; Tram {n} [Schw.] :: tram [Br.]; streetcar [Am.]",
    "ihn; das Ding :: the; it",
    "Türstock {m} :: jamb",
    "Er/sie geht. | Sie geht nach Hause (zu Fuß). :: He/she goes. | She\u2019s going home (on foot).",
    "eine ungleiche | Zahl :: of parts",
]
TEXTS = ["Close the sledge.", "Lend me a tram.", "The slide is closing.", "I go by sled."]


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    path = tmp_path / "de-en"
    path.write_text(HEADER + "\n".join(WORDS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    usual = "".join(f"{text}\tx\n" for text in TEXTS * FEWEST_SENTENCES)
    path.write_text(usual + "Go to it. Sledge.\tx\n" * 3 + "The one.\tx\n" * 2000, encoding="utf-8")
    return path


def test_parts_of_an_entry_are_those_at_the_same_place(dictionary: Path) -> None:
    found = list(entries(dictionary))
    assert len(found) == len(WORDS) - 1, "one has more parts in German than in English"
    assert found[0] == [("Schlitten {m} [mach.]", "slide; carriage"), ("Schlitten {pl}", "slides")]


def test_sentences_are_whole_and_no_variants(dictionary: Path) -> None:
    assert list(ding_sentences(dictionary)) == [
        Row("Close the door!", "Mach die Tür zu!"),
        Row("She's going home.", "Sie geht nach Hause."),
    ]


def test_a_german_word_has_its_most_usual_translation(dictionary: Path, corpus: Path) -> None:
    found = {row.right: row.left for row in ding_pairs(dictionary, [corpus])}
    assert found == {
        "Schlitten": "sled",  # a slide is one in machines
        "Schlitten fahren": "to go by sledge",
        "zumachen": "to close",
        "schließen": "to close",
        "zumachend": "closing",
        "leihen": "to lend",
        "Straßenbahn": "tram",
    }


def test_what_nobody_says_and_everybody_are_left_out(dictionary: Path, corpus: Path) -> None:
    german = {row.right for row in ding_pairs(dictionary, [corpus])}
    assert german.isdisjoint({"Rodel", "Tram"}), "said in Austria or Switzerland alone"
    assert "Türstock" not in german, "no sentence has a jamb"
    assert "ihn" not in german, "a third of all sentences has its translation"


@pytest.mark.parametrize(("option", "rows"), [((), ding_pairs), (("--sentences-only",), None)])
def test_the_command_writes_a_corpus(
    dictionary: Path, corpus: Path, tmp_path: Path, option: tuple[str, ...], rows: object
) -> None:
    out = tmp_path / "ding.en-de.tsv.xz"
    result = CliRunner().invoke(app, ["dictionary", str(dictionary), str(corpus), *option, "--out", str(out)])
    assert result.exit_code == 0, result.output
    expected = ding_pairs(dictionary, [corpus]) if rows else ding_sentences(dictionary)
    assert list(read_tsv(out)) == list(expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "de-en cannot be read: .*No such file"),
        (b"\xff\xff", "de-en cannot be read: .*utf-8"),
        (f"{HEADER}Apotheke = pharmacy\n".encode(), "de-en, line 2: no German and English with :: between them"),
    ],
)
def test_what_is_no_dictionary_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "de-en"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(entries(path))
