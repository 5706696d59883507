"""`attend import FROM`, or `python -m export.importing FROM`: import a model of others and export it, to be served."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from export.__main__ import app as exporting_app
from export.next_steps import SERVED
from model.__main__ import app as model_app
from model.__main__ import reporting_errors
from model.importing.recommended import listing_with_hint

RUNS = Path("runs")
"""The folder of checkpoints."""
OF_EXPORT = {"precision", "calibrate", "nearness", "prove"}
"""The options of an export that an import has too."""
ARCHIVE = re.compile(r"(\.tar)?\.(argosmodel|bz2|gz|tar|tbz2?|tgz|txz|xz|zip)$")
"""The ending of an archive's name, which is no part of the model's name."""
exporting = typer.main.get_command(exporting_app)
importing = typer.main.get_command(model_app).commands["import"]  # type: ignore[attr-defined]


def run(arguments: Sequence[str], program: str = "python -m export.importing") -> None:
    """Import a model and export it. Without a model, list good ones and exit with status 2."""
    if not arguments:
        sys.stdout.write(listing_with_hint(f"{program} ", "attend serve") + "\n")
        sys.exit(2)
    params = [param for param in importing.params if param.name != "checkpoint"]
    params += [param for param in exporting.params if param.name in OF_EXPORT]
    command = TyperCommand("import", callback=_import, params=params, help=_import.__doc__)
    with reporting_errors():
        command(list(arguments), prog_name=program)


def _import(source: str, name: str | None, overwrite: bool, **options: Any) -> None:
    """Make an artifact of a model that was trained elsewhere: artifacts/NAME (docs/bring-your-model.md)."""
    name = name or ARCHIVE.sub("", Path(source).absolute().name)
    checkpoint = RUNS / name / "checkpoint"
    of_export = {option: options.pop(option) for option in OF_EXPORT}
    assert importing.callback is not None
    assert exporting.callback is not None
    importing.callback(source=source, checkpoint=checkpoint, name=name, overwrite=overwrite, **options)
    exporting.callback(checkpoint=checkpoint, out=SERVED / name, overwrite=overwrite, **of_export)


if __name__ == "__main__":
    run(sys.argv[1:])
