"""Opens graphs with ONNX Runtime on the CPU, whichever provider they were made for."""

from pathlib import Path

import onnxruntime as ort
import torch

from export.manifest import Manifest
from model.weights import WEIGHTS, dequantize, read_weights


def open_session(directory: Path, manifest: Manifest, graph: str, threads: int = 1) -> ort.InferenceSession:
    """Open a session for one graph of an artifact, with the tensors that it names.

    Args:
        graph: its name in the manifest, for example cpu/encoder.onnx.
        threads: threads that share one operator's work.
    """
    tensors = tensors_of(directory, manifest, graph)  # needed until the session has copied them
    options = ort.SessionOptions()
    options.add_external_initializers(list(tensors), list(tensors.values()))
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(
        directory / graph,
        options,
        providers=["CPUExecutionProvider"],
        # The fused kernel is not vectorized: at 32 rows a decoder step takes an eighth less time without it.
        disabled_optimizers=["SkipLayerNormFusion"],
    )


def tensors_of(directory: Path, manifest: Manifest, graph: str) -> dict[str, ort.OrtValue]:
    """Return the tensors that a graph reads from weights.safetensors, in the types that it expects."""
    stored = read_weights(directory / WEIGHTS)
    tensors = {}
    for dtype, names in manifest.graphs[graph].items():
        wanted: torch.dtype = getattr(torch, dtype)
        for name in names:
            tensor = stored[name] if stored[name].dtype == wanted else dequantize(name, stored).to(wanted)
            tensors[name] = ort.OrtValue.ortvalue_from_numpy(tensor.numpy())
    return tensors
