"""Weights in directories of Hugging Face: safetensors, or PyTorch's older .bin, in one file or several."""

import json
import pickle
import zipfile
from pathlib import Path, PurePath

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from model.importing.imported import ModelImportError

WEIGHTS_FILES = ("model.safetensors", "pytorch_model.bin")
"""Files in the order of preference; each may be an index of several files instead."""
INDEX = ".index.json"
LFS_POINTER = b"version https://git-lfs"


def read_tensors(directory: Path) -> dict[str, Tensor]:
    """Return every tensor by its name, as it is stored.

    Raises:
        ModelImportError: a file is missing or damaged.
    """
    tensors: dict[str, Tensor] = {}
    for path in weights_files(directory):
        tensors |= _read_file(path)
    return tensors


def weights_files(directory: Path) -> list[Path]:
    """Return the files that hold the weights.

    Raises:
        ModelImportError: a file is missing.
    """
    for name in WEIGHTS_FILES:
        if (directory / name).is_file():
            return [directory / name]
        if (directory / f"{name}{INDEX}").is_file():
            return _indexed(directory / f"{name}{INDEX}")
    raise ModelImportError(f"{directory} has no weights: {' or '.join(WEIGHTS_FILES)} is needed")


def _indexed(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        paths = [index.parent / PurePath(name).name for name in names]  # beside the index, whatever it says
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelImportError(f"{index} must map weights to files in `weight_map`: {error!r}") from error
    for path in paths:
        if not path.is_file():
            raise ModelImportError(f"{path} is missing; {index.name} names it")
    return paths


def _read_file(path: Path) -> dict[str, Tensor]:
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ModelImportError(f"{path} is only a Git LFS pointer: run `git lfs pull`")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        # Mapped into memory, so that the tensors are not copied; only files of old versions of PyTorch are no zips.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        return {str(name): tensor for name, tensor in content.items() if isinstance(tensor, Tensor)}
    except (SafetensorError, RuntimeError, EOFError, pickle.UnpicklingError, AttributeError, ValueError) as error:
        raise ModelImportError(f"{path} is damaged, or holds no weights: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error: PyTorch adds advice that nobody should follow."""
    return next(iter(str(error).splitlines()), type(error).__name__)
