"""Which model a directory has: another one must not take its place unnoticed."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from manifest.layout import WEIGHTS
from model.config import ClassifierConfig, Config, TransformerConfig, load_config

HOW_TO_REPLACE = "`--overwrite` replaces it (`make model OVERWRITE=1`)"
HALF_PRECISION = 1e-3
"""Error of a number in float16, relative to the number, or absolute if it is small."""


def differences(directory: Path, config: Config, weights: Mapping[str, Tensor]) -> list[str]:
    """Return how the model in a directory differs from another one, a phrase each; empty if both are the same.

    A model that was trained here may have other weights than before, as it is trained again. An imported one is the
    same only if its weights are.

    Raises:
        ConfigError, SafetensorError, OSError: the directory has no model that can be read.
    """
    before, now = _facts(load_config(directory)), _facts(config)
    vectors = _vectors(directory / WEIGHTS)
    other = [
        f"{fact} {before.get(fact, 'none')} instead of {now.get(fact, 'none')}"
        for fact in {**before, **now}
        if before.get(fact) != now.get(fact)
    ]
    if not other and config.provenance is not None and _differ(vectors, weights):
        return ["other weights"]
    return other


def _facts(config: Config) -> dict[str, str]:
    model, provenance = config.model, config.provenance
    facts = {"the name": config.name, "the task": model.task}
    if isinstance(model, TransformerConfig):
        sources, targets = (", ".join(language.code for language in side) for side in (model.sources, model.targets))
        facts["the languages"] = f"{sources} to {targets}"
    if isinstance(model, ClassifierConfig):
        facts["the labels"] = ", ".join(model.labels)
    if provenance is not None:
        facts["the origin"] = f"{provenance.source} ({provenance.family})"
    return facts


def _vectors(path: Path) -> dict[str, Tensor]:
    """One-dimensional tensors suffice to compare models: none of these is stored in int8."""
    with safe_open(path, "pt") as file:
        names = [name for name in file.keys() if len(file.get_slice(name).get_shape()) == 1]  # noqa: SIM118
        return {name: file.get_tensor(name) for name in names}


def _differ(stored: Mapping[str, Tensor], vectors: Mapping[str, Tensor]) -> bool:
    """Vectors may differ by as much as a precision changes them."""
    return any(
        name not in stored
        or stored[name].shape != vector.shape
        or not torch.allclose(stored[name].float(), vector.float(), rtol=HALF_PRECISION, atol=HALF_PRECISION)
        for name, vector in vectors.items()
        if vector.ndim == 1
    )
