"""`attend unpack FILE`: the artifacts of a pack, without a network. Every file is compared with its sum before any of
them is served, and a pack that is damaged or leads elsewhere is refused whole."""

import argparse
import hashlib
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from manifest.file import ManifestError, read_manifest
from manifest.layout import MANIFEST
from manifest.pack import ARTIFACTS, PACK, Pack

MAX_PACK_BYTES = 16_000_000
"""Largest pack.json."""
CHUNK = 1 << 20


class PackError(ValueError):
    """A pack is damaged, leads elsewhere, or does not fit; the message says what is wrong."""


def run(arguments: Sequence[str], program: str = "attend unpack") -> None:
    """Unpack as the arguments say. Ends the process with a sentence if that fails."""
    parser = argparse.ArgumentParser(prog=program, description="Unpack the models of a pack, to serve them.")
    parser.add_argument("file", type=Path, help="file that attend pack wrote")
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"), help="folder of the models")
    options = parser.parse_args(arguments)
    try:
        folders = unpack(options.file, options.artifacts)
    except (PackError, OSError, tarfile.TarError) as error:
        sys.exit(f"{program}: {options.file} was not unpacked: {error}")
    for folder in folders:
        print(folder)


def unpack(file: Path, artifacts: Path) -> list[Path]:
    """Write the artifacts of a pack into a folder; return their folders. All appear, or none.

    An artifact that is there already stays.

    Raises:
        PackError: the pack is damaged, has paths that leave the folder, links or larger files than it says, does not
            fit on the disk, or has another model than the folder under the same name.
        OSError, TarError: a file cannot be read or written, or is no tar file.
    """
    artifacts.mkdir(parents=True, exist_ok=True)
    with (
        tarfile.open(file, "r:") as archive,
        tempfile.TemporaryDirectory(dir=artifacts, prefix=".unpack-") as workplace,
    ):
        pack = _pack_of(archive)
        needed, free = sum(one.bytes for one in pack.files.values()), shutil.disk_usage(workplace).free
        if needed > free:
            raise PackError(f"it needs {needed / 1e9:.1f} GB, and {artifacts} has {free / 1e9:.1f} GB")
        for name in pack.files:
            _write_member(archive, pack, name, Path(workplace))
        if (rest := archive.next()) is not None:
            raise PackError(f"{PACK} does not name {rest.name}")
        return _put_in_place(sorted(Path(workplace, ARTIFACTS).glob("*/")), artifacts)


def _pack_of(archive: tarfile.TarFile) -> Pack:
    member = archive.next()
    if member is None or member.name != PACK or not member.isreg() or member.size > MAX_PACK_BYTES:
        raise PackError(f"it is no pack: its first file is not {PACK}")
    opened = archive.extractfile(member)
    assert opened is not None, "it is a file"
    try:
        return Pack.model_validate_json(opened.read(), strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise PackError(f"{PACK}: {'.'.join(map(str, wrong['loc']))} {wrong['msg']}") from error


def _write_member(archive: tarfile.TarFile, pack: Pack, name: str, workplace: Path) -> None:
    """Write the next member, and compare it with its sum. `Pack` has looked at its name."""
    member, expected = archive.next(), pack.files[name]
    if member is None or member.name != name:
        raise PackError(f"{name} is missing" if member is None else f"{member.name} is where {name} must be")
    if not member.isreg():
        raise PackError(f"{name} is a link or something else that is no file")
    if member.size != expected.bytes:
        raise PackError(f"{name} has {member.size:,} bytes; {PACK} says {expected.bytes:,}")
    path, opened, digest = workplace / name, archive.extractfile(member), hashlib.sha256()
    assert opened is not None, "it is a file"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as written:
        while chunk := opened.read(CHUNK):
            digest.update(chunk)
            written.write(chunk)
    if digest.hexdigest() != expected.sha256:
        raise PackError(f"{name} is damaged: its sum is not the one of {PACK}")


def _put_in_place(folders: Sequence[Path], artifacts: Path) -> list[Path]:
    new, places = list[Path](), [artifacts / folder.name for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        try:
            read_manifest(folder)
        except (ManifestError, FileNotFoundError) as error:
            raise PackError(f"{folder.name} is no artifact that this version of attend reads: {error}") from error
        if not place.exists():
            new.append(folder)
        elif not _is_same(place, folder):
            raise PackError(f"{place} has another model; unpack into another folder: --artifacts FOLDER")
    for folder in new:
        folder.rename(artifacts / folder.name)
    return places


def _is_same(place: Path, folder: Path) -> bool:
    """A manifest has the sums of all files that are served."""
    path = place / MANIFEST
    return path.is_file() and path.read_bytes() == (folder / MANIFEST).read_bytes()
