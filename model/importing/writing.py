"""Writes an imported model as a checkpoint: whole, or not at all."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

from model.checkpoint import ALIGNMENT, CARD, EVALUATION, save_checkpoint
from model.config import ConfigError, load_config
from model.identity import HOW_TO_REPLACE, differences
from model.importing.card import card_of
from model.importing.imported import ImportedModel, ModelImportError, in_sentences, in_words
from model.progress import step


def refuse_what_is_no_import(checkpoint: Path) -> None:
    """Refuse to write where something is that no import wrote. Raises ModelImportError: there is such a thing."""
    if not checkpoint.exists():
        return
    try:
        if load_config(checkpoint).provenance is not None:
            return
    except (ConfigError, OSError):
        pass
    raise ModelImportError(f"{checkpoint} already exists, and is no imported model; name another directory")


def refuse_other_model(imported: ImportedModel, checkpoint: Path) -> None:
    """Refuse to replace an earlier import of another model. Raises ModelImportError: there is one."""
    if not checkpoint.exists():
        return
    try:
        other = differences(checkpoint, imported.config, imported.weights)
    except (ConfigError, SafetensorError, OSError) as error:
        other = [f"weights that cannot be read ({in_words(error)})"]
    if other:
        raise ModelImportError(f"{checkpoint} already exists with another model: {'; '.join(other)}; {HOW_TO_REPLACE}")


def write_checkpoint(imported: ImportedModel, checkpoint: Path) -> None:
    """Write a checkpoint, in place of an earlier one. If that fails nothing is left, and the earlier one stays. Raises
    ModelImportError: it cannot be written."""
    step(f"writing {checkpoint}")
    with (
        _parents(checkpoint),
        in_sentences(f"cannot write {checkpoint}"),
        tempfile.TemporaryDirectory(dir=checkpoint.parent, prefix=f".{checkpoint.name}.") as workplace,
    ):
        new = Path(workplace) / "new"
        save_checkpoint(new, imported.config, imported.weights, imported.tokenizer, imported.vocabulary, dtype=None)
        (new / CARD).write_text(card_of(imported.config, imported.notes), encoding="utf-8")
        if imported.alignment is not None:
            choice = imported.alignment.model_dump_json()
            (new / ALIGNMENT).write_text(f'{{"choice": {choice}}}\n', encoding="utf-8")
        if imported.evaluation:
            (new / EVALUATION).write_text(json.dumps(imported.evaluation, indent=2) + "\n", encoding="utf-8")
        if checkpoint.exists():
            checkpoint.rename(Path(workplace) / "former")
        new.rename(checkpoint)


@contextmanager
def _parents(checkpoint: Path) -> Iterator[None]:
    """Create missing parents of a directory; delete them again if it was not written."""
    missing = [parent for parent in checkpoint.parents if not parent.exists()]
    try:
        with in_sentences(f"cannot create {checkpoint.parent}"):
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise
