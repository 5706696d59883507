"""How a model is trained, as written in its recipe.yaml: its corpora, and its schedule.

Who serves, evaluates or exports a model does not need to know; who trains one, or writes its card, does.
"""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from model.checked_yaml import Strict, load_yaml, save_yaml
from model.config import ClassifierConfig, Config, ConfigError, RecurrentConfig, TransformerConfig, load_config

RECIPE = "recipe.yaml"

Precision = Literal["32-true", "bf16-mixed"]
Rewrite = Literal[
    "other_names",
    "other_numbers",
    "no_capitals",
    "no_final_punctuation",
    "half_width",
    "kanji_numbers",
    "joined",
    "single_words",
    "lists",
]


class HubSource(Strict):
    """Where `datasets.load_dataset` finds the same corpus, for those who have a network."""

    path: str
    name: str | None = None
    split: str
    columns: tuple[str, str]
    """(source, target) or (label, text) columns; "a.b" reaches into a nested column."""


class DataSource(Strict):
    """One corpus: a TSV file below the data directory, the same on a hub, and what a user must know of its licence."""

    file: str
    own: bool = False
    """Whether the file is one of attend's own, in model/corpora."""
    made_by: str | None = None
    """What made these rows, where that is no longer in the tree: a command or words, and the commit that has it.
    Training leaves them out."""
    hub: HubSource | None = None
    licence: str
    labels: dict[str, str | tuple[str, ...]] | None = None
    """What the labels in the corpus are called in the model, as {"neg": "negative"}; numbers are written as text. One
    may stand for several: its texts are learned with each, so that the model is unsure of their like. Nothing is held
    out of a corpus with such a label."""
    sample: PositiveInt | None = None
    """Train on so many rows, drawn afresh each epoch; test on so many, always the same. None takes all."""
    swap: bool = False
    """The file's second column is the source, the first the target."""
    rewrite: Rewrite | None = None
    """Train on the rows that this applies to, as it rewrites them (model/augmentation/rewriting.py)."""
    merge_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Train on sources cut into smaller pieces: of the merges that make a piece this share is left out (BPE-dropout,
    Provilkov et al. 2020), so that a rare word is known by its parts too. Drawn without a seed when training begins
    and when it is resumed."""
    shortest_crop: PositiveInt | None = None
    """Train on a random piece of each review, at least so many tokens long, and not on the whole; drawn each epoch.
    What says nothing of the label is then seen with all of them."""

    @property
    def has_one_label_each(self) -> bool:
        return all(isinstance(names, str) for names in (self.labels or {}).values())


class DataConfig(Strict):
    train: tuple[DataSource, ...] = Field(min_length=1)
    validation: tuple[DataSource, ...] = ()
    validation_fraction: float = Field(default=0.0, ge=0, lt=0.5)
    """Share of the training rows held out for validation where no validation file is given."""
    test: tuple[DataSource, ...] = ()
    aligned: DataSource | None = None
    """Pairs by which the heads of a translator are compared that align words: neither trained on nor scored. Left out,
    they are the captions of `model.alignment.heads`."""

    def kept(self) -> list[DataSource]:
        """What is trained on: the tree has what makes these rows."""
        return [source for source in self.train if source.made_by is None]

    @model_validator(mode="after")
    def _tested_texts_have_one_label(self) -> Self:
        for source in (*self.validation, *self.test):
            if not source.has_one_label_each:
                raise ValueError(f"{source.file}: a label that stands for several is for training alone")
        return self

    @model_validator(mode="after")
    def _aligned_pairs_are_for_nothing_else(self) -> Self:
        if self.aligned is not None:
            for name, sources in (("train", self.train), ("validation", self.validation), ("test", self.test)):
                if self.aligned.file in {source.file for source in sources}:
                    raise ValueError(f"aligned: {self.aligned.file} is in {name} too")
        return self


class TrainingConfig(Strict):
    batch_tokens: PositiveInt
    """Padded tokens in one batch: its longest sequence (of either side) times its rows."""
    max_steps: PositiveInt
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon` orthogonalizes the updates of the weight matrices (Jordan et al. 2024); the rest still takes AdamW."""
    learning_rate: PositiveFloat
    """Peak rate of AdamW: reached after the warm-up, held, and brought to zero over the last `decay_steps`."""
    muon_learning_rate: PositiveFloat = 0.01
    warmup_steps: PositiveInt
    decay_steps: PositiveInt
    weight_decay: float = Field(default=0.01, ge=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    clip_norm: PositiveFloat = 1.0
    average_checkpoints: PositiveInt = 1
    """How many of the last checkpoints are averaged into the final weights."""
    checkpoint_every_steps: PositiveInt = 500
    precision: Precision = "bf16-mixed"
    """`bf16-mixed` is `32-true` on a CPU whose products are no faster in bf16."""
    fused_attention: bool = True
    """PyTorch's fused kernel; the plain products are twice as fast on a CPU while sequences are short."""
    seed: int = 1

    @model_validator(mode="after")
    def _last_step_is_kept(self) -> Self:
        if self.max_steps % self.checkpoint_every_steps != 0:
            raise ValueError(
                f"max_steps {self.max_steps} is not a multiple of checkpoint_every_steps "
                f"{self.checkpoint_every_steps}: the last steps would be lost"
            )
        return self


class Recipe(Strict):
    """How a model is trained."""

    notes: str = ""
    """What a user must know of it that nothing else tells, for the card."""
    data: DataConfig
    training: TrainingConfig

    def licences(self) -> dict[str, str]:
        """Of each corpus that is trained on, by its file."""
        return {source.file: source.licence for source in self.data.train}


class Experiment(Config, Recipe):
    """A model and its recipe: all that `python -m model train` needs."""

    @model_validator(mode="after")
    def _one_label_of_all_is_trained(self) -> Self:
        if isinstance(self.model, ClassifierConfig) and self.model.label_activation != "softmax":
            raise ValueError("rows have one label: a classifier that says of each by itself cannot be trained")
        return self

    @model_validator(mode="after")
    def _translators_alone_drop_merges(self) -> Self:
        sources = [*self.data.train, *self.data.validation, *self.data.test]
        if not isinstance(self.model, TransformerConfig | RecurrentConfig) and any(s.merge_dropout for s in sources):
            raise ValueError(f"merge_dropout is of sources of translations, and the model's task is {self.model.task}")
        return self


def load_recipe(directory: Path) -> Recipe:
    """Read and check the recipe.yaml of a model's directory.

    Raises:
        ConfigError: with the file's name and each offending key.
    """
    return load_yaml(directory / RECIPE, Recipe.model_validate, ConfigError)


def load_experiment(directory: Path) -> Experiment:
    """Read and check both files of a directory, and that they are of one kind of model.

    Raises:
        ConfigError: with the file's name and each offending key.
    """
    config = load_config(directory).model_dump()

    def check(content: Any) -> Experiment:
        recipe = Recipe.model_validate(content).model_dump(exclude_unset=True)
        return Experiment.model_validate(config | recipe)

    return load_yaml(directory / RECIPE, check, ConfigError)


def save_recipe(directory: Path, recipe: Recipe) -> None:
    """Write what was given of a recipe, without defaults."""
    content = recipe.model_dump(mode="json", include=set(Recipe.model_fields), exclude_unset=True)
    save_yaml(directory / RECIPE, content)
