"""Export of a checkpoint directory, or of an artifact, to an artifact directory: all or nothing."""

import gc
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir
from torch import Tensor

from export.calibration import ServedModel, calibration_sources
from export.copying import copy_model, half_without_large_numbers
from export.manifest import MAX_BEAM_SIZE, Manifest, Precision, Provider, describe, write_manifest
from export.proof import prove
from export.quantization import quantize_model
from export.replacing import refuse_other_model
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
from model.heap import keep_large_blocks_apart
from model.networks.transformer import TransformerClassifier, TransformerEncoder
from model.recipe import RECIPE
from model.weights import WEIGHTS, write_weights

COPIED_FILES = (CONFIG, RECIPE, TRAINING, EVALUATION, ALIGNMENT, CARD)
"""Files that are copied from the checkpoint, where it has them, for `model` and for people."""


def export(
    checkpoint_dir: Path, out: Path, precision: Precision, texts: Sequence[str] = (), overwrite: bool = False
) -> list[str]:
    """Write the artifact and prove it; `out` appears, or is replaced, only after that. It may be the checkpoint itself.

    Files that the owner of an artifact at `out` added to it are kept.

    Args:
        texts: texts to calibrate int8 with, in the first source language of a translator; by default some of our own.
        overwrite: whether the artifact of another model is replaced.

    Returns:
        The measurements of the proof, one per line.

    Raises:
        ExportError: `out` exists and is no artifact of this model, models of this kind are not served, or a graph could
            not be made.
        ProofError: the artifact does not compute what the checkpoint does.
        CheckpointError, ConfigError: the checkpoint cannot be used.
    """
    if out.exists() and not (out / MANIFEST).is_file():
        raise ExportError(f"{out} exists and is not an artifact; only an artifact is replaced")
    keep_large_blocks_apart()
    checkpoint = load_checkpoint(checkpoint_dir)
    if out.exists() and not overwrite:
        refuse_other_model(checkpoint, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as workplace:
        new, old = Path(workplace) / "new", Path(workplace) / "old"
        new.mkdir()
        manifest = write(checkpoint_dir, checkpoint, precision, new, texts)
        gc.collect()  # traced models are kept alive by reference cycles
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
    """Copy the files of an artifact that are not its own: its owner put them there."""
    own = {*json.loads((old / MANIFEST).read_text(encoding="utf-8"))["files"], *COPIED_FILES, MANIFEST}
    for path in sorted(old.rglob("*")):
        place = path.relative_to(old)
        if path.is_file() and place.as_posix() not in own:
            (new / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, new / place)


def write(
    checkpoint_dir: Path, checkpoint: Checkpoint, precision: Precision, directory: Path, texts: Sequence[str] = ()
) -> Manifest:
    """Write every file of the artifact into an empty directory; the same checkpoint gives the same bytes."""
    shutil.copyfile(checkpoint_dir / TOKENIZER, directory / TOKENIZER)
    for name in (*COPIED_FILES, VOCABULARY):
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


def served_models(
    checkpoint: Checkpoint, precision: Precision, texts: Sequence[str] = ()
) -> dict[Provider, ServedModel]:
    """Return the model as the graphs of each provider compute it: float32 or int8 on a CPU, float16 on CUDA.

    Raises:
        ExportError: models of this kind are not served, or not at this precision.
    """
    model = checkpoint.model
    if not isinstance(model, ServedModel):
        task = checkpoint.config.model.task.replace("_", " ")
        raise ExportError(
            f"{task} models cannot be served; Transformers for translation, classification and embedding can"
        )
    if (beam_size := checkpoint.config.decoding.beam_size) > MAX_BEAM_SIZE:
        raise ExportError(f"`decoding.beam_size` is {beam_size}; it must be at most {MAX_BEAM_SIZE}")
    if model.config.attention == "hard":
        if precision == "fp32":
            return {"cpu": model}
        raise ExportError(
            f"hard attention can only be exported as fp32: where two keys score nearly the same, {precision} could "
            "choose the other one, and everything after it would differ"
        )
    cpu = model
    if precision == "int8":
        cpu = quantize_model(model, checkpoint.stored, calibration_sources(checkpoint, texts))
    return {"cpu": cpu, "cuda": to_float16(model)}


def to_float16(model: ServedModel) -> ServedModel:
    """Return a copy with weights, activations and caches in float16, to be traced; its weights may have no numbers.

    Still in float32: the statistics of layer normalization (its operator's default), softmax inside CUDA's fused
    attention, log-probabilities (cast in the graph), a classifier's last layers and an embedding's dense layers (here).
    """
    half = copy_model(model, half_without_large_numbers)
    if isinstance(half, TransformerClassifier):
        half.output.float()
        half.pooler_norm.float()
        if half.pooler is not None:
            half.pooler.float()
    if isinstance(half, TransformerEncoder):
        half.dense.float()
    return half


def kept_tensors(model: ServedModel, precision: Precision) -> dict[str, Tensor]:
    """Return the tensors of weights.safetensors, given the model that a CPU computes."""
    kept = named_tensors(model)
    if precision == "fp16":
        # Tensors that the shape alone determines are no weights, and take little space.
        weights = [name for name in model.state_dict() if kept[name].is_floating_point()]
        kept |= {name: kept[name].half() for name in weights}
    return kept
