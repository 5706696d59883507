"""Which artifacts an export may replace."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from export.replacing import refuse_other_model
from export.tracing import ExportError
from manifest.layout import TOKENIZER, WEIGHTS
from manifest.schema import Precision
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import Provenance, save_config
from model.weights import read_weights, write_weights
from tests.export.tiny_checkpoints import Kind, MakeArtifact, MakeCheckpoint

PACKAGE = Provenance(source="translate.argosmodel", family="Argos Translate")
Copy = Callable[..., Checkpoint]


@pytest.fixture
def copy(checkpoint: MakeCheckpoint, tmp_path: Path) -> Copy:
    """copy(kind, model, factor, **updates) writes a checkpoint at tmp_path / "out", and returns it."""

    def write(kind: Kind, model: dict[str, Any] | None = None, factor: float = 1, **updates: Any) -> Checkpoint:
        made, out = load_checkpoint(checkpoint(kind)), tmp_path / "out"
        out.mkdir(exist_ok=True)
        config = made.config.model_copy(update=updates)
        save_config(out, config.model_copy(update={"model": config.model.model_copy(update=model or {})}))
        shutil.copy(checkpoint(kind) / TOKENIZER, out)
        weights = read_weights(checkpoint(kind) / WEIGHTS)
        write_weights(out / WEIGHTS, {n: t * factor if t.is_floating_point() else t for n, t in weights.items()})
        return load_checkpoint(out)

    return write


@pytest.mark.parametrize("provenance", [None, PACKAGE])
@pytest.mark.parametrize("kind", ["translation", "mean_classifier"])
def test_the_same_model_is_replaced(copy: Copy, tmp_path: Path, kind: Kind, provenance: Provenance | None) -> None:
    refuse_other_model(copy(kind, provenance=provenance), tmp_path / "out")
    newer = PACKAGE.model_copy(update={"revision": "2", "licence": "MIT"}) if provenance else None
    new = copy(kind, provenance=newer, description="newer")
    copy(kind, provenance=provenance)
    refuse_other_model(new, tmp_path / "out")


def test_a_model_that_was_trained_again_replaces_its_predecessor(copy: Copy, tmp_path: Path) -> None:
    new = copy("translation", factor=1.5)
    copy("translation")
    refuse_other_model(new, tmp_path / "out")


@pytest.mark.parametrize(
    ("kind", "change", "what"),
    [
        ("translation", {"model": {"target": "de"}}, "languages en to fr instead of en to de"),
        ("translation", {"model": {"source": "it"}}, "languages en to fr instead of it to fr"),
        ("translation", {"name": "other"}, "the name translation instead of other"),
        ("translation", {"provenance": PACKAGE}, r"the origin none instead of translate\.argosmodel"),
        ("mean_classifier", {}, "the task translation instead of classification"),
    ],
)
def test_another_model_does_not_take_the_place(
    copy: Copy, tmp_path: Path, kind: Kind, change: dict[str, Any], what: str
) -> None:
    new = copy(kind, **change)
    copy("translation")
    with pytest.raises(ExportError, match=rf"out has another model, with .*{what}.*; `--overwrite` replaces it"):
        refuse_other_model(new, tmp_path / "out")


def test_another_package_of_the_same_name_and_languages_does_not_take_the_place(copy: Copy, tmp_path: Path) -> None:
    new = copy("translation", factor=1.01, provenance=PACKAGE)
    copy("translation", provenance=PACKAGE)
    with pytest.raises(ExportError, match="out has another model, with other weights; `--overwrite` replaces it"):
        refuse_other_model(new, tmp_path / "out")


def test_what_cannot_be_read_is_not_replaced(copy: Copy, tmp_path: Path) -> None:
    new = copy("translation")
    (tmp_path / "out" / "config.yaml").write_text("model: {}")
    with pytest.raises(ExportError, match=r"out has a model that cannot be read \(.*\); `--overwrite` replaces it"):
        refuse_other_model(new, tmp_path / "out")


@pytest.mark.parametrize("precision", ["int8", "fp16"])
def test_a_precision_is_no_other_model(
    copy: Copy, artifact: MakeArtifact, tmp_path: Path, precision: Precision
) -> None:
    new = copy("translation", provenance=PACKAGE)
    (tmp_path / "out" / WEIGHTS).unlink()  # it is mapped into memory
    shutil.copy(artifact("translation", precision) / WEIGHTS, tmp_path / "out")
    refuse_other_model(new, tmp_path / "out")
    refuse_other_model(load_checkpoint(tmp_path / "out"), tmp_path / "out")
