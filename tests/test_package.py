"""The package: what is in it, and its command."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import attend
from service import __version__
from tests.running_service import ROOT

PACKAGES = ("attend.py", "export", "manifest", "model", "service")
BUILD = "import setuptools.build_meta as build, sys; getattr(build, sys.argv[1])(sys.argv[2])"


def tracked(*paths: str) -> set[str]:
    """The files of the repository below paths."""
    listed = subprocess.run(["git", "ls-files", "-z", *paths], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("git does not know which files are of the project")
    return set(filter(None, listed.stdout.split("\0")))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the wheel that is built of the source distribution."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("built")
    for name in tracked(*PACKAGES, "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "tests/__init__.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((ROOT / name).read_bytes())
    build(clone, "build_sdist", out)
    with tarfile.open(next(out.glob("*.tar.gz"))) as archive:
        archive.extractall(out, filter="data")
    build(next(path for path in out.iterdir() if path.is_dir()), "build_wheel", out)
    with zipfile.ZipFile(next(out.glob("*.whl"))) as built:
        return {name: built.read(name) for name in built.namelist()}


def build(directory: Path, what: str, out: Path) -> None:
    command = [sys.executable, "-c", BUILD, what, str(out)]
    made = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


@pytest.mark.process
def test_the_wheel_has_each_file_of_the_packages_and_no_other(wheel: dict[str, bytes]) -> None:
    found = {name: content for name, content in wheel.items() if ".dist-info/" not in name}
    assert found.keys() == tracked(*PACKAGES)
    assert [name for name, content in found.items() if content != (ROOT / name).read_bytes()] == []


@pytest.mark.process
def test_the_wheel_says_its_version_and_has_our_licence(wheel: dict[str, bytes]) -> None:
    about = f"attend-{__version__}.dist-info"
    assert f"\nVersion: {__version__}\n" in wheel[f"{about}/METADATA"].decode()
    assert wheel[f"{about}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


@pytest.mark.process
def test_the_version_is_told_and_nothing_is_loaded_for_it() -> None:
    program = "import attend, sys; attend.main(['--version']); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    version, modules = told.stdout.splitlines()
    assert version == f"attend {__version__}"
    assert not {"pydantic", "onnxruntime", "torch", "model", "export"} & {*modules.split()}


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    attend.main([])
    shown = capsys.readouterr().out
    for name, command in attend.COMMANDS.items():
        assert f"  {name}" in shown
        assert command.does in shown


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("tranlsate", "did you mean translate?"),
        ("xyz", "available: serve, fetch, pack, unpack, translate, import, export"),
    ],
)
def test_a_command_that_is_not_there_names_the_near_one(
    capsys: pytest.CaptureFixture[str], name: str, advice: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        attend.main([name])
    assert exited.value.code == 2
    assert capsys.readouterr().err == f"attend has no command {name}; {advice}\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "missing", "extras"),
    [("serve", "onnxruntime", "cpu"), ("serve", "pydantic", "cpu"), ("import", "typer", "cpu,import")],
)
def test_a_command_without_its_packages_says_what_installs_them(name: str, missing: str, extras: str) -> None:
    program = f"import sys, attend; sys.modules[{missing!r}] = None; attend.main([{name!r}])"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == (
        f'attend {name} needs {missing}, which is not installed: in a clone of attend, run pip install ".[{extras}]"\n'
    )


def test_ctrl_c_ends_a_command_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(attend.importlib, "import_module", lambda _: SimpleNamespace(run=run))
    with pytest.raises(SystemExit) as exited:
        attend.main(["translate", "a.txt"])
    assert exited.value.code == 130
