"""The package: what is in it, and its command."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import attend
from service import __version__
from tests.running_service import ROOT

PACKAGES = ("attend.py", "export", "model", "service")
BUILD = "import setuptools.build_meta as build, sys; getattr(build, sys.argv[1])(sys.argv[2])"


def tracked(*paths: str) -> set[str]:
    """The files of the repository below paths."""
    listed = subprocess.run(["git", "ls-files", "-z", *paths], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("git does not know which files are of the project")
    return set(filter(None, listed.stdout.split("\0")))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, the source distribution, and the wheel that is built of that."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("built")
    for name in tracked(*PACKAGES, "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "tests/__init__.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((ROOT / name).read_bytes())
    build(clone, "build_wheel", out)
    build(clone, "build_sdist", out)
    with tarfile.open(next(out.glob("*.tar.gz"))) as archive:
        archive.extractall(clone / "unpacked", filter="data")
    build(next((clone / "unpacked").iterdir()), "build_wheel", out / "again")
    return out


def build(directory: Path, what: str, out: Path) -> None:
    command = [sys.executable, "-c", BUILD, what, str(out)]
    made = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_each_file_of_the_packages_and_no_other(built: Path) -> None:
    found = {name for name in members(next(built.glob("*.whl"))) if ".dist-info/" not in name}
    assert found == tracked(*PACKAGES)


def test_the_source_distribution_builds_the_same_wheel(built: Path) -> None:
    assert members(next(built.glob("*.whl"))) == members(next((built / "again").glob("*.whl")))


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
    [("tranlsate", "did you mean translate?"), ("xyz", "available: serve, translate, import, export")],
)
def test_a_command_that_is_not_there_names_the_near_one(
    capsys: pytest.CaptureFixture[str], name: str, advice: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        attend.main([name])
    assert exited.value.code == 2
    assert capsys.readouterr().err == f"attend has no command {name}; {advice}\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("serve", 'attend serve needs onnxruntime, .* pip install "\\.\\[cpu\\]" installs it'),
        ("import", 'attend import needs onnx, .* pip install "\\.\\[cpu,import\\]" installs it'),
    ],
)
def test_a_command_without_its_packages_says_what_installs_them(
    monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    monkeypatch.setattr(attend, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=f"^{sentence}$"):
        attend.main([name])


@pytest.mark.parametrize("name", ["serve", "translate"])
def test_a_command_has_a_help(name: str) -> None:
    command = [sys.executable, "-m", "attend", name, "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert f"attend {name}" in shown.stdout
