"""Sources of models: directories, archives and a hub."""

import io
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from model.config import load_config, save_config
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.importing.sources import open_source_files
from tests.model.importing.encoder_checkpoints import write_encoder


def test_an_archive_is_unpacked_down_to_its_files_and_gone_afterwards(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "translate-en_fr-1_9.argosmodel", "w") as archive:
        archive.writestr("en_fr/model/config.json", "{}")
        archive.writestr("en_fr/metadata.json", "{}")
    with tarfile.open(tmp_path / "opus.tar.gz", "w:gz") as tar:
        tar.addfile(member := tarfile.TarInfo("config.json"), io.BytesIO(b"{}"))
        assert member.size == 0
    with open_source_files(str(tmp_path / "translate-en_fr-1_9.argosmodel")) as found:
        assert (found.name, found.said) == ("translate-en_fr-1_9", "translate-en_fr-1_9.argosmodel")
        assert sorted(path.name for path in found.directory.iterdir()) == ["metadata.json", "model"]
        directory = found.directory
    assert not directory.exists()
    with open_source_files(str(tmp_path / "opus.tar.gz")) as found:
        assert (found.name, [path.name for path in found.directory.iterdir()]) == ("opus", ["config.json"])


def test_what_a_system_adds_to_an_archive_is_left_out(tmp_path: Path) -> None:
    """macOS adds such an entry for every file."""
    added = ["__MACOSX/._model", "__MACOSX/model/._config.json", ".DS_Store", "model/.DS_Store", "model/._a.npz"]
    with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive, tarfile.open(tmp_path / "mac.tar", "w") as tar:
        for name in ["model/config.json", *added]:
            archive.writestr(name, "{}")
            tar.addfile(tarfile.TarInfo(f"./{name}"))
    for name in ("mac.zip", "mac.tar"):
        with open_source_files(str(tmp_path / name)) as found:
            assert [path.name for path in found.directory.iterdir()] == ["config.json"]


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "C:\\out", "..\\out"])
def test_a_path_that_leads_out_of_an_archive_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), "x")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    for archive_name in ("a.zip", "a.tar"):
        with pytest.raises(ModelImportError, match="a path outside of it"):
            import_model(str(tmp_path / archive_name), tmp_path / "c", Options())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "a.zip"]


def test_a_link_in_an_archive_leads_nowhere(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(ModelImportError, match="cannot be unpacked"):
        import_model(str(tmp_path / "a.tar"), tmp_path / "c", Options())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"\x1f\x8b\x08 and no more"])
def test_a_file_that_is_no_whole_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ModelImportError, match="archive"):
        import_model(str(tmp_path / "a.zip"), tmp_path / "c", Options())


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("config.json", "{}" * 100)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[60] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ModelImportError, match="damaged"):
        import_model(str(tmp_path / "a.zip"), tmp_path / "c", Options())


@pytest.mark.parametrize("source", ["nothing-there", "../nothing", "a/b/c", "nothing.zip"])
def test_what_is_nowhere_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(ModelImportError, match="must be a directory, a file, or an id of the hub"):
        import_model(source, tmp_path / "c", Options())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    with pytest.raises(ModelImportError, match="already exists"):
        import_model(str(tmp_path), tmp_path / "c", Options())


def test_what_an_import_left_is_replaced_by_a_later_one_that_goes_well(tmp_path: Path) -> None:
    write_encoder(tmp_path / "theirs", "bert", "Model")
    source, checkpoint = str(tmp_path / "theirs"), tmp_path / "out" / "c"
    import_model(source, checkpoint, Options("first"))
    with pytest.raises(ModelImportError, match="already exists"):
        import_model(source, checkpoint, Options("second"))
    with pytest.raises(ModelImportError, match="must be a directory"):
        import_model("no/such/model", checkpoint, Options(), overwrite=True)
    assert load_config(checkpoint).name == "first"
    import_model(source, checkpoint, Options("second"), overwrite=True)
    assert load_config(checkpoint).name == "second"
    assert [path.name for path in checkpoint.parent.iterdir()] == ["c"]


