"""The folder of what the benchmark makes: models in each engine's format, peers' installations, results."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKSPACE = ROOT / ".bench"


def workspace(*parts: str) -> Path:
    """A directory in the workspace, made where it is missing; git ignores the whole of it."""
    directory = WORKSPACE.joinpath(*parts)
    directory.mkdir(parents=True, exist_ok=True)
    (WORKSPACE / ".gitignore").write_text("*\n")
    return directory


def made_from(sources: Iterable[Path], directory: Path, make: Callable[[Path], None]) -> Path:
    """`directory` as `make` fills it; made again only when one of the files it is made from has changed."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    stamp = directory.parent / f"{directory.name}.sha256"
    if not (directory.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest()):
        stamp.unlink(missing_ok=True)
        directory.mkdir(parents=True, exist_ok=True)
        make(directory)
        stamp.write_text(digest.hexdigest())
    return directory
