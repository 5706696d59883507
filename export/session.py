"""Opens graphs with ONNX Runtime on the CPU, whichever provider they were made for."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnxruntime as ort
import torch

from manifest.layout import WEIGHTS
from manifest.schema import Dtype, Manifest
from model.weights import dequantize, read_weights

SLOWER_FUSIONS = ["SkipLayerNormFusion", "MatMulIntegerToFloatFusion"]
"""Fusions that are disabled, as the service does."""


def open_session(directory: Path, manifest: Manifest, graph: str, threads: int = 1) -> ort.InferenceSession:
    """Open a session for one graph of an artifact, with the tensors that it names.

    Args:
        graph: its name in the manifest, for example cpu/encoder.onnx.
        threads: threads that share one operator's work.
    """
    return new_session(directory / graph, tensors_of(directory, manifest.graphs[graph]), threads)


def new_session(graph: Path | bytes, tensors: Mapping[str, ort.OrtValue], threads: int = 1) -> ort.InferenceSession:
    """Open a session for a graph, given the tensors that it names."""
    options = ort.SessionOptions()
    options.add_external_initializers(list(tensors), list(tensors.values()))
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(
        graph,
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=SLOWER_FUSIONS,
    )


def tensors_of(directory: Path, types: Mapping[Dtype, Sequence[str]]) -> dict[str, ort.OrtValue]:
    """Return tensors of weights.safetensors, given their names by the type that a graph expects."""
    stored = read_weights(directory / WEIGHTS)
    tensors = {}
    for dtype, names in types.items():
        wanted: torch.dtype = getattr(torch, dtype)
        for name in names:
            tensor = stored[name] if stored[name].dtype == wanted else dequantize(name, stored).to(wanted)
            tensors[name] = ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    return tensors
