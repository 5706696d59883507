"""The worked example of CONTRIBUTING.md works: its code is added to a copy of the tree, and its tests are run there."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import ROOT

_, _, SECTION = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## A worked example")
BLOCKS: list[tuple[str, str, str]] = re.findall(
    r"^```(python|diff) (\S+)\n(.*?)^```$", SECTION.partition("\n## ")[0], re.MULTILINE | re.DOTALL
)
"""The language, file and content of each block that is code."""
NEW_FILES = {file for language, file, _ in BLOCKS if language == "python"}


@pytest.mark.process
@pytest.mark.slow
def test_the_worked_example_works(tmp_path: Path) -> None:
    for folder in ("docs", "manifest", "model", "service", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "images"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for language, file, content in BLOCKS:
        change(tmp_path / file, content) if language == "diff" else (tmp_path / file).write_text(content, "utf-8")
    new = sorted(NEW_FILES)
    run(tmp_path, "ruff", "check", *new)
    run(tmp_path, "pytest", "tests/service/documents/test_kinds.py", *(file for file in new if "/test_" in file))


def test_the_worked_example_has_as_many_lines_as_it_says() -> None:
    added = [
        line
        for language, _, content in BLOCKS
        for line in content.splitlines()
        if language == "python" or line[0] == "+"
    ]
    assert f" in {len(added)} lines of code and tests" in SECTION
    assert len(added) < 80


def change(file: Path, diff: str) -> None:
    """Apply a diff. The lines that a hunk expects must be in the file exactly once."""
    text = file.read_text("utf-8")
    for hunk in re.findall(r"(?:^[- ].*\n)+(?:^\+.*\n)+", diff, re.MULTILINE):
        before, after = (
            "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] != sign) for sign in "+-"
        )
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text, "utf-8")


def run(directory: Path, *command: str) -> None:
    """Run a Python module in a directory. It must succeed."""
    ended = subprocess.run([sys.executable, "-m", *command], cwd=directory, capture_output=True, text=True)
    assert ended.returncode == 0, shlex.join(command) + "\n" + ended.stdout + ended.stderr
