"""Packages: zip files that declare their kind and the kinds of their parts.

Office files follow the Open Packaging Conventions (ECMA-376, part 2): content types and relationships name each part,
so that names and folders of parts are free. OpenDocument files and EPUB books have a file `mimetype`.
"""

import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from service.base.errors import InvalidDocument
from service.documents.archive import Archive, parse_xml, unpack

MAX_DECLARATION_BYTES = 2**20
"""The size limit of the files that declare the kind of a package."""
CONTENT_TYPES = "[Content_Types].xml"
MAIN = "officeDocument"
"""The kind of the link to the main part."""
GRAPHICS = ("chart", "chartEx", "chartUserShapes", "diagramData", "diagramDrawing")
"""The kinds of links to charts and diagrams, and what is drawn on charts."""
QUOTED = re.compile(rb'"([^"<]{1,100})"')
ROOT = ""
"""The source of the relationships of the package itself."""
USUAL_MAINS = ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml")
"""Names of main parts that programs use. They count in a zip without any links."""


@dataclass(frozen=True)
class Relationship:
    """A link from one part to another.

    Args:
        kind: the last segment of the type, which is the same in transitional and strict files: "header", "slide".
        target: the name of the part, without a leading slash.
        id: the name of the link. XML in its source has it where the part belongs.
    """

    kind: str
    target: str
    id: str = ""


@dataclass(frozen=True)
class Package:
    """An Office file: the contents of the files in its zip, by name."""

    files: Mapping[str, bytes]

    @classmethod
    def of(cls, archive: Archive) -> "Package":
        return cls({info.filename: content for info, content in archive})

    @cached_property
    def main(self) -> str | None:
        """The name of the main part, if the package has one."""
        usual = (name for name in USUAL_MAINS if not self._file("_rels/.rels") and name in self.files)
        return next((link.target for link in self.relationships(ROOT) if link.kind == MAIN), next(usual, None))

    def relationships(self, part: str) -> list[Relationship]:
        """Return the links from a part to other parts of the package, in order. Raises InvalidDocument."""
        folder, name = posixpath.split(part)
        file = self._file(posixpath.join(folder, "_rels", f"{name}.rels"))
        if file is None:
            return []
        links = []
        for element in parse_xml(self.files[file], file).iter("{*}Relationship"):
            if element.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/")
                kind = posixpath.basename(element.get("Type", ""))
                links.append(Relationship(kind, self._file(target) or target, element.get("Id", "")))
        return links

    def reached(self, followed: Mapping[str, Collection[str]]) -> dict[str, str]:
        """Return the parts to which links lead from the main part, in the order of the document, with the kinds of the
        links. `followed` has the kinds of links to follow, by the kind of their source. Raises InvalidDocument: there
        is no main part, or a list of links is damaged."""
        main = self.main
        if main is None or main not in self.files:
            raise InvalidDocument("The file is damaged: its main part is missing")
        kinds: dict[str, str] = {}
        waiting = [(MAIN, main)]
        while waiting:
            kind, part = waiting.pop()
            if part in self.files and part not in kinds:
                kinds[part] = kind
                links = [link for link in self._in_order(part) if link.kind in followed.get(kind, ())]
                waiting += [(link.kind, link.target) for link in reversed(links)]
        return kinds

    def _in_order(self, part: str) -> list[Relationship]:
        """Return the links from a part as its XML names them. Links without a name there come last."""
        links = self.relationships(part)
        places = {link.id.encode(): len(self.files[part]) for link in links}
        for match in QUOTED.finditer(self.files[part]) if links else ():
            if match[1] in places:
                places[match[1]] = min(places[match[1]], match.start())
        return sorted(links, key=lambda link: places[link.id.encode()])

    def content_type(self, part: str) -> str | None:
        """Return the declared type of a part, in lower case. Raises InvalidDocument."""
        ending = part.rpartition(".")[2].lower()
        return self._types.get(_key(f"/{part}")) or self._types.get(f".{ending}")

    def _file(self, name: str) -> str | None:
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
    """Equal names may differ in capitals and percent-encoding (OPC, 6.2.2)."""
    return unquote(name).lower()


def type_of_package(data: bytes) -> str | None:
    """Return the media type that a zip declares for itself or, in an Office file, for its main part. Raises
    InvalidDocument: the zip is damaged. TooLarge: the files that declare the type are too large."""
    declaring = ("mimetype", CONTENT_TYPES, "_rels/.rels")
    files = {info.filename: content for info, content in unpack(data, MAX_DECLARATION_BYTES, declaring)}
    if "mimetype" in files:
        return files["mimetype"].decode("ascii", "replace").strip().lower()
    package = Package(files)
    return package.content_type(package.main) if package.main else None
