"""Packages: zip files that say what they are and what their parts are.

Office files follow the Open Packaging Conventions (ECMA-376, part 2): content types and relationships name each part,
so that names and folders of parts are free. OpenDocument files and EPUB books have a file `mimetype`.
"""

import io
import posixpath
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from service.base.errors import InvalidDocument, TooLarge
from service.documents.archive import DAMAGED, Archive, parse_xml

MAX_DECLARATION_BYTES = 2**20
"""The size limit of a file that says what a package is."""
CONTENT_TYPES = "[Content_Types].xml"
ROOT = ""
"""The source of the relationships of the package itself."""


@dataclass(frozen=True)
class Relationship:
    """A link from one part to another.

    Args:
        kind: the last segment of the type, which is the same in transitional and strict files: "header", "slide".
        target: the name of the part, without a leading slash.
    """

    kind: str
    target: str


@dataclass(frozen=True)
class Package:
    """An Office file.

    Args:
        files: the contents of the files in the zip, by name.
    """

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, archive: Archive) -> "Package":
        return cls({info.filename: content for info, content in archive})

    @cached_property
    def main(self) -> str | None:
        """The name of the main part, if the package has one."""
        return next((one.target for one in self.relationships(ROOT) if one.kind == "officeDocument"), None)

    def relationships(self, part: str) -> list[Relationship]:
        """Return the links from a part to other parts of the package, in order. Raises InvalidDocument."""
        folder, name = posixpath.split(part)
        file = self._file(posixpath.join(folder, "_rels", f"{name}.rels"))
        if file is None:
            return []
        found = []
        for element in parse_xml(self.files[file], file).iter("{*}Relationship"):
            if element.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/")
                kind = posixpath.basename(element.get("Type", ""))
                found.append(Relationship(kind, self._file(target) or target))
        return found

    def content_type(self, part: str) -> str | None:
        """Return the declared type of a part, in lower case. Raises InvalidDocument."""
        ending = part.rpartition(".")[2].lower()
        return self._types.get(_key(f"/{part}")) or self._types.get(f".{ending}")

    def _file(self, name: str) -> str | None:
        """Return the name of a file as the zip has it."""
        return name if name in self.files else self._names.get(_key(name))

    @cached_property
    def _names(self) -> dict[str, str]:
        return {_key(name): name for name in self.files}

    @cached_property
    def _types(self) -> dict[str, str]:
        """Types by the name of a part ("/word/document.xml"), or by the ending of names (".xml")."""
        types = {}
        content = self.files.get(CONTENT_TYPES)
        for element in parse_xml(content, CONTENT_TYPES).iter("{*}Override", "{*}Default") if content else ():
            key = element.get("PartName") or f".{element.get('Extension', '')}"
            types[_key(key)] = element.get("ContentType", "").lower()
        return types


def _key(name: str) -> str:
    """Return what is the same for equal names: capitals and percent-encoding make no difference (OPC, 6.2.2)."""
    return unquote(name).lower()


def type_of_package(data: bytes) -> str | None:
    """Return the media type that a zip declares for itself or, in an Office file, for its main part.

    Raises:
        InvalidDocument: the zip is damaged.
        TooLarge: the files that declare the type are too large.
    """
    declaring = ("mimetype", CONTENT_TYPES, "_rels/.rels")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            infos = [info for info in opened.infolist() if info.filename in declaring]
            if any(info.flag_bits & 1 for info in infos):
                raise InvalidDocument("The file is encrypted: save it without a password")
            for info in infos:
                if info.file_size > MAX_DECLARATION_BYTES:
                    raise TooLarge(f"{info.filename} has {info.file_size} bytes; the limit is {MAX_DECLARATION_BYTES}")
            files = {info.filename: opened.read(info) for info in infos}
    except DAMAGED as error:
        raise InvalidDocument(f"The file is a damaged zip: {error}") from None
    if "mimetype" in files:
        return files["mimetype"].decode("ascii", "replace").strip().lower()
    package = Package(files)
    return package.content_type(package.main) if package.main else None
