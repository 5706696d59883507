"""Reads artifact directories. A damaged or foreign directory is refused, with a sentence that says what is wrong."""

import logging
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from manifest.file import ManifestError, parse_manifest
from manifest.layout import MANIFEST
from manifest.schema import Manifest
from manifest.sums import FileSum, sum_of_content, sum_of_opened
from service.base.errors import ArtifactRefused

logger = logging.getLogger(__name__)

LOST_AND_FOUND = "lost+found"
"""A directory of every ext4 volume, which only root may read."""
ADVICE = (
    "ATTEND_ARTIFACTS must be a folder with a folder for each model; `attend import Helsinki-NLP/opus-mt-en-de`, in a "
    "clone `make model FROM=Helsinki-NLP/opus-mt-en-de`, puts one into the folder artifacts"
)
"""Advice for whoever has no model yet."""
Stamp = tuple[int, int, int]
"""Inode, size and time of the last change in ns: they differ if a file was replaced or written."""


@dataclass(frozen=True)
class Artifact:
    """A model on disk. `stamps` has the stamp of each file, taken before it was read; `manifest_sum` is the sum of the
    manifest's own file."""

    directory: Path
    manifest: Manifest
    manifest_sum: FileSum | None = None
    stamps: dict[str, Stamp | None] = field(default_factory=dict)

    def path(self, file: str) -> Path:
        return self.directory / file

    def read(self, file: str) -> bytes:
        """Return the content of a file, which is what the manifest says. Raises ArtifactRefused: the file is missing,
        or has changed."""
        path = self.path(file)
        with _reading(path):
            content = path.read_bytes()
        _check(path, sum_of_content(content), self.manifest.files[file])
        return content

    def open(self, file: str) -> "OpenedFile":
        """Open a file whose content is what the manifest says. Raises ArtifactRefused: the file is missing, or has
        changed."""
        return OpenedFile(self.path(file), self.manifest.files[file])

    def verify(self) -> None:
        """Raises ArtifactRefused: a file is not what the manifest says."""
        for name, expected in self.manifest.files.items():
            _check(self.path(name), sum_of(self.path(name)), expected)

    def is_as_read(self, file: str) -> bool:
        """Whether the content of a file, or of the manifest itself, is unchanged."""
        expected = self.manifest_sum if file == MANIFEST else self.manifest.files[file]
        try:
            return sum_of(self.path(file)) == expected
        except ArtifactRefused:
            return False


class OpenedFile:
    """A file that stays open and unchanged, also when another file takes its place. Raises ArtifactRefused: the file is
    missing, or is not what the manifest says."""

    def __init__(self, path: Path, expected: FileSum) -> None:
        self.path = path
        self.size = expected.bytes
        with _reading(path), path.open("rb") as file:
            self._number = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._number)
            self._stamp = _stamp(os.fstat(self._number))
            actual = sum_of_opened(file)
        _check(path, actual, expected)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill a buffer of bytes with the content from `offset` on. Processes that share the file may do so at once.
        Raises ArtifactRefused: the file was written to since it was opened, or cannot be read."""
        with _reading(self.path):
            while buffer and (n_read := os.preadv(self._number, [buffer], offset)):  # at most 2 GB at once
                buffer, offset = buffer[n_read:], offset + n_read
            is_unchanged = _stamp(os.fstat(self._number)) == self._stamp
        if buffer or not is_unchanged:
            raise ArtifactRefused(f"{self.path}: was written to after the model had been loaded; load it anew")


def read_artifacts(root: Path, names: Sequence[str] = ()) -> list[Artifact]:
    """Return the artifacts directly under `root`. Other directories are skipped, with a warning unless they are hidden.

    Args:
        names: names of the artifacts to return, in this order; by default all, in the order of their directories.

    Raises:
        ArtifactRefused: there are no artifacts, two have one name, or one is damaged or of another format.
    """
    by_name: dict[str, Artifact] = {}
    for artifact in _artifacts_in(root):
        twin = by_name.setdefault(artifact.manifest.name, artifact)
        if twin is not artifact:
            raise ArtifactRefused(f"{artifact.directory} and {twin.directory} are both named {artifact.manifest.name}")
    if not by_name:
        raise ArtifactRefused(f"{root.absolute()}: contains no artifact directory; {ADVICE}")
    for name in names:
        if name not in by_name:
            raise ArtifactRefused(f"{root}: has no model {name}; available: {', '.join(by_name)}")
    return [by_name[name] for name in names or by_name]


def read_artifact(directory: Path) -> Artifact:
    """Return the artifact of a directory, after a check of every file that its manifest names. Raises ArtifactRefused:
    it is damaged, incomplete, or of another format."""
    artifact = _opened(directory)
    artifact.verify()
    return artifact


class _NoManifest(ArtifactRefused):
    """The directory is no artifact."""


def _artifacts_in(root: Path) -> Iterator[Artifact]:
    """Only manifests are read."""
    try:
        is_artifact = (root / MANIFEST).is_file()
        directories = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactRefused(f"{root.absolute()}: does not exist; {ADVICE}") from None
    except OSError as error:
        raise ArtifactRefused(f"{root}: cannot be read: {error}") from error
    if is_artifact:
        raise ArtifactRefused(f"{root}: is an artifact itself; ATTEND_ARTIFACTS must be the folder that contains it")
    for directory in directories:
        try:
            if directory.name == LOST_AND_FOUND:
                raise _NoManifest
            artifact = _opened(directory)
        except _NoManifest:
            logger.warning("%s is skipped: it has no %s", directory, MANIFEST)
        else:
            yield artifact


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def sum_of(path: Path) -> FileSum:
    """Raises ArtifactRefused: there is no such file, or this user may not read it."""
    with _reading(path), path.open("rb") as file:
        return sum_of_opened(file)


def _opened(directory: Path) -> Artifact:
    path = directory / MANIFEST
    stamp = stamp_of(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise _NoManifest(f"{path}: does not exist; is this an artifact directory?") from None
    except OSError as error:
        raise ArtifactRefused(f"{path}: cannot be read: {error}") from error
    try:
        manifest = parse_manifest(content)
    except ManifestError as error:
        raise ArtifactRefused(f"{path}: {error}") from error
    stamps = {MANIFEST: stamp, **{file: stamp_of(directory / file) for file in manifest.files}}
    return Artifact(directory, manifest, sum_of_content(content), stamps)


def _check(path: Path, actual: FileSum, expected: FileSum) -> None:
    if actual.sha256 != expected.sha256:
        raise ArtifactRefused(
            f"{path}: sha256 is {actual.sha256[:12]}... ({actual.bytes} bytes); "
            f"the manifest says {expected.sha256[:12]}... ({expected.bytes} bytes)"
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ArtifactRefused(f"{path}: is missing") from None
    except OSError as error:
        raise ArtifactRefused(f"{path}: cannot be read: {error}") from error
