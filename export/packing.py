"""`attend pack FILE --languages en,fr`: one file with models, for machines without a network. `attend unpack` reads
it."""

import argparse
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from export.languages import add_arguments, bring_languages
from manifest.pack import ARTIFACTS, PACK, WHEELS, Pack
from manifest.sums import sum_of_file

CLONE = Path(__file__).parents[1]
INSTALL = """\
  tar -xf {file} {wheels}
  python3 -m venv .venv
  .venv/bin/pip install --no-index --no-deps {wheels}/*.whl
"""


def run(arguments: Sequence[str], program: str = "attend pack") -> None:
    """Pack what the arguments ask for, and say what to do with it. Ends the process with a sentence if that fails."""
    does = "Write one file with models, for a machine without a network."
    parser = argparse.ArgumentParser(prog=program, description=does)
    parser.add_argument("file", type=Path, help="file to write, such as attend.pack")
    add_arguments(parser)
    parser.add_argument(
        "--wheels",
        nargs="?",
        choices=("cpu", "cuda"),
        const="cpu",
        help="add what pip installs on a machine like this one: the same system, processor and version of Python",
    )
    options = parser.parse_args(arguments)
    if options.file.exists():
        parser.error(f"{options.file} exists; name another file")
    folders = bring_languages(options.languages, options.size, options.artifacts)
    if not folders:
        sys.exit(f"{program}: {options.file} was not written: there is no model of these languages")
    with tempfile.TemporaryDirectory(prefix="attend-pack-") as wheels:
        try:
            if options.wheels:
                write_wheels(Path(wheels), options.wheels)
            write_pack(options.file, folders, Path(wheels))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"{program}: {options.file} was not written: {error}")
    size = options.file.stat().st_size / 1e6
    python = f" with Python {platform.python_version().rpartition('.')[0]} on {platform.system()} {platform.machine()}"
    print(f"{options.file}: {size:,.1f} MB, sha256 {sum_of_file(options.file).sha256}\n")
    print(f"On a machine without a network{python * bool(options.wheels)}:")
    print(INSTALL.format(file=options.file.name, wheels=WHEELS) * bool(options.wheels), end="")
    print(f"  .venv/bin/attend unpack {options.file.name}\n  .venv/bin/attend serve {ARTIFACTS}")


def write_wheels(folder: Path, provider: str) -> None:
    """Write attend and all that serving with a provider needs, as pip installs it. Raises OSError: this is no clone.
    Raises CalledProcessError: pip has failed, and has said why."""
    lock = CLONE / "requirements" / f"{provider}.txt"
    if not lock.is_file():
        raise FileNotFoundError(f"--wheels needs a clone of attend, where {lock.relative_to(CLONE)} is")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    for what in (["--require-hashes", "--requirement", str(lock)], [str(CLONE)]):
        subprocess.run([*pip, *what], check=True)  # noqa: S603  it is pip


def write_pack(file: Path, folders: Iterable[Path], wheels: Path) -> None:
    """Write a pack of artifacts, and of the files in a folder of wheels; `file` appears when it is whole. The same
    files give the same bytes. Raises OSError: a file cannot be read or written."""
    paths = {f"{WHEELS}/{path.name}": path for path in sorted(wheels.iterdir())}
    for folder in folders:
        visible = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("."))
        paths |= {f"{ARTIFACTS}/{folder.name}/{path.relative_to(folder).as_posix()}": path for path in visible}
    pack = Pack(files={name: sum_of_file(path) for name, path in paths.items()})
    with tempfile.NamedTemporaryFile(dir=file.absolute().parent, prefix=f".{file.name}.", delete=False) as begun:
        try:
            _write(begun, pack, paths)
            os.chmod(begun.name, 0o644)
            os.rename(begun.name, file)
        except BaseException:
            os.unlink(begun.name)
            raise


def _write(begun: "tempfile._TemporaryFileWrapper[bytes]", pack: Pack, paths: Mapping[str, Path]) -> None:
    with tarfile.open(fileobj=begun, mode="w", format=tarfile.PAX_FORMAT) as archive:
        content = pack.model_dump_json(indent=1).encode()
        archive.addfile(_member(PACK, len(content)), io.BytesIO(content))
        for name, path in paths.items():
            with path.open("rb") as opened:
                archive.addfile(_member(name, pack.files[name].bytes), opened)
    begun.flush()


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member
