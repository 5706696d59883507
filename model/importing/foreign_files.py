"""Files and models that are not read, and what to bring instead."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.importing.json_files import parsed_json

ADAPTER = "adapter_config.json"
WEIGHTS_ALONE = "weights alone: bring the directory with config.json and the tokenizer too"

FOREIGN_SUFFIXES: Mapping[str, str] = {
    ".gguf": "a model of llama.cpp (GGUF): bring the one that it was made of",
    ".onnx": "a graph (ONNX): bring the model that it was made of",
    ".h5": "a model of TensorFlow: bring the one of PyTorch",
    ".msgpack": "a model of JAX: bring the one of PyTorch",
    ".ot": "a model of Rust: bring the one of PyTorch",
    **dict.fromkeys((".safetensors", ".bin", ".pt", ".pth", ".ckpt"), WEIGHTS_ALONE),
}
"""What files are that cannot be read alone, by their suffixes."""
ARCHIVES = (".zip", ".argosmodel", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")

READS_OTHERS: Mapping[str, tuple[str, ...]] = {
    "images": ("image_size", "patch_size", "num_channels", "vision_config"),
    "sound": ("num_mel_bins", "feat_extract_norm", "audio_config", "sampling_rate"),
}
"""Settings of models that read something else than texts."""
DECODERS = ("ForCausalLM", "LMHeadModel")


def what_is(path: Path) -> str | None:
    """Return what a file is that cannot be read alone, by its name."""
    return FOREIGN_SUFFIXES.get(path.suffix.lower())


def foreign_files(directory: Path) -> str:
    """Return what a directory has instead of a model, to end a sentence with; empty if that is unknown."""
    path = directory / ADAPTER
    if path.is_file():
        base = _read(path).get("base_model_name_or_path", "its base model")
        return f"; {ADAPTER} says that it is an adapter (LoRA): merge it into {base} first (merge_and_unload of peft)"
    for path in sorted(directory.iterdir()):
        if path.is_symlink() and not path.exists():
            return f"; {path.name} is a link to a file that is missing"
        if path.is_dir():
            continue
        what = "an archive: unpack it first" if path.suffix.lower() in ARCHIVES else what_is(path)
        if what:
            return f"; {path.name} is {what}"
    return ""


def reason_against(config: Mapping[str, Any], named: tuple[str, ...]) -> str:
    """Return why a model cannot be read by what its config.json has, to end a sentence with; empty if it is unknown.

    Args:
        named: its classes in transformers.
    """
    for what, settings in READS_OTHERS.items():
        if any(setting in config for setting in settings):
            return f": it reads {what}"
    if any(name.endswith(DECODERS) for name in named):
        return ": it is a decoder alone, and translators, classifiers and encoders of texts are served"
    return ""


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parsed_json(path)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
