"""Names of stored tensors, without what training programs put around a model."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

WRAPPERS = ("module", "_orig_mod")
"""First parts of all names: of parallel training, and of torch.compile."""


def without_wrappers(tensors: Mapping[str, Tensor], wrappers: Iterable[str] | None = WRAPPERS) -> dict[str, Tensor]:
    """Return tensors without a first part that all names have.

    Args:
        wrappers: parts that are taken away; None is any part.
    """
    firsts = {name.partition(".")[0] for name in tensors}
    if len(tensors) < 2 or len(firsts) != 1 or not (wrappers is None or firsts <= {*wrappers}):
        return dict(tensors)
    (first,) = firsts
    return without_wrappers({name.removeprefix(f"{first}."): tensor for name, tensor in tensors.items()}, wrappers)


def tensors_of(content: object) -> dict[str, Tensor]:
    """Return the tensors of an unpickled file: its own, or those of the one model in it, as Lightning stores it. Raises
    ValueError: the file has no model, or several."""
    tensors_at_root = _tensors(content)
    if tensors_at_root:
        return tensors_at_root
    nested = {str(name): _tensors(value) for name, value in content.items()} if isinstance(content, Mapping) else {}
    names = [name for name, tensors in nested.items() if tensors]
    if len(names) != 1:
        raise ValueError(f"it must have one model, not {', '.join(names) or 'none'}")
    return without_wrappers(nested[names[0]], wrappers=None)  # its attribute in the program that trained it


def _tensors(content: Any) -> dict[str, Tensor]:
    items = content.items() if isinstance(content, Mapping) else ()
    return {str(name): value for name, value in items if isinstance(value, Tensor)}
