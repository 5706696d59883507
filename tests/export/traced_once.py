"""Shares traced graphs in a test run: a graph depends on the architecture alone, and tracing takes long."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch
from filelock import FileLock

from export.graphs import Graph
from export.signatures import Signature

Trace = Callable[[Graph[Any], Signature, int], ir.Model]


def traced_once(trace: Trace, directory: Path) -> Trace:
    """Return a tracing function that keeps its graphs in a directory."""

    def trace_once(graph: Graph[Any], signature: Signature, n_attention: int) -> ir.Model:
        architecture = graph.model.config.model_dump_json(exclude={"source", "target", "dropout"})
        tensors = [(name, t.shape, t.dtype) for name, t in [*graph.named_parameters(), *graph.named_buffers()]]
        key = f"{type(graph).__name__} {getattr(graph, 'n_target_tokens', 0)} {architecture} {tensors}"
        path = directory / f"{hashlib.sha256(key.encode()).hexdigest()}.onnx"
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                # Graphs this small have little that is the same twice.
                with torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
                    traced = trace(graph, signature, n_attention)
                path.write_bytes(ir.to_proto(traced).SerializeToString(deterministic=True))
        return ir.from_proto(onnx.ModelProto.FromString(path.read_bytes()))

    return trace_once
