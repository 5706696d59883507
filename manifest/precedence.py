"""Which of several models answers a request that names none, where the settings list no models.

A model without scores always comes last.
"""

from typing import Any

from manifest.schema import Manifest


def better_first(manifest: Manifest) -> tuple[Any, ...]:
    """Return a sort key of translators: small ones come after others, then the larger one comes first."""
    return not _has_scores(manifest), manifest.is_small, -(manifest.parameters or 0), manifest.name


def earlier_first(manifest: Manifest) -> tuple[Any, ...]:
    """Return a sort key of classifiers and encoders: those that were trained here, then by the time of their import.

    Labels and vectors of another model mean something else, so the model that came first goes on answering.
    """
    origin = manifest.origin
    return not _has_scores(manifest), origin is not None, (origin and origin.imported) or "", manifest.name


def _has_scores(manifest: Manifest) -> bool:
    return any(manifest.evaluation.values())