def test_the_same_model_is_imported_again_and_another_one_only_on_demand(tmp_path: Path) -> None:
    """`make model` writes to a place that follows from the name alone."""
    original = write_encoder(tmp_path / "a" / "model", "bert", "Model")
    checkpoint = tmp_path / "c"
    import_model(str(tmp_path / "a" / "model"), checkpoint, Options())
    import_model(str(tmp_path / "a" / "model"), checkpoint, Options())
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "model").rename(tmp_path / "b" / "model")
    original.embeddings.LayerNorm.bias.data += 1
    original.save_pretrained(tmp_path / "b" / "model")
    with pytest.raises(ModelImportError, match=r"c already exists with another model: other weights; `--overwrite` re"):
        import_model(str(tmp_path / "b" / "model"), checkpoint, Options())
    (tmp_path / "b" / "model").rename(tmp_path / "b" / "other")
    with pytest.raises(
        ModelImportError, match=r"the origin model \(.*\) instead of other \(.*\); `--overwrite` replaces"
    ):
        import_model(str(tmp_path / "b" / "other"), checkpoint, Options("model"))
    import_model(str(tmp_path / "b" / "other"), checkpoint, Options("model"), overwrite=True)
    assert load_config(checkpoint).provenance.source == "other"  # type: ignore[union-attr]


def test_a_model_is_found_inside_of_what_brings_it(tmp_path: Path) -> None:
    """Archives have a note beside the model, the cache of a hub its commits."""
    write_encoder(tmp_path / "theirs", "bert", "Model")
    with zipfile.ZipFile(tmp_path / "theirs.zip", "w") as archive:
        archive.writestr("LICENSE", "mine")
        for path in (tmp_path / "theirs").iterdir():
            archive.write(path, f"snapshots/c0ffee/{path.name}")
    assert import_model(str(tmp_path / "theirs.zip"), tmp_path / "c", Options()).config.name == "theirs"
    (tmp_path / "both" / "b").mkdir(parents=True)
    shutil.move(tmp_path / "theirs", tmp_path / "both" / "a")
    shutil.copy(tmp_path / "both" / "a" / "config.json", tmp_path / "both" / "b")
    with pytest.raises(ModelImportError, match=r"it has several models \(a, b\); name the directory of one"):
        import_model(str(tmp_path / "both"), tmp_path / "c", Options())


@pytest.mark.parametrize("left", ["file", "directory", "trained"])
def test_nothing_that_was_not_imported_is_replaced(tmp_path: Path, left: str) -> None:
    write_encoder(tmp_path / "theirs", "bert", "Model")
    checkpoint = tmp_path / "c"
    if left == "file":
        checkpoint.write_text("mine")
    else:
        import_model(str(tmp_path / "theirs"), checkpoint, Options())
        config = load_config(checkpoint).model_copy(update={"provenance": None})
        save_config(checkpoint, config) if left == "trained" else (checkpoint / "config.yaml").unlink()
    with pytest.raises(ModelImportError, match="already exists"):
        import_model(str(tmp_path / "theirs"), checkpoint, Options(), overwrite=True)


def test_a_place_where_no_directory_can_be_is_told(tmp_path: Path) -> None:
    write_encoder(tmp_path / "theirs", "bert", "Model")
    (tmp_path / "file").touch()
    for place in ("file/c", "file/more/c"):
        with pytest.raises(ModelImportError, match="cannot create"):
            import_model(str(tmp_path / "theirs"), tmp_path / place, Options())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/"])
def test_a_name_that_no_directory_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelImportError, match="must be the name of a directory"):
        import_model(str(tmp_path), tmp_path / "c", Options(name))


@pytest.mark.process
@pytest.mark.parametrize("source", ["Helsinki-NLP/opus-mt-en-fr", "here/my model/", "opus 1.2.tar.bz2"])
def test_make_hands_a_model_on_whole(tmp_path: Path, source: str) -> None:
    makefile = (Path(__file__).parents[3] / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^model:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    recipe = recipe.replace("\t@", "\t").replace("$(BIN)/python", "printf '%s|'")
    script = re.sub(r"(?<!\$)\$\((?:[^()]|\([^()]*\))*\)", "", recipe).replace("$$", "$")
    done = subprocess.run(["sh", "-c", script], env={**os.environ, "FROM": source}, cwd=tmp_path, capture_output=True)
    assert done.stdout.decode().split("|") == ["-m", "export.importing", source, ""]
