"""`attend translate`: what the service answers to a document, without a server."""

import asyncio
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import attend
from service import translate
from service.base.log import Log
from tests.service.conftest import Serve
from tests.service.in_process import load_in_process
from tests.service.tiny_artifacts import save_translators

pytestmark = pytest.mark.anyio

TEXT = b"the dog runs on the beach\n\na cat\n"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, artifacts: Path) -> None:
    """The tiny models, in this process; the log of the tests stays."""
    monkeypatch.setenv("ATTEND_ARTIFACTS", str(artifacts))
    monkeypatch.setenv("ATTEND_PROVIDER", "cpu")
    monkeypatch.setattr(translate, "load_catalog", load_in_process)
    monkeypatch.setattr(Log, "configure", lambda _: None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_bytes(TEXT)
    return path


async def run(*arguments: str | Path) -> None:
    await asyncio.to_thread(translate.run, [*map(str, arguments)])


async def answer(serve: Serve, data: bytes = TEXT, **form: str) -> bytes:
    async with serve() as client:
        form = {"target": "fr", "wait": "true", **form}
        answered = await client.post("/translate/document", data=form, files={"file": ("letter.txt", data)})
        assert answered.status_code == 200, answered.text
        return answered.content


def test_the_command_has_a_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        attend.main(["translate", "--help"])
    assert exited.value.code == 0
    assert "usage: attend translate" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--to", "--from", "--model"])
def test_an_option_without_a_value_is_refused_by_name(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        translate.run(["letter.txt", option, ""])
    assert exited.value.code == 2
    assert f"argument {option}" in capsys.readouterr().err


async def test_a_file_is_translated_beside_itself_as_the_service_does_it(serve: Serve, file: Path) -> None:
    await run(file, "--to", "fr")
    assert sorted(path.name for path in file.parent.iterdir()) == ["letter.fr.txt", "letter.txt"]
    assert file.with_name("letter.fr.txt").read_bytes() == await answer(serve)


async def test_standard_input_is_text_and_is_translated_to_standard_output(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, written = io.BytesIO(TEXT), io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=written))
    await run("-", "--from", "en", "--to", "fr")
    assert written.getvalue() == await answer(serve)


async def test_columns_of_a_table_are_chosen(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("id,title,text\n1,the cat,the dog\n")
    await run(table, "--to", "fr", "--columns", "text,title")
    both = table.with_name("table.fr.csv").read_text()
    await run(table, "--to", "fr", "--columns", "text", "--overwrite")
    one = table.with_name("table.fr.csv").read_text()
    assert "1,the cat," in one
    assert "the dog" not in one
    assert ",the cat," not in both


async def test_terms_of_a_glossary_are_used(file: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.csv"
    terms.write_text("dog,Zamboni\n")
    await run(file, "--to", "fr", "--glossary", terms, "--output", tmp_path / "out.txt")
    assert "Zamboni" in (tmp_path / "out.txt").read_text()


async def test_a_file_that_exists_is_replaced_only_if_that_is_asked_for(file: Path) -> None:
    there = file.with_name("letter.fr.txt")
    there.write_text("mine")
    with pytest.raises(SystemExit, match=r"letter\.fr\.txt exists: --overwrite replaces it"):
        await run(file, "--to", "fr")
    assert there.read_text() == "mine"
    await run(file, "--to", "fr", "--overwrite")
    assert there.read_text() != "mine"


@pytest.mark.parametrize(
    ("is_terminal", "pause_s", "shown"),
    [(True, 60.0, "\r 17%\r100%\n"), (False, 0.0, " 17% translated\n"), (False, 60.0, "")],
    ids=["terminal", "long file", "short file"],
)
async def test_progress_is_shown_on_a_terminal_and_of_long_files_elsewhere(
    file: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, pause_s: float, shown: str
) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(translate, "PROGRESS_S", pause_s)
    monkeypatch.setattr("service.jobs.translation.MAX_RUNNING_PORTIONS", 1)
    monkeypatch.setattr("service.jobs.translation.PORTION_CHARACTERS", 4)
    table = file.with_name("table.csv")
    table.write_text("text\na dog\nthe dog runs on the beach\n")
    await run(table, "--from", "en", "--to", "fr", "--columns", "text")
    assert stream.getvalue() == shown


async def test_what_was_written_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await run(file, "--to", "fr")
    written = file.with_name("letter.fr.txt")
    assert capsys.readouterr().out == f"{written}: English to French, by tiny-en-fr\n"


async def test_only_the_models_of_the_pair_are_loaded(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The weights of the other models are damaged, so that none of them could be loaded."""
    models = {"en-de": (1, "en", "de"), "en-fr": (2, "en", "fr"), "fr-en": (3, "fr", "en"), "ja-en": (4, "ja", "en")}
    root = save_translators(tmp_path / "models", models)
    monkeypatch.setenv("ATTEND_ARTIFACTS", str(root))
    for name in ("en-fr", "ja-en"):
        (root / name / "weights.safetensors").write_bytes(b"")
    await run(file, "--from", "fr", "--to", "de")
    assert capsys.readouterr().out.endswith("French to German, by fr-en and en-de\n")
    await run(file, "--to", "en", "--from", "en", "--overwrite")
    assert file.with_name("letter.en.txt").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("missing.txt", ["--to", "fr"], "No such file or directory"),
        ("letter.txt", ["--to", "sw"], r"No model translates .* to sw; available: en-fr"),
        ("letter.txt", ["--to", "fr", "--model", "large"], "has no model large; available: tiny-en-fr"),
        ("letter.xyz", ["--to", "fr"], r"The file's name ends in \.xyz; supported: "),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_sentence(
    file: Path, name: str, arguments: list[str], sentence: str
) -> None:
    file.with_name("letter.xyz").write_bytes(TEXT)
    with pytest.raises(SystemExit, match=f"^cannot translate.*{name}: .*{sentence}[^\n]*$") as exited:
        await run(file.with_name(name), *arguments)
    assert isinstance(exited.value.code, str), "Python then exits with status 1"


async def test_without_models_the_folder_is_named_and_how_to_get_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.delenv("ATTEND_ARTIFACTS")
    with pytest.raises(SystemExit, match=rf"{file.parent}/artifacts: does not exist; .*attend import \S+/\S+"):
        await run(file, "--to", "fr")
