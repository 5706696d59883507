"""Measures target tokens per second with other constants of the engine, without worker process and HTTP."""

from itertools import product
from typing import Any

from benchmarks.engines.attend import sequences_of, targets_of
from benchmarks.gpu.counts import ENGINES
from benchmarks.gpu.driving import Constants, drive
from benchmarks.gpu.inputs import BEAM_SIZES, ProviderName, artifacts, read_inputs, say
from benchmarks.gpu.speed import THREADS
from manifest.schema import MAX_BEAM_SIZE
from service.base.artifact import read_artifacts
from service.base.settings import Settings
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs

BATCHES = (64, 256)
CHOICES = (
    Constants(),
    Constants(newcomers_share=0.5),
    Constants(size_factor=2),
    Constants(size_factor=8),
    Constants(steps_waited=8),
    Constants(newcomers_share=0.25),
)
REPETITIONS = 3


def measure(model: str, provider: ProviderName, chosen: Constants, n_works: int | None) -> None:
    """Print the speed with these constants, or with each of CHOICES if none is given. A CPU has none of them: there the
    engine for a CPU is measured."""
    inputs = read_inputs()
    works = inputs.works[model][:n_works]
    (artifact,) = read_artifacts(artifacts(model))
    make: Any = ENGINES["fixed" if provider == "cuda" else "compact"]
    for constants, beam_size, batch in product([chosen] if chosen.changes() else CHOICES, BEAM_SIZES, BATCHES):
        graphs = TranslationGraphs(artifact, Provider(provider, THREADS, captures=provider == "cuda"))
        settings = Settings(rows=max(MAX_BEAM_SIZE, batch * beam_size), max_waiting=10**6)
        seconds = []
        with constants.changed():
            engine = make(graphs, settings)["greedy" if beam_size == 1 else "beam"]
            for _ in range(1 + REPETITIONS):
                sequences = sequences_of(works, artifact.manifest, beam_size)
                seconds.append(drive(engine, [sequences]).seconds)
        answers = targets_of(sequences, artifact.manifest)
        say(
            part="constants",
            model=model,
            **constants.changes(),
            beam_size=beam_size,
            batch=batch,
            tokens_per_s=round(sum(map(len, answers)) / min(seconds[1:])),
            as_float32_on_cpu=inputs.agreement(model, beam_size, answers),
        )
