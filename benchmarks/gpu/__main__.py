"""`python -m benchmarks.gpu`: what a GPU does with the service; every part prints lines of JSON (docs/gpu.md)."""

import os
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.gpu import counts, everything, http, inputs, pack, proof, report, soak, speed
from benchmarks.gpu.inputs import ProviderName
from benchmarks.models import RANDOM, SHIPPED
from benchmarks.workspace import ROOT, workspace

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Data = Annotated[
    Path | None,
    typer.Option(envvar="ATTEND_TEST_DATA", help="Directory of the corpora; without it our own sentences."),
]
Model = Annotated[str, typer.Option(help=f"{SHIPPED} or {RANDOM}.")]
Works = Annotated[int | None, typer.Option(help="Only the first.")]
OnProvider = Annotated[ProviderName, typer.Option(envvar="PROVIDER", help="cpu: to try a part without a GPU.")]


@app.command("all")
def all_command(
    provider: OnProvider = "cuda",
    budget: Annotated[float, typer.Option(help="Seconds of all parts; what comes last may find none left.")] = (
        everything.BUDGET_S
    ),
    works: Works = None,
) -> None:
    """Every part that docs/gpu.md needs, and its tables; on a CPU they go into a copy of the page."""
    os.environ["PROVIDER"] = provider
    everything.run(provider, everything.parts(budget, works), budget, everything.measured())
    report_command(everything.measured())


@app.command("report")
def report_command(
    measured: Annotated[Path | None, typer.Argument(help="What `all` has kept, here or elsewhere.")] = None,
) -> None:
    """Write the tables of docs/gpu.md from what `all` has kept."""
    lines = everything.read(measured or everything.measured())
    page = ROOT / "docs" / "gpu.md"
    out = page if lines[0]["provider"] == "cuda" else workspace("gpu") / page.name
    report.write(lines, page, out)
    print(f"written: {out}")


@app.command("prepare")
def prepare_command(data: Data = None) -> None:
    """Write what is translated, and float32's answers on the CPU; make the models."""
    print(inputs.prepare(data))
    models_command()


@app.command("models")
def models_command() -> None:
    """Make the models that are missing."""
    for path in inputs.prepare_models():
        inputs.say(part="models", path=str(path))


@app.command("pack")
def pack_command(
    out: Annotated[Path, typer.Argument(help="Folder of the archive's parts.")],
    data: Data = None,
    architecture: Annotated[int, typer.Option(help="The only one whose kernels are packed: 90 is Hopper.")] = 90,
    part_mb: Annotated[int, typer.Option(help="Size of a part.")] = 60,
) -> None:
    """Pack what a machine without network needs beside PyTorch, in parts that unpack.sh puts together there."""
    inputs.prepare(data)
    pack.pack(out, architecture, part_mb)


@app.command("proof")
def proof_command(provider: OnProvider = "cuda", works: Works = None) -> None:
    """Whether answers are float32's, and where the nodes of each graph run."""
    proof.measure(provider, works)


@app.command("steps")
def steps_command(model: Model = SHIPPED, provider: OnProvider = "cuda") -> None:
    """Milliseconds of one decoder step and of one encoder pass."""
    speed.steps(model, provider)


@app.command("profile")
def profile_command(model: Model = SHIPPED, provider: OnProvider = "cuda", rows: int = 64) -> None:
    """Which operators run where, and for how long."""
    speed.profile(model, provider, rows)


@app.command("speed")
def speed_command(
    engine: Annotated[str, typer.Argument(help="attend, uncaptured (attend without CUDA graphs) or ctranslate2.")],
    model: Model = SHIPPED,
    provider: OnProvider = "cuda",
    repetitions: int = 3,
    works: Works = None,
) -> None:
    """Target tokens a second, without HTTP."""
    speed.tokens_per_second(engine, model, provider, repetitions, works)


@app.command("counts")
def counts_command(
    model: Model = SHIPPED,
    provider: OnProvider = "cuda",
    works: Works = None,
) -> None:
    """Runs of sessions, copies and shapes of each engine, and target tokens a second."""
    counts.measure(model, provider, works)


@app.command("http")
def http_command(
    provider: OnProvider = "cuda",
    graphs: bool = True,
    seconds: float = 6.0,
    servers: Annotated[int | None, typer.Option(help="Processes that speak HTTP.")] = None,
) -> None:
    """Whether every route answers, and texts a second."""
    http.measure(provider, graphs, seconds, servers)


@app.command("soak")
def soak_command(provider: OnProvider = "cuda", seconds: float = everything.SOAK_S) -> None:
    """Whether every answer stays the same under mixed requests, and memory too."""
    soak.measure(provider, seconds)


if __name__ == "__main__":
    app()
