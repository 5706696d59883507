"""Weights in directories of Hugging Face: safetensors, or PyTorch's older .bin, in one file or several."""

import zipfile
from pathlib import Path, PurePath
from pickle import UnpicklingError

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from model.importing.foreign_files import foreign_files
from model.importing.imported import ModelImportError, in_sentences
from model.importing.json_files import parsed_json
from model.importing.tensor_names import tensors_of, without_wrappers
from model.progress import advance, step

WEIGHTS_FILES = ("model.safetensors", "pytorch_model.bin")
"""Files in the order of preference; each may be an index of several files instead."""
SUFFIXES = (".safetensors", ".bin")
INDEX = ".index.json"
LFS_POINTER = b"version https://git-lfs"


def read_tensors(directory: Path) -> dict[str, Tensor]:
    """Return every tensor by its name, as it is stored. Raises ModelImportError: a file is missing or damaged."""
    paths, places, tensors = weights_files(directory), dict[str, Path](), dict[str, Tensor]()
    step("reading weights", total=sum(path.stat().st_size for path in paths))
    for path in paths:
        for name, tensor in _read_file(path).items():
            if tensor.is_complex() or (tensor.is_floating_point() and tensor.itemsize == 1):
                kind = str(tensor.dtype).removeprefix("torch.")
                raise ModelImportError(
                    f"{path.name} has {kind} numbers in {name}: import the model before quantization"
                )
            if name in tensors and not torch.equal(tensors[name], tensor):
                raise ModelImportError(f"{places[name].name} and {path.name} have {name}, and it differs")
            tensors[name], places[name] = tensor, path
        advance(path.stat().st_size)
    return without_wrappers(tensors)


def tensor_names(directory: Path) -> set[str]:
    """Return the names of the tensors, as `read_tensors` does; safetensors are not read for them."""
    paths = weights_files(directory)
    if any(path.suffix != ".safetensors" for path in paths):
        return {*read_tensors(directory)}
    return {*without_wrappers({name: torch.empty(0) for path in paths for name in _names(path)})}


def weights_name(directory: Path) -> str:
    """Return the name of the file that holds the weights, or lists the files."""
    return next((name for name in (*WEIGHTS_FILES, *_index_names()) if (directory / name).is_file()), "the weights")


def _index_names() -> list[str]:
    return [f"{name}{INDEX}" for name in WEIGHTS_FILES]


def weights_files(directory: Path) -> list[Path]:
    """Return the files that hold the weights. Raises ModelImportError: a file is missing."""
    for name in WEIGHTS_FILES:
        if (directory / name).is_file():
            return [directory / name]
        if (directory / f"{name}{INDEX}").is_file():
            return _indexed(directory / f"{name}{INDEX}")
    shards = sorted(path.name for path in directory.glob("*-of-*.*") if path.suffix in SUFFIXES)
    if shards:
        raise ModelImportError(f"the index of {shards[0]} is missing: {' or '.join(_index_names())}")
    others = foreign_files(directory)
    raise ModelImportError(f"{directory} has no weights: {' or '.join(WEIGHTS_FILES)} is needed{others}")


def _indexed(index: Path) -> list[Path]:
    try:
        names = sorted(set(parsed_json(index)["weight_map"].values()))
        paths = [index.parent / PurePath(name).name for name in names]  # beside the index, whatever it says
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelImportError(f"{index} must map weights to files in `weight_map`: {error!r}") from error
    for path in paths:
        if not path.is_file():
            raise ModelImportError(f"{path} is missing; {index.name} names it")
    return paths


def _read_file(path: Path) -> dict[str, Tensor]:
    _refuse_pointer(path)
    with in_sentences(f"{path} is damaged, or holds no weights"):
        if path.suffix == ".safetensors":
            return load_file(path)
        # Mapped into memory, so that the tensors are not copied; only files of old versions of PyTorch are no zips.
        try:
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        except UnpicklingError:  # which advises to run the code in the file
            raise ValueError("it must be of PyTorch, and have nothing but tensors") from None
        return tensors_of(content)


def _names(path: Path) -> list[str]:
    _refuse_pointer(path)
    with in_sentences(f"{path} is damaged, or holds no weights"), safe_open(path, "pt") as file:
        return list(file.keys())


def _refuse_pointer(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ModelImportError(f"{path} is only a Git LFS pointer: run `git lfs pull`")
