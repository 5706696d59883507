"""The folder of benchmark files: models in the format of each engine, installed peers, results."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKSPACE = ROOT / ".bench"


def workspace(*parts: str) -> Path:
    """Return a directory in the workspace, created if missing; git ignores the workspace."""
    directory = WORKSPACE.joinpath(*parts)
    directory.mkdir(parents=True, exist_ok=True)
    (WORKSPACE / ".gitignore").write_text("*\n")
    return directory


def made_from(sources: Iterable[Path], directory: Path, make: Callable[[Path], None]) -> Path:
    """Let `make` fill `directory`, again only if one of the source files has changed; return it."""
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
