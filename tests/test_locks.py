"""requirements/: what `make serve`, `make test` and the image install."""

import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.running_service import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def wanted(extra: str) -> Iterator[Requirement]:
    """What the project asks for with an extra, those that it includes, and without any."""
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for included in requirement.extras:
                yield from wanted(included)
        else:
            yield requirement


@pytest.mark.parametrize("name", ["cpu", "cuda", "dev"])
def test_a_lock_has_what_the_project_asks_for(name: str) -> None:
    """After a change of pyproject.toml: `make lock`."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    pins = [(canonicalize_name(found), version) for found, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.M)]
    for requirement in wanted(name):
        if requirement.name != "torch":  # pip takes the build that suits the machine
            versions = [version for pin, version in pins if pin == canonicalize_name(requirement.name)]
            assert versions, requirement
            assert all(map(requirement.specifier.contains, versions)), requirement


@pytest.mark.parametrize("name", ["cpu", "cuda", "dev"])
def test_a_lock_has_a_hash_for_every_package_and_names_no_host(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--" not in text.replace("--hash=sha256:", "")
    for entry in re.split(r"\n(?=\w)", re.sub(r"^#.*\n", "", text, flags=re.M).strip()):
        assert re.match(r"[\w.-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+$", entry), entry
