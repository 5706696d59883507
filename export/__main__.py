"""`python -m export CHECKPOINT OUT`: make an artifact, prove it, say what was measured."""

import time
from pathlib import Path
from typing import Annotated

import typer

from export.artifact import export
from export.manifest import Precision
from export.proof import ProofError
from export.tracing import ExportError
from model.checkpoint import CheckpointError
from model.config import ConfigError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    checkpoint: Annotated[
        Path, typer.Argument(help="Checkpoint directory that `python -m model train` left, or an artifact.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="Artifact directory to make; an artifact there is replaced. It may be the checkpoint itself."
        ),
    ],
    precision: Annotated[Precision, typer.Option(help="How weights are stored.")] = "int8",
    calibrate: Annotated[
        Path | None,
        typer.Option(
            help="Texts like those that the model will read, a line each, in its first source language: int8 has its "
            "scales from the numbers that the model computes with them. Those that an artifact has already stay.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Export a checkpoint as ONNX graphs, and prove them against PyTorch before they appear at OUT."""
    start = time.monotonic()
    lines = calibrate.read_text(encoding="utf-8", errors="replace").splitlines() if calibrate else []
    try:
        measured = export(checkpoint, out, precision, [line for line in lines if line.strip()])
    except (CheckpointError, ConfigError, ExportError, ProofError) as error:
        typer.secho(f"{checkpoint} is not exported: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    for line in measured:
        typer.echo(f"  {line}")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    typer.echo(f"{out}: {precision}, {size:.1f} MB, proved in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    app()
