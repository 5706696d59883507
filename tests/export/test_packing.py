"""`attend pack` and `attend unpack`: models travel whole, and a pack that was changed is refused whole."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from export import packing, unpacking
from export.packing import write_pack
from export.unpacking import PackError, unpack
from manifest.pack import PACK, Pack
from manifest.sums import sum_of_content
from service.base.artifact import read_artifact
from tests.running_service import ROOT

NAME = "translate-en-fr"
SHIPPED = ROOT / "artifacts" / NAME
Members = dict[str, bytes]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of a shipped model, with a wheel."""
    folder = tmp_path_factory.mktemp("pack")
    (folder / "wheels").mkdir()
    (folder / "wheels" / "attend-1-py3-none-any.whl").write_bytes(b"a wheel")
    write_pack(folder / "attend.pack", [SHIPPED], folder / "wheels")
    return folder / "attend.pack"


def members_of(pack: Path) -> Members:
    with tarfile.open(pack) as archive:
        return {member.name: opened.read() for member in archive if (opened := archive.extractfile(member))}


def packed(path: Path, members: Members) -> Path:
    """Write a pack of members as they are."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def with_sums(members: Members) -> Members:
    """Return members behind a pack.json that has their sums."""
    files = {name: sum_of_content(content) for name, content in members.items() if name != PACK}
    return members | {PACK: Pack.model_construct(files=files).model_dump_json().encode()}


def test_an_artifact_comes_out_as_it_went_in(pack: Path, tmp_path: Path) -> None:
    (folder,) = unpack(pack, tmp_path / "artifacts")
    files = {path.relative_to(SHIPPED) for path in SHIPPED.rglob("*") if path.is_file()}
    assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == files
    assert all((folder / path).read_bytes() == (SHIPPED / path).read_bytes() for path in files)
    read_artifact(folder).verify()
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == [NAME]
    assert unpack(pack, tmp_path / "artifacts") == [folder], "it is there already"
    again = tmp_path / "again.pack"
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "attend-1-py3-none-any.whl").write_bytes(b"a wheel")
    write_pack(again, [folder], tmp_path / "wheels")
    assert again.read_bytes() == pack.read_bytes()


def changed(members: Members, name: str, content: bytes) -> Members:
    return {**members, name: content}


def renamed(members: Members, name: str) -> Members:
    """Call the weights something else, also in pack.json."""
    at = f"artifacts/{NAME}/weights.safetensors"
    return with_sums({name if path == at else path: content for path, content in members.items()})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: changed(m, f"artifacts/{NAME}/tokenizer.json", b"{}"), "tokenizer.json has 2 bytes; pack.json says"),
        (
            lambda m: changed(m, f"artifacts/{NAME}/README.md", m[f"artifacts/{NAME}/README.md"][::-1]),
            "README.md is damaged: its sum is not the one of pack.json",
        ),
        (lambda m: changed(m, "wheels/attend-1-py3-none-any.whl", b"a whale"), "any.whl is damaged"),
        (lambda m: changed(m, f"artifacts/{NAME}/more.py", b"pass"), "pack.json does not name artifacts/.*/more.py"),
        (lambda m: {name: m[name] for name in list(m)[:-1]}, "weights.safetensors is missing"),
        (lambda m: {name: m[name] for name in [PACK, *list(m)[:0:-1]]}, "weights.safetensors is where wheels/.* must"),
        (lambda m: {name: m[name] for name in list(m)[1:]}, "it is no pack: its first file is not pack.json"),
        (lambda m: changed(m, PACK, b'{"files": 7}'), "pack.json: files Input should be"),
        (lambda m: changed(m, PACK, b'{"format_version": 2, "files": {}}'), "pack.json: format_version"),
        (lambda m: renamed(m, "artifacts/../weights"), "is not in a folder of artifacts or in wheels"),
        (lambda m: renamed(m, "/etc/weights"), "'/etc/weights' is not in a folder of artifacts"),
        (lambda m: renamed(m, "artifacts/a/../../../weights"), "is not in a folder of artifacts"),
        (lambda m: renamed(m, "artifacts/a/..\\..\\weights"), "is not in a folder of artifacts"),
        (lambda m: renamed(m, "C:/weights/x"), "is not in a folder of artifacts"),
        (lambda m: renamed(m, "artifacts/.git/hooks"), "is not in a folder of artifacts"),
        (lambda m: renamed(m, "artifacts/weights"), "is not in a folder of artifacts"),
        (
            lambda m: with_sums(changed(m, f"artifacts/{NAME}/manifest.json", b"{}")),
            f"{NAME} is no artifact that this version of attend reads: name: Field required",
        ),
    ],
)
def test_a_pack_that_was_changed_is_refused_whole(
    pack: Path, tmp_path: Path, change: Callable[[Members], Members], sentence: str
) -> None:
    bad = packed(tmp_path / "bad.pack", change(members_of(pack)))
    with pytest.raises(PackError, match=sentence):
        unpack(bad, tmp_path / "artifacts")
    assert [*(tmp_path / "artifacts").iterdir()] == []
    assert {path.name for path in tmp_path.iterdir()} == {"bad.pack", "artifacts"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_a_member_that_is_no_file_is_refused(pack: Path, tmp_path: Path, kind: bytes) -> None:
    members = members_of(pack)
    with tarfile.open(tmp_path / "bad.pack", "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if name.endswith("tokenizer.json"):
                member.type, member.linkname = kind, "/etc/passwd"
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(PackError, match=r"tokenizer.json is a link or something else that is no file"):
        unpack(tmp_path / "bad.pack", tmp_path / "artifacts")
    assert [*(tmp_path / "artifacts").iterdir()] == []


def test_a_pack_that_does_not_fit_is_refused_before_anything_is_written(pack: Path, tmp_path: Path) -> None:
    members = members_of(pack)
    large = Pack.model_validate_json(members[PACK])
    files = {name: one.model_copy(update={"bytes": 10**18}) for name, one in large.files.items()}
    members[PACK] = large.model_copy(update={"files": files}).model_dump_json().encode()
    with pytest.raises(PackError, match=r"it needs \d+\.\d GB, and .* has \d+\.\d GB"):
        unpack(packed(tmp_path / "bad.pack", members), tmp_path / "artifacts")


def test_another_model_of_the_same_name_stays(pack: Path, tmp_path: Path) -> None:
    other = tmp_path / "artifacts" / NAME
    other.mkdir(parents=True)
    (other / "mine").write_text("mine")
    with pytest.raises(PackError, match="has another model; unpack into another folder: --artifacts FOLDER"):
        unpack(pack, tmp_path / "artifacts")
    assert [path.name for path in other.iterdir()] == ["mine"]


@pytest.mark.parametrize("content", [b"", b"no tar file", b"\x1f\x8b\x08" + bytes(600)])
def test_what_is_no_pack_ends_with_a_sentence(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.pack").write_bytes(content)
    with pytest.raises(SystemExit, match=r"^attend unpack: .*bad\.pack was not unpacked: "):
        unpacking.run([str(tmp_path / "bad.pack"), f"--artifacts={tmp_path / 'artifacts'}"])


def test_a_cut_pack_ends_with_a_sentence(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.pack").write_bytes(pack.read_bytes()[:-20_000])
    with pytest.raises(SystemExit, match=r"^attend unpack: .*bad\.pack was not unpacked: "):
        unpacking.run([str(tmp_path / "bad.pack"), f"--artifacts={tmp_path / 'artifacts'}"])
    assert [*(tmp_path / "artifacts").iterdir()] == []


def test_the_command_packs_the_models_of_languages_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "bring_languages", lambda *_: [SHIPPED])
    packing.run([str(tmp_path / "a.pack"), "--languages", "en,fr"])
    shown = capsys.readouterr().out
    assert "On a machine without a network:\n  .venv/bin/attend unpack a.pack\n" in shown
    unpacking.run([str(tmp_path / "a.pack"), f"--artifacts={tmp_path / 'artifacts'}"])
    assert capsys.readouterr().out == f"{tmp_path / 'artifacts' / NAME}\n"
    with pytest.raises(SystemExit):
        packing.run([str(tmp_path / "a.pack"), "--languages", "en,fr"])
    assert "a.pack exists; name another file" in capsys.readouterr().err
    monkeypatch.setattr(packing, "bring_languages", lambda *_: [])
    with pytest.raises(SystemExit, match=r"b.pack was not written: there is no model of these languages$"):
        packing.run([str(tmp_path / "b.pack"), "--languages", "en,ko"])


def test_wheels_need_a_clone_and_are_those_of_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = list[list[str]]()
    monkeypatch.setattr(packing.subprocess, "run", lambda command, check: commands.append(command))
    packing.write_wheels(tmp_path, "cpu")
    locked, own = commands
    assert locked[-3:] == ["--require-hashes", "--requirement", str(ROOT / "requirements" / "cpu.txt")]
    assert own[-1] == str(ROOT)
    assert "--no-deps" in locked
    monkeypatch.setattr(packing, "CLONE", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"--wheels needs a clone of attend, where requirements/cuda.txt is"):
        packing.write_wheels(tmp_path, "cuda")
