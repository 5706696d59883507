"""Checks that a GPU computes what float32 does on the CPU, in any batch, and leaves no nodes to the CPU."""

from dataclasses import dataclass

import onnxruntime

from benchmarks.engines.attend import AttendEngine
from benchmarks.gpu.inputs import BEAM_SIZES, CLASSIFIER, COMPARED, ProviderName, artifacts, read_inputs, say
from benchmarks.gpu.speed import THREADS
from benchmarks.models import SHIPPED
from service.base.artifact import read_artifacts
from service.runner.device_graphs import COPY
from service.runner.provider import Provider
from service.runner.weights import load_session

COMPANY, ALONE = 64, 32
"""Sentences in flight, and sentences that are also translated alone."""


@dataclass(frozen=True)
class _Recorded(Provider):
    """A provider whose sessions record where their nodes run."""

    def _options(self) -> onnxruntime.SessionOptions:
        options = super()._options()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return options


def measure(provider: ProviderName, n_works: int | None) -> None:
    """Print where the nodes of each graph run, and how many answers equal those of float32, and those alone."""
    _placement(provider)
    inputs = read_inputs()
    works = inputs.works[SHIPPED][:COMPARED][:n_works]
    engine = AttendEngine(artifacts(SHIPPED), THREADS, workers=1, provider=provider)
    for beam_size in BEAM_SIZES:
        answers = engine.translate(works, beam_size, COMPANY)
        alone = engine.translate(works[:ALONE], beam_size, 1)
        say(
            part="proof",
            engine="attend",
            model=SHIPPED,
            beam_size=beam_size,
            as_float32_on_cpu=inputs.agreement(SHIPPED, beam_size, answers),
            as_alone=f"{sum(a == b for a, b in zip(alone, answers, strict=False))} of {len(alone)}",
        )
    engine.close()


def _placement(name: ProviderName) -> None:
    provider = _Recorded(name, THREADS)
    sessions = {"copy": provider.session(COPY)}
    for artifact in read_artifacts(artifacts(SHIPPED, CLASSIFIER)):
        for graph in sorted(artifact.manifest.graphs):
            folder, file = graph.split("/")
            if folder == name:
                sessions[f"{artifact.manifest.name}/{file}"] = load_session(artifact, provider, file)
    for graph, session in sessions.items():
        parts = session.get_provider_graph_assignment_info()
        nodes = [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
        wanted = session.get_providers()[0]
        elsewhere = [operator for where, operator in nodes if where != wanted]
        say(part="proof", graph=graph, provider=wanted, nodes=len(nodes), elsewhere=elsewhere)
