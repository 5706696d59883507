"""The systems of the lecture, each a configuration of model/configs/lecture with one change."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from benchmarks.trained import quick_experiment
from benchmarks.workspace import ROOT, workspace
from model.config import CONFIG
from model.recipe import RECIPE, Experiment

CONFIGS = ROOT / "model" / "configs" / "lecture"

Family = Literal["translation", "language-model", "classification"]


@dataclass(frozen=True)
class System:
    """A system, one row of the table."""

    name: str
    section: str
    """Section of the lecture."""
    changes: dict[str, Any] = field(hash=False)
    """Changes of the family's `model` section; with a `task` they replace it."""
    family: Family = "translation"

    @property
    def slug(self) -> str:
        """Name for files."""
        return re.sub("[^a-z0-9]+", "-", f"{self.family} {self.name}".lower())

    def content(self) -> dict[str, Any]:
        """Return configuration and recipe as in YAML."""
        content: dict[str, Any] = {}
        for file in (CONFIG, RECIPE):
            content |= yaml.safe_load((CONFIGS / self.family / file).read_text(encoding="utf-8"))
        model = self.changes if "task" in self.changes else content["model"] | self.changes
        return content | {"name": self.slug, "model": model}

    def experiment(self, quick: bool) -> Experiment:
        """Return the checked experiment; a quick one has few steps and rows."""
        experiment = Experiment.model_validate(self.content())
        return quick_experiment(experiment) if quick else experiment

    def directory(self, quick: bool) -> Path:
        """Return the directory of run and checkpoint."""
        return workspace("lecture", "quick" if quick else "full", self.slug)


NARROW_SWIGLU: dict[str, Any] = {"activation": "swiglu", "d_ff": 344}  # three matrices of two thirds
RECURRENT: dict[str, Any] = {
    "task": "recurrent_translation",
    "source": "en",
    "target": "fr",
    "vocab_size": 4000,
    "d_model": 256,  # about as many parameters as the Transformer
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
    "max_positions": 512,
    "dropout": 0.1,
}
RECURRENT_ATTENTION = {
    "none": (" without attention", "RNN Decoder"),
    "before_cell": (", attention before the cell", "RNN Decoder with attention"),
    "after_cell": (", attention after the cell", "Queries, keys and values"),
}

SYSTEMS = (
    System("lecture's Transformer", "The Transformer", {}),
    System("1 head", "Queries, keys and values", {"n_heads": 1}),
    System("2 heads", "Queries, keys and values", {"n_heads": 2}),
    System("8 heads", "Queries, keys and values", {"n_heads": 8}),
    System("beta 0.02", "Soft Attention", {"beta": 0.02}),
    System("beta 1", "Soft Attention", {"beta": 1.0}),
    System("hard attention", "Hard Attention", {"attention": "hard"}),
    System("wider encoder, 192", "Queries, keys and values", {"d_encoder": 192}),
    System("no positions", "Positional encoding", {"positions": "none"}),
    System("learned positions", "Positional encoding", {"positions": "learned"}),
    System("rotary positions", "Positional encoding", {"positions": "rotary"}),
    System("GELU", "1D-convolution", {"activation": "gelu"}),
    System("SwiGLU", "1D-convolution", NARROW_SWIGLU),
    System("pre-norm", "Add, Norm", {"norm": "pre"}),
    System("pre-norm, rotary, SwiGLU", "Add, Norm", NARROW_SWIGLU | {"norm": "pre", "positions": "rotary"}),
    *(
        System(f"{cell.upper()}{form}", section, RECURRENT | {"cell": cell, "attention": attention})
        for cell in ("rnn", "gru", "lstm")
        for attention, (form, section) in RECURRENT_ATTENTION.items()
    ),
    System("decoder only, sinusoidal", "Word Language Models", {}, "language-model"),
    System("decoder only, rotary", "Word Language Models", {"positions": "rotary"}, "language-model"),
    System("decoder only, no positions", "Word Language Models", {"positions": "none"}, "language-model"),
    System("encoder only, max pooling", "Code Summary", {}, "classification"),
    System("encoder only, mean pooling", "Code Summary", {"pooling": "mean"}, "classification"),
    System("encoder only, no positions", "Positional encoding", {"positions": "none"}, "classification"),
)
