"""PowerPoint and Excel files, made by hand."""

from collections.abc import Mapping

from tests.service.documents.word_files import related, zipped

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"


def office(main: str, media_type: str, files: Mapping[str, str | bytes], *more: tuple[str, str]) -> bytes:
    """An Office file with this main part, whose type it declares.

    Args:
        more: links of the package itself to other parts: of each the kind and the target.
    """
    types = f'<Types xmlns="{TYPES}"><Override PartName="/{main}" ContentType="{media_type}"/></Types>'
    return zipped({"[Content_Types].xml": types, **related(("officeDocument", main), *more, source=""), **files})
