"""Checkpoint directory, or artifact, to artifact directory, all or nothing."""

import gc
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir
from torch import Tensor

from export.calibration import Served, sources
from export.copying import copied
from export.manifest import MAX_BEAM_SIZE, Manifest, Precision, Provider, describe, write_manifest
from export.proof import prove
from export.quantization import in_int8
from export.slots import find_slots
from export.tracing import ExportError, named_tensors, trace_all
from model.checkpoint import (
    ALIGNMENT,
    CARD,
    EVALUATION,
    MANIFEST,
    TOKENIZER,
    TRAINING,
    VOCABULARY,
    Checkpoint,
    load_checkpoint,
)
from model.config import CONFIG
from model.networks.transformer import TransformerClassifier, TransformerEncoder
from model.recipe import RECIPE
from model.weights import WEIGHTS, write_weights

BESIDE = (CONFIG, RECIPE, TRAINING, EVALUATION, ALIGNMENT, CARD)
"""What an artifact has for `model` and for people, where the checkpoint has it."""


def export(checkpoint_dir: Path, out: Path, precision: Precision, texts: Sequence[str] = ()) -> list[str]:
    """Write the artifact and prove it; `out` appears, or is replaced, only after that. It may be the checkpoint itself.

    Files of an artifact at `out` that are nobody's but its owner's stay.

    Args:
        texts: to calibrate int8 with, in the first language that a translator reads; by default some of our own.

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
        manifest = write(checkpoint_dir, checkpoint, precision, new, texts)
        gc.collect()  # models that were traced are held by objects that hold each other
        measured = prove(new, manifest, checkpoint)
        if not out.exists():
            new.rename(out)
            return measured
        keep_owners_files(out, new)
        out.rename(old)
        try:
            new.rename(out)
        except OSError:
            old.rename(out)
            raise
    return measured


def keep_owners_files(old: Path, new: Path) -> None:
    """Copy what lies in an artifact and is none of its own files."""
    own = {*json.loads((old / MANIFEST).read_text(encoding="utf-8"))["files"], *BESIDE, MANIFEST}
    for path in sorted(old.rglob("*")):
        place = path.relative_to(old)
        if path.is_file() and place.as_posix() not in own:
            (new / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, new / place)


def write(
    checkpoint_dir: Path, checkpoint: Checkpoint, precision: Precision, directory: Path, texts: Sequence[str] = ()
) -> Manifest:
    """Every file of the artifact into an empty directory, without proof: the same bytes for the same checkpoint."""
    shutil.copyfile(checkpoint_dir / TOKENIZER, directory / TOKENIZER)
    for name in (*BESIDE, VOCABULARY):
        if (checkpoint_dir / name).is_file():
            shutil.copyfile(checkpoint_dir / name, directory / name)
    models = served_models(checkpoint, precision, texts)
    write_weights(directory / WEIGHTS, kept_tensors(models["cpu"], precision))
    graphs = {
        f"{provider}/{name}": graph for provider, model in models.items() for name, graph in trace_all(model).items()
    }
    for name, graph in graphs.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(ir.to_proto(graph).SerializeToString(deterministic=True))
    manifest = describe(checkpoint, precision, directory, graphs)
    manifest = manifest.model_copy(update={"slots": find_slots(directory, manifest, checkpoint)})
    write_manifest(manifest, directory)
    return manifest


def served_models(checkpoint: Checkpoint, precision: Precision, texts: Sequence[str] = ()) -> dict[Provider, Served]:
    """The model as the graphs of each provider compute it: on a CPU in float32 or int8, on CUDA in float16.

    Raises:
        ExportError: an artifact can be made of no such model, or not at this precision.
    """
    model = checkpoint.model
    if not isinstance(model, Served):
        task = checkpoint.config.model.task.replace("_", " ")
        raise ExportError(
            f"{task} models are not served: only Transformers for translation, classification and embedding are"
        )
    if (beam_size := checkpoint.config.decoding.beam_size) > MAX_BEAM_SIZE:
        raise ExportError(f"its decoding has a beam of {beam_size}, and the widest that is served is {MAX_BEAM_SIZE}")
    if model.config.attention == "hard":
        if precision == "fp32":
            return {"cpu": model}
        raise ExportError(
            f"hard attention exports as fp32 alone: where two keys score nearly the same, {precision} would choose the "
            "other one, and all that follows would differ"
        )
    cpu = in_int8(model, checkpoint.stored, sources(checkpoint, texts)) if precision == "int8" else model
    return {"cpu": cpu, "cuda": in_float16(model)}


def in_float16(model: Served) -> Served:
    """A copy with weights, activations and caches in float16.

    In float32 are still: the statistics of layer normalization (its operator's default), softmax inside CUDA's fused
    attention, log-probabilities (cast in the graph), a classifier's last layers, and what an embedding goes through
    (here).
    """
    half = copied(model, lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)
    if isinstance(half, TransformerClassifier):
        half.output.float()
        if half.pooler is not None:
            half.pooler.float()
    if isinstance(half, TransformerEncoder):
        half.dense.float()
    return half


def kept_tensors(model: Served, precision: Precision) -> dict[str, Tensor]:
    """What weights.safetensors holds, given the model that a CPU computes."""
    kept = named_tensors(model)
    if precision == "fp16":
        # What the shape alone tells is no weight, and costs little.
        weights = [name for name in model.state_dict() if kept[name].is_floating_point()]
        kept |= {name: kept[name].half() for name in weights}
    return kept
