"""Writes what an image is made of as a CycloneDX document (SBOM): `make sbom`, or `python -m docs.sbom LOCK`.

It has the packages of a lock with the hashes of their files, the shipped models with the sums of theirs, and the Debian
packages of the base image, if its list of them is given (`--dpkg`): only the image itself has that list.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from docs.licences import LOCKS, ROOT, licence_of
from service import __version__

ENTRY = re.compile(r"^([\w.-]+)==([^\s;]+)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
SHA_256 = re.compile(r"sha256:([0-9a-f]{64})")
LICENCES = LicenseFactory()


def main() -> None:
    """Write the document to standard output."""
    parser = argparse.ArgumentParser(prog="python -m docs.sbom", description=__doc__)
    parser.add_argument("lock", choices=LOCKS, help="whose packages: those of the image for the CPU or for CUDA")
    parser.add_argument("--dpkg", type=Path, metavar="FILE", help="the image's /var/lib/dpkg/status")
    options = parser.parse_args()
    if options.dpkg is None:
        sys.stderr.write("the Debian packages of the base image are left out: --dpkg FILE names its list\n")
    sys.stdout.write(JsonV1Dot6(document(options.lock, options.dpkg)).output_as_string(indent=2) + "\n")


def document(lock: str, dpkg: Path | None = None) -> Bom:
    """Return the document of an image.

    Args:
        dpkg: the image's list of Debian packages.
    """
    bom = Bom()
    licence = LICENCES.make_from_string("MIT")
    attend = Component(name="attend", version=__version__, type=ComponentType.APPLICATION, licenses=[licence])
    bom.metadata.component = attend
    for components in (packages(lock), models(), debian_packages(dpkg) if dpkg else ()):
        bom.components.update(components)
    bom.register_dependency(attend, bom.components)
    return bom


def packages(lock: str) -> Iterator[Component]:
    """Yield the packages of a lock. A package may have several files; each hash is of one."""
    for name, version, hashes in ENTRY.findall((ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")):
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            purl=PackageURL("pypi", name=name, version=version),
            bom_ref=f"pypi:{name}@{version}",
            licenses=[LICENCES.make_from_string(licence_of(name))],
            properties=[Property(name="attend:file:sha256", value=one) for one in sorted(SHA_256.findall(hashes))],
        )


def models() -> Iterator[Component]:
    """Yield the shipped models."""
    for path in sorted(ROOT.glob("artifacts/*/manifest.json")):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        yield Component(
            name=manifest["name"],
            version=__version__,
            type=ComponentType.MACHINE_LEARNING_MODEL,
            bom_ref=f"model:{manifest['name']}",
            licenses=[LICENCES.make_with_name(f"see artifacts/{path.parent.name}/README.md, Training data")],
            components=[
                Component(
                    name=file,
                    type=ComponentType.FILE,
                    bom_ref=f"model:{manifest['name']}/{file}",
                    hashes=[HashType(alg=HashAlgorithm.SHA_256, content=known["sha256"])],
                )
                for file, known in manifest["files"].items()
            ],
        )


def debian_packages(dpkg: Path) -> Iterator[Component]:
    """Yield the packages in a list of dpkg that are installed."""
    for entry in dpkg.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.+)$", entry, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            purl = PackageURL("deb", "debian", name, version, {"arch": fields["Architecture"]})
            yield Component(
                name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=f"deb:{name}@{version}"
            )


if __name__ == "__main__":
    main()
