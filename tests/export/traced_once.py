"""Graphs depend on the architecture alone, and tracing takes long: models of the same one share theirs in tests."""

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from export.graphs import Graph
from export.signatures import Signature

Trace = Callable[[Graph[Any], Signature, int], ir.Model]


def traced_once(trace: Trace) -> Trace:
    """The same function, which remembers what it made."""
    known: dict[str, ir.Model] = {}

    def trace_once(graph: Graph[Any], signature: Signature, n_attention: int) -> ir.Model:
        architecture = graph.model.config.model_dump_json(exclude={"source", "target", "dropout"})
        tensors = [(name, t.shape, t.dtype) for name, t in [*graph.named_parameters(), *graph.named_buffers()]]
        key = f"{type(graph).__name__} {getattr(graph, 'n_target_tokens', 0)} {architecture} {tensors}"
        if key not in known:
            known[key] = trace(graph, signature, n_attention)
        return known[key]

    return trace_once
