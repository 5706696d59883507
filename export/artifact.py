"""Export of a checkpoint directory, or of an artifact, to an artifact directory: all or nothing."""

import gc
import json
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir
import torch
from torch import Tensor, nn

from export.calibration import ServedModel, calibration_sources
from export.copying import copy_model, half_without_large_numbers
from export.dense import Int8Embedding, Int8Linear
from export.description import describe
from export.nearness import card_with, measure
from export.proof import prove
from export.quantization import quantize_model
from export.reading import Reading
from export.rehearsal import rehearse_float16
from export.replacing import refuse_other_model
from export.slots import find_slots
from export.tracing import ExportError, named_tensors, trace_all
from manifest.file import read_manifest, write_manifest
from manifest.layout import MANIFEST, TOKENIZER, VOCABULARY, WEIGHTS
from manifest.schema import MAX_BEAM_SIZE, Manifest, Nearness, Precision, Provider
from model.checkpoint import ALIGNMENT, CARD, EVALUATION, TRAINING, Checkpoint, load_checkpoint
from model.config import CONFIG
from model.heap import keep_large_blocks_apart
from model.networks.transformer import TransformerClassifier, TransformerEncoder
from model.progress import step
from model.recipe import RECIPE
from model.weights import write_weights

COPIED_FILES = (CONFIG, RECIPE, TRAINING, EVALUATION, ALIGNMENT, CARD)
"""Files that are copied from the checkpoint, where it has them, for `model` and for people."""
LEAST = {"translation": 0.9, "classification": 0.95, "embedding": 0.99}
"""Nearness to the model in float32 that is asked for by default: shares of the same next tokens and labels, and a
cosine. Trained models have more with all layers in int8 (docs/models.md)."""


