"""Sources of models: a directory, an archive, or the hub."""

import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from model.importing.foreign_files import what_is
from model.importing.hub import HUB_ID, fetch
from model.importing.imported import ModelImportError, in_sentences
from model.importing.packed_files import refuse_bomb


@dataclass(frozen=True)
class Source:
    """Files of a model.

    Attributes:
        name: name of the model by its source.
        said: name of the source, as the user gave it.
        revision: commit of a repository on the hub.
    """

    directory: Path
    name: str
    said: str
    revision: str | None = None


@contextmanager
def open_source_files(source: str, revision: str | None = None) -> Iterator[Source]:
    """Give the files of a directory, an archive (.zip, .argosmodel, .tar, compressed) or a repository of the hub;
    unpacked files are deleted afterwards.

    Raises:
        ModelImportError: there is no such source, or an archive is damaged or has paths outside of it.
    """
    path = Path(source)
    if path.is_dir():
        yield Source(path, path.resolve().name, str(path.resolve().name))
    elif path.is_file():
        if what := what_is(path):
            raise ModelImportError(f"{path.name} is {what}")
        with tempfile.TemporaryDirectory(prefix="attend-import-") as workplace:
            _unpack(path, Path(workplace))
            name = re.sub(r"(\.tar)?\.\w+$", "", path.name)
            yield Source(_innermost(Path(workplace)), name, path.name)
    elif HUB_ID.fullmatch(source):
        directory, commit = fetch(source, revision)
        yield Source(directory, source.split("/")[1], source, commit)
    else:
        raise ModelImportError("it must be a directory, a file, or an id of the hub (owner/name)")


def _unpack(path: Path, directory: Path) -> None:
    with in_sentences(f"the archive {path.name} is damaged or cannot be unpacked"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                wanted = _checked({entry.filename: entry.file_size for entry in archive.infolist()}, path, directory)
                archive.extractall(directory, wanted)  # noqa: S202  names were looked at
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                wanted = _checked({entry.name: entry.size for entry in archive}, path, directory)
                members = [entry for entry in archive if entry.name in wanted]
                archive.extractall(directory, members, filter="data")
        else:
            raise ModelImportError(f"{path.name} is no archive that can be read: it must be zip or tar")


def _checked(sizes: Mapping[str, int], archive: Path, directory: Path) -> list[str]:
    """Return the names of the entries to unpack, after a look at all names and sizes, in bytes."""
    for name in sizes:
        _refuse_leading_out(name)
    needed, free = sum(sizes.values()), shutil.disk_usage(directory).free
    refuse_bomb(archive, needed)
    if needed > free:
        raise ModelImportError(
            f"the archive needs {needed / 1e9:.1f} GB to be unpacked, and {directory.parent} has {free / 1e9:.1f} GB"
        )
    return [name for name in sizes if not _is_hidden(name)]


def _refuse_leading_out(name: str) -> None:
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.anchor or ".." in path.parts:
            raise ModelImportError(f"the archive has a path outside of it: {name}")


def _is_hidden(name: str) -> bool:
    """An operating system adds entries, as macOS does for each file."""
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _innermost(directory: Path) -> Path:
    """Archives often have one directory with everything in it."""
    entries = list(directory.iterdir())
    return _innermost(entries[0]) if len(entries) == 1 and entries[0].is_dir() else directory
