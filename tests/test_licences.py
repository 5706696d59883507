"""Licences of what is shipped: each package has an allowed one, and each document of an image has all of it."""

import os
import re
import subprocess
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest

from docs.licences import DATA, LOCKS, NVIDIA, expression_of, installed, is_allowed, licence_of, locked, texts
from tests.running_service import ROOT

STANDARD = {"Apache-2.0", "MIT"}
"""Licences of packages whose wheels have no text of them; the texts of others have."""


@pytest.mark.parametrize("name", locked(*LOCKS))
def test_serving_needs_packages_under_allowed_licences_alone(name: str) -> None:
    licence = licence_of(name)
    assert is_allowed(licence) or (licence == NVIDIA and name not in locked("cpu"))


def metadata(**fields: str | list[str]) -> Message:
    message = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("MIT AND (Apache-2.0 OR BSD-2-Clause)", False),  # no package says so: a person must look
        ("GPL-3.0-only OR MIT", True),
        ("AGPL-3.0-or-later", False),
        ("MIT AND LGPL-2.1-only", False),
        ("LicenseRef-NVIDIA-Proprietary", False),
    ],
)
def test_what_serving_may_not_need_is_not_allowed(licence: str, allowed: bool) -> None:
    assert is_allowed(licence) is allowed


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"License_Expression": "GPL-3.0-only", "License": "MIT"}, "GPL-3.0-only"),
        (
            {"License": "MIT License", "Classifier": ["License :: OSI Approved :: MIT License", "Typing :: X"]},
            "MIT",
        ),
        ({"License": "Apache 2.0", "Classifier": "License :: OSI Approved :: MIT License"}, "Apache-2.0 OR MIT"),
    ],
)
def test_old_and_new_metadata_tell_the_licence(fields: dict[str, str | list[str]], expression: str) -> None:
    assert expression_of(metadata(**fields)) == expression  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"License": "UNKNOWN"},
        {"License": "my own"},
        {"License": "MIT", "Classifier": "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"},
    ],
)
def test_a_package_without_a_known_licence_is_named(fields: dict[str, str]) -> None:
    with pytest.raises(LookupError, match=r"^x says of its licence: "):
        expression_of(metadata(Name="x", **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in locked(*LOCKS) if not name.startswith("nvidia-")])
def test_the_text_of_each_licence_is_shipped(name: str) -> None:
    assert any(texts(installed(name).metadata["Name"])) or licence_of(name) in STANDARD


@pytest.mark.parametrize("data", DATA, ids=lambda data: data.package)
def test_data_in_packages_is_where_it_was(data: object) -> None:
    assert Path(str(distribution(data.package).locate_file(data.path))).exists()  # type: ignore[attr-defined]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_document_has_each_package_and_each_file_of_the_models(lock: str, tmp_path: Path) -> None:
    sbom = pytest.importorskip("docs.sbom", reason="cyclonedx-python-lib is not installed", exc_type=ImportError)
    dpkg = tmp_path / "status"
    entry = "Package: {}\nStatus: install ok {}\nArchitecture: amd64\nVersion: 1.2-3\n"
    dpkg.write_text(f"{entry.format('libc6', 'installed')}\n{entry.format('gone', 'config-files')}")
    components = {str(one.bom_ref): one for one in sbom.document(lock, dpkg).components}
    packages = {f"pypi:{name}@{version}" for name, version in locked(lock).items()}
    models = {f"model:{path.name}" for path in (ROOT / "artifacts").iterdir() if (path / "manifest.json").exists()}
    assert packages | models | {"deb:libc6@1.2-3"} <= components.keys()
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    hashes = {one.value for ref, one in components.items() if ref.startswith("pypi:") for one in one.properties}
    assert hashes == set(re.findall(r"sha256:([0-9a-f]{64})", text))
    assert all(len(components[ref].licenses) == 1 for ref in packages)


def test_the_checks_ask_for_known_weaknesses() -> None:
    assert "      - run: make audit\n" in (ROOT / ".github/workflows/checks.yaml").read_text(encoding="utf-8")


@pytest.mark.process
@pytest.mark.parametrize(
    ("pip", "audit", "status", "said"),
    [
        ("exit 1", "", 0, "could not be asked for"),
        ("exit 0", "echo no route >&2; exit 1", 0, "could not be asked for: no route"),
        ("exit 0", "exit 0", 0, "cpu: no known weaknesses"),
        ("exit 0", "echo evil 1.0 CVE-1; exit 1", 1, "evil 1.0 CVE-1"),
    ],
    ids=["no pip-audit", "no network", "nothing", "a weakness"],
)
def test_only_a_weakness_that_is_known_fails_an_audit(
    tmp_path: Path, pip: str, audit: str, status: int, said: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"""#!/bin/sh
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit; fi
printf '#!/bin/sh\\n%s\\n' '{audit}' > "$(dirname "$0")/pip-audit"; chmod +x "$(dirname "$0")/pip-audit"
{pip}
""")
    python.chmod(0o755)
    done = subprocess.run(["sh", ".ci/audit", str(python)], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert (done.returncode, said in done.stdout) == (status, True), done
