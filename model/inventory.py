"""The models on this machine: what `python -m model list` says of artifacts and checkpoints.

Only their small files are read, and sizes are compared, so that a list of large models takes no time. A directory that
cannot be used is listed with what is wrong.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch

from manifest.file import ManifestError, read_manifest
from manifest.layout import MANIFEST, TOKENIZER, WEIGHTS
from manifest.schema import NO_LANGUAGE, Manifest, Nearness
from manifest.sums import FileSum
from model.checkpoint import build_model
from model.config import CONFIG, Config, ConfigError, load_config

CHECKPOINT = "checkpoint"
"""Folder of the trained checkpoint in the directory of a run."""
NAMED = 3
"""Most languages or labels that are named; more are counted."""
PRECISIONS = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "I8": "int8"}


class UnusableError(ValueError):
    """A directory holds no model, or one that is incomplete or damaged; the message says what is wrong."""


@dataclass(frozen=True)
class Listed:
    """A model in a directory.

    Attributes:
        does: its languages, its labels, or its task.
        parameters: number of trained numbers; None if it is not known.
        bytes: size of its files.
        nearness: how near it is to the original in float32; None if it was not measured.
        source: where an imported model came from; None if it was trained with attend.
        problem: why it cannot be used; None if nothing is wrong.
    """

    directory: str
    name: str
    task: str | None = None
    does: str | None = None
    parameters: int | None = None
    bytes: int = 0
    precision: str | None = None
    nearness: str | None = None
    licence: str | None = None
    source: str | None = None
    problem: str | None = None


def inventory(directories: Iterable[Path]) -> list[Listed]:
    """Return the models in directories, or directly below them; in the order of their paths."""
    return [_listed(model) for directory in directories for model in _models_in(directory)]


def default_directories() -> list[Path]:
    """Return the places where `make model` and training put models."""
    directories = [*sorted(Path("artifacts").glob("*/")), *sorted(Path("runs").glob(f"*/{CHECKPOINT}/"))]
    return [path for path in directories if not path.name.startswith(".")]


def _models_in(directory: Path) -> Iterator[Path]:
    below = sorted(path for path in directory.glob("*/") if not path.name.startswith("."))
    if _is_model(directory) or not below:
        yield directory
        return
    for path in below:
        in_run = path / CHECKPOINT
        yield in_run if in_run.is_dir() and not _is_model(path) else path


def _is_model(directory: Path) -> bool:
    return (directory / MANIFEST).is_file() or (directory / CONFIG).is_file()


def _listed(directory: Path) -> Listed:
    name = directory.parent.name if directory.name == CHECKPOINT else directory.name
    try:
        return _artifact(directory) if (directory / MANIFEST).is_file() else _checkpoint(directory)
    except (UnusableError, ConfigError, OSError) as error:
        return Listed(str(directory), name, problem=str(error).splitlines()[0])


def _artifact(directory: Path) -> Listed:
    """Raises UnusableError: the manifest cannot be read, or a file is not as large as it says."""
    try:
        manifest = read_manifest(directory)
    except ManifestError as error:
        raise UnusableError(f"{MANIFEST} cannot be read: {error}; export the model again") from error
    _check_sizes(directory, manifest.files)
    config = _config_beside(directory)
    sources, targets = ([language.code for language in side] for side in (manifest.sources, manifest.targets))
    return Listed(
        directory=str(directory),
        name=manifest.name,
        task=manifest.task,
        does=_does(manifest.task, sources, targets, manifest.labels),
        parameters=manifest.parameters or (_parameters(config) if config else None),
        bytes=_bytes(directory),
        precision=manifest.precision,
        nearness=nearness_of(manifest),
        **_provenance(config),
    )


def _checkpoint(directory: Path) -> Listed:
    """Raises UnusableError, ConfigError: a file is missing or damaged."""
    if not directory.is_dir():
        raise UnusableError("does not exist")
    if not (directory / CONFIG).is_file():
        raise UnusableError(f"is no model: it has neither {MANIFEST} nor {CONFIG}")
    config = load_config(directory)
    for file in (WEIGHTS, TOKENIZER):
        if not (directory / file).is_file():
            raise UnusableError(f"{file} is missing")
    model = config.model
    sides = [getattr(model, side, ()) for side in ("sources", "targets")]
    if not any(sides):
        sides = [[getattr(model, side)] if hasattr(model, side) else [] for side in ("source", "target")]
    sources, targets = ([getattr(language, "code", language) for language in side] for side in sides)
    return Listed(
        directory=str(directory),
        name=config.name,
        task=model.task,
        does=_does(model.task, sources, targets, getattr(model, "labels", ())),
        parameters=_parameters(config),
        bytes=_bytes(directory),
        precision=_stored_precision(directory / WEIGHTS),
        **_provenance(config),
    )


def _check_sizes(directory: Path, files: Mapping[str, FileSum]) -> None:
    for name, expected in files.items():
        path = directory / name
        if not path.is_file():
            raise UnusableError(f"{name} is missing")
        if (size := path.stat().st_size) != expected.bytes:
            raise UnusableError(f"{name} has {size:,} bytes; {MANIFEST} says {expected.bytes:,}")


def _bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _does(task: str, sources: Sequence[str], targets: Sequence[str], labels: Sequence[str]) -> str:
    if list(targets) == [NO_LANGUAGE]:
        return "text to text"
    if sources or targets:
        return f"{_few(sources, 'languages')} to {_few(targets, 'languages')}"
    return _few(labels, "labels") if labels else task.replace("_", " ")


def _few(names: Sequence[str], what: str) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {what}"


def nearness_of(manifest: Manifest) -> str | None:
    """Return how near an artifact is to its model in float32 on a CPU; None if its manifest does not say."""
    nearness = manifest.nearness.get("cpu", Nearness(of=0))
    if nearness.cosine is not None:
        return f"cosine {nearness.cosine:.4f}"
    return f"{100 * nearness.same:.1f} % same" if nearness.same is not None else None


def _config_beside(directory: Path) -> Config | None:
    """Return the configuration of an artifact, which is not needed for serving; None if it cannot be read."""
    try:
        return load_config(directory)
    except (ConfigError, OSError):
        return None


def _provenance(config: Config | None) -> dict[str, str | None]:
    provenance = config.provenance if config else None
    return {"licence": provenance.licence, "source": provenance.source} if provenance else {}


def _parameters(config: Config) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(config).parameters())


def _stored_precision(path: Path) -> str | None:
    """Raises UnusableError: the file is cut off or damaged."""
    with path.open("rb") as file:
        try:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            tensors = [tensor_of for name, tensor_of in header.items() if name != "__metadata__"]
            end = 8 + length + max((tensor["data_offsets"][1] for tensor in tensors), default=0)
            numbers = Counter[str]()
            for tensor in tensors:
                numbers[tensor["dtype"]] += prod(tensor["shape"])
        except (struct.error, ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError) as error:
            raise UnusableError(f"{path.name} is damaged") from error
    if end != path.stat().st_size:
        raise UnusableError(f"{path.name} has {path.stat().st_size:,} bytes; it needs {end:,}")
    (dtype, _), *_ = numbers.most_common(1) or [("", 0)]
    return PRECISIONS.get(dtype, dtype.lower() or None)
