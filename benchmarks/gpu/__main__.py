"""`python -m benchmarks.gpu`: measure the service on a GPU; every part prints lines of JSON (docs/gpu.md)."""

import os
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.gpu import constants, counts, everything, http, inputs, pack, proof, report, simulate, soak, speed
from benchmarks.gpu.driving import Constants
from benchmarks.gpu.inputs import ProviderName
from benchmarks.models import RANDOM, SHIPPED
from benchmarks.workspace import ROOT, workspace

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Data = Annotated[
    Path | None,
    typer.Option(envvar="ATTEND_TEST_DATA", help="Directory of the corpora; by default our own sentences."),
]
Model = Annotated[str, typer.Option(help=f"{SHIPPED} or {RANDOM}.")]
Works = Annotated[int | None, typer.Option(help="Number of works; by default all.")]
NewcomersShare = Annotated[float | None, typer.Option(help="MIN_NEWCOMERS_SHARE of the engine.")]
StepsWaited = Annotated[int | None, typer.Option(help="MAX_STEPS_WAITED of the engine.")]
SizeFactor = Annotated[int | None, typer.Option(help="STEP_SIZE_FACTOR of the engine.")]
OnProvider = Annotated[ProviderName, typer.Option(envvar="PROVIDER", help="cpu tries a part without a GPU.")]


@app.command("all")
def all_command(
    provider: OnProvider = "cuda",
    budget: Annotated[float, typer.Option(help="Seconds for all parts; the last ones may be skipped.")] = (
        everything.BUDGET_S
    ),
    works: Works = None,
) -> None:
    """Run every part that docs/gpu.md needs, and write its tables; on a CPU into a copy of the page."""
    os.environ["PROVIDER"] = provider
    everything.run(provider, everything.parts(budget, works), budget, everything.measured())
    report_command(everything.measured())


@app.command("report")
def report_command(
    measured: Annotated[Path | None, typer.Argument(help="Results of `all`, from this or another machine.")] = None,
) -> None:
    """Write the tables of docs/gpu.md from the results of `all`."""
    lines = everything.read_lines(measured or everything.measured())
    page = ROOT / "docs" / "gpu.md"
    out = page if lines[0]["provider"] == "cuda" else workspace("gpu") / page.name
    report.write(lines, page, out)
    print(f"written: {out}")


@app.command("prepare")
def prepare_command(data: Data = None) -> None:
    """Write the inputs with float32's answers on the CPU, and the models."""
    print(inputs.prepare_inputs(data))
    models_command()


@app.command("models")
def models_command() -> None:
    """Write the models that are missing."""
    for path in inputs.prepare_models():
        inputs.say(part="models", path=str(path))


@app.command("pack")
def pack_command(
    out: Annotated[Path, typer.Argument(help="Folder for the parts of the archive.")],
    data: Data = None,
    architecture: Annotated[int, typer.Option(help="Architecture whose kernels are kept: 90 is Hopper.")] = 90,
    part_mb: Annotated[int, typer.Option(help="Size of a part in MB.")] = 60,
) -> None:
    """Pack what a machine without network needs beside PyTorch, in parts that unpack.sh joins there."""
    inputs.prepare_inputs(data)
    pack.pack(out, architecture, part_mb)


@app.command("proof")
def proof_command(provider: OnProvider = "cuda", works: Works = None) -> None:
    """Check whether answers equal those of float32, and where the nodes of each graph run."""
    proof.measure(provider, works)


@app.command("steps")
def steps_command(model: Model = SHIPPED, provider: OnProvider = "cuda") -> None:
    """Time one decoder step and one encoder pass."""
    speed.steps(model, provider)


@app.command("profile")
def profile_command(model: Model = SHIPPED, provider: OnProvider = "cuda", rows: int = 64) -> None:
    """Profile which operators run where, and for how long."""
    speed.profile(model, provider, rows)


@app.command("speed")
def speed_command(
    engine: Annotated[str, typer.Argument(help="attend or ctranslate2.")],
    model: Model = SHIPPED,
    provider: OnProvider = "cuda",
    repetitions: int = 3,
    works: Works = None,
) -> None:
    """Measure target tokens per second, without HTTP."""
    speed.tokens_per_second(engine, model, provider, repetitions, works)


@app.command("counts")
def counts_command(
    model: Model = SHIPPED,
    provider: OnProvider = "cuda",
    works: Works = None,
) -> None:
    """Count session runs, copies and shapes of each engine, and target tokens per second."""
    counts.measure(model, provider, works)


@app.command("simulate")
def simulate_command(
    data: Data = None,
    works: Works = None,
    newcomers_share: NewcomersShare = None,
    steps_waited: StepsWaited = None,
    size_factor: SizeFactor = None,
) -> None:
    """Measure what the host costs beside a simulated GPU, beside CTranslate2's figures on a GPU."""
    simulate.measure(data, Constants(newcomers_share, steps_waited, size_factor), works)


@app.command("constants")
def constants_command(
    model: Model = SHIPPED,
    provider: OnProvider = "cuda",
    works: Works = None,
    newcomers_share: NewcomersShare = None,
    steps_waited: StepsWaited = None,
    size_factor: SizeFactor = None,
) -> None:
    """Measure target tokens per second with these constants of the engine, or with several one after the other."""
    constants.measure(model, provider, Constants(newcomers_share, steps_waited, size_factor), works)


@app.command("http")
def http_command(
    provider: OnProvider = "cuda",
    seconds: float = 6.0,
    servers: Annotated[int | None, typer.Option(help="Number of server processes.")] = None,
) -> None:
    """Check whether every route answers, and measure texts per second."""
    http.measure(provider, seconds, servers)


@app.command("soak")
def soak_command(provider: OnProvider = "cuda", seconds: float = everything.SOAK_S) -> None:
    """Check whether answers and memory stay the same under mixed requests."""
    soak.measure(provider, seconds)


if __name__ == "__main__":
    app()
