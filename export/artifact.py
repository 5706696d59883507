"""Checkpoint directory to artifact directory, all or nothing."""

import copy
import shutil
import tempfile
from pathlib import Path

import onnx_ir as ir

from export.calibration import activation_limits
from export.manifest import MANIFEST, Manifest, Precision, describe, write_manifest
from export.proof import prove
from export.quantization import quantize
from export.small_tables import with_small_tables
from export.tracing import ExportError, trace_all
from export.weights import store_weights
from model.checkpoint import TOKENIZER, Checkpoint, load_checkpoint
from model.networks.transformer import Transformer, TransformerClassifier


def export(checkpoint_dir: Path, out: Path, precision: Precision) -> list[str]:
    """Write the artifact and prove it; `out` appears, or is replaced, only after that.

    Returns:
        What the proof measured, one line each.

    Raises:
        ExportError: `out` is there and is no artifact, such models are not served, or a graph could not be made.
        ProofError: the artifact does not do what the checkpoint does.
        CheckpointError, ConfigError: the checkpoint cannot be used.
    """
    if out.exists() and not (out / MANIFEST).is_file():
        raise ExportError(f"{out} is in the way: it is not an artifact, so it is not replaced")
    checkpoint = load_checkpoint(checkpoint_dir)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as workplace:
        new, old = Path(workplace) / "new", Path(workplace) / "old"
        new.mkdir()
        manifest = write(checkpoint_dir, checkpoint, precision, new)
        measured = prove(new, manifest, checkpoint)
        if out.exists():
            out.rename(old)
        new.rename(out)
    return measured


def write(checkpoint_dir: Path, checkpoint: Checkpoint, precision: Precision, directory: Path) -> Manifest:
    """Every file of the artifact into an empty directory, without proof: the same bytes for the same checkpoint."""
    shutil.copyfile(checkpoint_dir / TOKENIZER, directory / TOKENIZER)
    models = graphs(served_model(checkpoint), precision)
    store_weights(models.values(), directory)
    for name, graph in models.items():
        (directory / name).write_bytes(ir.to_proto(graph).SerializeToString(deterministic=True))
    manifest = describe(checkpoint, precision, directory)
    write_manifest(manifest, directory)
    return manifest


def served_model(checkpoint: Checkpoint) -> Transformer | TransformerClassifier:
    """The checkpoint's model, if an artifact can be made of it.

    Raises:
        ExportError: it is of another kind.
    """
    if not isinstance(checkpoint.model, Transformer | TransformerClassifier):
        task = checkpoint.config.model.task.replace("_", " ")
        raise ExportError(f"{task} models are not served: only Transformers for translation and classification are")
    return checkpoint.model


def graphs(model: Transformer | TransformerClassifier, precision: Precision) -> dict[str, ir.Model]:
    """The model's graphs at a precision, by file name.

    Raises:
        ExportError: a graph could not be made, or hard attention was to be rounded.
    """
    if model.config.attention == "hard" and precision != "fp32":
        raise ExportError(
            f"hard attention exports as fp32 alone: where two keys score nearly the same, {precision} would choose the "
            "other one, and all that follows would differ"
        )
    traced = trace_all(in_float16(model) if precision == "fp16" else with_small_tables(model, precision))
    if precision == "int8":
        for name, limits in activation_limits(traced, model).items():
            quantize(traced[name], limits)
    return traced


def in_float16(model: Transformer | TransformerClassifier) -> Transformer | TransformerClassifier:
    """A copy with weights, activations and caches in float16.

    In float32 are still: the statistics of layer normalization (its operator's default), softmax inside CUDA's fused
    attention, log-probabilities (cast in the graph), and what the classifier adds up to logits, with what tells one
    region from another (here).
    """
    half = copy.deepcopy(model).half()
    if isinstance(half, TransformerClassifier):
        half.output.float()
        if half.regions is not None:
            half.regions.float()
            half.regions.embedding.tokens.half()
            half.regions.labelled_embedding.tokens.half()
    return half