def export(
    checkpoint_dir: Path,
    out: Path,
    precision: Precision,
    texts: Sequence[str] = (),
    overwrite: bool = False,
    least: float | None = None,
    everything: bool = False,
) -> list[str]:
    """Write the artifact and prove it; `out` appears, or is replaced, only after that. It may be the checkpoint itself.

    Files that the owner of an artifact at `out` added to it are kept.

    Args:
        texts: texts to calibrate int8 with, in the first source language of a translator; by default some of our own.
        overwrite: whether the artifact of another model is replaced.
        least: the nearness to the model in float32 that is asked for; by default that of `LEAST`. Layers stay in
            float32 until the model is that near.
        everything: whether to prove graphs too that this machine does not run.

    Returns:
        How near the artifact is, and the measurements of the proof, one per line.

    Raises:
        ExportError: `out` exists and is no artifact of this model, models of this kind are not served, weights are not
            finite, or a graph could not be made.
        ProofError: the artifact does not compute what the checkpoint does.
        CheckpointError, ConfigError: the checkpoint cannot be used.
    """
    if out.exists() and not (out / MANIFEST).is_file():
        raise ExportError(f"{out} exists and is not an artifact; only an artifact is replaced")
    keep_large_blocks_apart()
    step("reading weights")
    checkpoint = load_checkpoint(checkpoint_dir)
    if out.exists() and not overwrite:
        refuse_other_model(checkpoint, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as workplace:
        new, old = Path(workplace) / "new", Path(workplace) / "old"
        new.mkdir()
        reading = Reading(served(checkpoint), calibration_sources(checkpoint, texts))
        manifest = write(checkpoint_dir, checkpoint, precision, new, reading, least)
        gc.collect()  # traced models are kept alive by reference cycles
        measured = prove(new, manifest, checkpoint, everything)
        if (before := exported_before(checkpoint_dir, precision)) is None:
            manifest = measured_manifest(new, manifest, reading, everything)
        else:
            manifest = manifest.model_copy(update={"nearness": before.nearness})
        write_manifest(manifest, new)
        measured = [f"{provider}: {each.line()}" for provider, each in manifest.nearness.items()] + measured
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


def exported_before(directory: Path, precision: Precision) -> Manifest | None:
    """Return the manifest of an artifact that is exported again at the same precision; None of anything else.

    What is known of the original is kept: it cannot be measured on rounded weights.
    """
    if not (directory / MANIFEST).is_file():
        return None
    manifest = read_manifest(directory)
    return manifest if manifest.precision == precision else None


def measured_manifest(directory: Path, manifest: Manifest, reading: Reading, everything: bool) -> Manifest:
    """Measure how near an artifact is; return its manifest with that, and write it into its card."""
    step("measuring how near the artifact is")
    nearness = dict(manifest.nearness)
    for provider, rehearsed in manifest.nearness.items():
        if everything or provider == "cpu":
            known = rehearsed.model_dump(include={"precision", "float_layers"})
            nearness[provider] = measure(directory, manifest, provider, reading).model_copy(update=known)
    manifest = manifest.model_copy(update={"nearness": nearness})
    card = directory / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    card.write_text(card_with(text, manifest), encoding="utf-8")
    return manifest


def keep_owners_files(old: Path, new: Path) -> None:
    """Copy the files of an artifact that are not its own: its owner put them there."""
    files_of_ours = {*json.loads((old / MANIFEST).read_text(encoding="utf-8"))["files"], *COPIED_FILES, MANIFEST}
    for path in sorted(old.rglob("*")):
        place = path.relative_to(old)
        if path.is_file() and place.as_posix() not in files_of_ours:
            (new / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, new / place)


def write(
    checkpoint_dir: Path,
    checkpoint: Checkpoint,
    precision: Precision,
    directory: Path,
    reading: Reading | None = None,
    least: float | None = None,
) -> Manifest:
    """Write every file of the artifact into an empty directory; the same checkpoint gives the same bytes."""
    shutil.copyfile(checkpoint_dir / TOKENIZER, directory / TOKENIZER)
    for name in (*COPIED_FILES, VOCABULARY):
        if (checkpoint_dir / name).is_file():
            shutil.copyfile(checkpoint_dir / name, directory / name)
    reading = reading or Reading(served(checkpoint), calibration_sources(checkpoint))
    models = served_models(checkpoint, precision, reading, least, exported_before(checkpoint_dir, precision))
    step("writing weights")
    write_weights(directory / WEIGHTS, kept_tensors(models["cpu"], precision))
    graphs: dict[str, ir.Model] = {}
    for provider, model in models.items():
        step(f"tracing the graphs for {provider}")
        graphs |= {f"{provider}/{name}": graph for name, graph in trace_all(model).items()}
    for name, graph in graphs.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(ir.to_proto(graph).SerializeToString(deterministic=True))
    manifest = describe(checkpoint, precision, directory, graphs)
    step("looking for words that are copied")
    manifest = manifest.model_copy(update={"slots": find_slots(directory, manifest, checkpoint)})
    write_manifest(manifest, directory)
    return manifest.model_copy(update={"nearness": {name: described(model, reading) for name, model in models.items()}})


def served(checkpoint: Checkpoint) -> ServedModel:
    """Return the model of a checkpoint. Raises ExportError: models of this kind are not served, or its weights are not
    finite."""
    model = checkpoint.model
    if not isinstance(model, ServedModel):
        task = checkpoint.config.model.task.replace("_", " ")
        raise ExportError(
            f"{task} models cannot be served; Transformers for translation, classification and embedding can"
        )
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not all(map(math.isfinite, tensor.aminmax())):
            raise ExportError(f"`{name}` in {WEIGHTS} has numbers that are not finite (NaN or infinity)")
    return model


def served_models(
    checkpoint: Checkpoint,
    precision: Precision,
    reading: Reading | None = None,
    least: float | None = None,
    before: Manifest | None = None,
) -> dict[Provider, ServedModel]:
    """Return the model as the graphs of each provider compute it: float32 or int8 on a CPU, float16 on CUDA.

    Where float16 changes more than is asked for, or overflows, there are no graphs for CUDA: the service then computes
    on the CPU. ONNX Runtime's attention over caches has no float32 on CUDA.

    Args:
        before: the manifest of the artifact that is exported again; its precisions are kept.

    Raises:
        ExportError: models of this kind are not served, or not at this precision.
    """
    model = served(checkpoint)
    if (beam_size := checkpoint.config.decoding.beam_size) > MAX_BEAM_SIZE:
        raise ExportError(f"`decoding.beam_size` is {beam_size}; it must be at most {MAX_BEAM_SIZE}")
    if model.config.attention == "hard":
        if precision == "fp32":
            return {"cpu": model}
        raise ExportError(
            f"hard attention can only be exported as fp32: where two keys score nearly the same, {precision} could "
            "choose the other one, and everything after it would differ"
        )
    reading = reading or Reading(model)
    least = LEAST[model.config.task] if least is None else least
    half = to_float16(model)
    if before is not None:
        is_near = "cuda" in before.providers
    else:
        step("trying float16")
        reading.half = reading.nearness(rehearse_float16(model, half))
        is_near = reading.half.value >= least
    cpu = quantize_model(model, checkpoint.stored, reading, least) if precision == "int8" else model
    return {"cpu": cpu, "cuda": half} if is_near else {"cpu": cpu}


def described(model: ServedModel, reading: Reading) -> Nearness:
    """Return the precision and float layers of a model that is served, and its nearness as far as it was rehearsed."""
    modules = dict(model.named_modules())
    in_bytes = any(isinstance(module, Int8Linear | Int8Embedding) for module in modules.values())
    in_floats = [name for name, module in modules.items() if isinstance(module, nn.Linear | nn.Embedding) and in_bytes]
    precision: Precision = "int8" if in_bytes else "fp16" if next(model.parameters()).dtype == torch.float16 else "fp32"
    known = reading.half if precision == "fp16" else None
    return (known or Nearness(of=0)).model_copy(update={"precision": precision, "float_layers": tuple(in_floats)})


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
        halves = {name: kept[name].half() for name in weights}
        kept |= {name: half for name, half in halves.items() if half.isfinite().all()}
    return kept
