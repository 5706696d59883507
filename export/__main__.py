"""`python -m export CHECKPOINT OUT`: write an artifact, prove it, and print what the proof measured."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from safetensors import SafetensorError

from export.artifact import export
from export.next_steps import next_steps
from export.proof import ProofError
from export.tracing import ExportError
from manifest.file import read_manifest
from manifest.schema import Precision
from model.checkpoint import CheckpointError
from model.config import ConfigError
from model.progress import progress_shown

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    checkpoint: Annotated[
        Path, typer.Argument(help="Checkpoint directory from `python -m model train`, or an artifact.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="Artifact directory to write; it replaces an artifact of the same model there. It may be CHECKPOINT."
        ),
    ],
    precision: Annotated[Precision, typer.Option(help="How weights are stored.")] = "int8",
    calibrate: Annotated[
        Path | None,
        typer.Option(
            help="File with texts like those that the model will read, one per line, in its first source language. "
            "int8 scales are chosen from the activations on them; scales that an artifact already has are kept.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the artifact of another model too.")] = False,
    nearness: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of tokens or labels, or cosine of embeddings, that must be as in float32; layers stay in "
            "float32 until it is. By default 0.9, 0.95 and 0.99.",
        ),
    ] = None,
    prove: Annotated[
        Literal["here", "all"],
        typer.Option(help="Which graphs are run: those for this machine, or those for CUDA too, on the CPU."),
    ] = "here",
) -> None:
    """Export a checkpoint as ONNX graphs; OUT appears only after they were proved against PyTorch."""
    start = time.monotonic()
    lines = calibrate.read_text(encoding="utf-8", errors="replace").splitlines() if calibrate else []
    try:
        with progress_shown():
            texts = [line for line in lines if line.strip()]
            measured = export(checkpoint, out, precision, texts, overwrite, nearness, prove == "all")
    except (CheckpointError, ConfigError, ExportError, ProofError, OSError, SafetensorError) as error:
        typer.secho(f"cannot export {checkpoint}: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    for line in measured:
        typer.echo(f"  {line}")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    typer.echo(f"{out}: {precision}, {size:.1f} MB, exported and proved in {time.monotonic() - start:.0f} s")
    if out != checkpoint:
        typer.echo(f"\n{next_steps(read_manifest(out), out)}")


def run(arguments: Sequence[str], program: str = "python -m export") -> None:
    """Export, as the arguments say."""
    app(list(arguments), prog_name=program)


if __name__ == "__main__":
    run(sys.argv[1:])
