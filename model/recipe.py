"""The training of a model, as written in recipe.yaml: its corpora and its schedule.

Serving, evaluation and export do not need it; training and the model card do.
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
    "capitalized",
    "capitals",
    "no_capitals",
    "no_final_punctuation",
    "half_width",
    "kanji_numbers",
    "joined",
    "single_words",
    "lists",
]


class HubSource(Strict):
    """Where `datasets.load_dataset` finds the same corpus."""

    path: str
    name: str | None = None
    split: str
    columns: tuple[str, str]
    """Columns (source, target) or (label, text); "a.b" reaches into a nested column."""


class DataSource(Strict):
    """One corpus: its TSV file below the data directory, its copy on a hub, and its licence."""

    file: str
    own: bool = False
    """Whether the file is one of our own, in model/corpora."""
    columns: tuple[str, str] | None = None
    """Names of two columns of a file that has several; its first line names them. None: it has two, without names."""
    hub: HubSource | None = None
    licence: str
    labels: dict[str, str | tuple[str, ...]] | None = None
    """Names of labels of the corpus in the model, as {"neg": "negative"}; numbers are written as text. A label may have
    several names: its texts are trained with each, so that the model is unsure of similar texts. Nothing is held out of
    such a corpus."""
    sample: PositiveInt | None = None
    """Number of rows: drawn afresh each epoch for training, where they may be more than the corpus has; always the same
    for tests. None takes all."""
    kind: str | None = None
    """Kind of text, as "news": training takes a share of each kind (`shares`), and evaluation scores each."""
    weight: PositiveFloat = 1.0
    """Factor of the corpus's part in the share of its kind; below 1 for text that machines translated."""
    machine_made: bool = False
    """Whether the translations, or most of them, were made by machines."""
    swap: bool = False
    """Whether the file's second column is the source and the first the target."""
    rewrite: Rewrite | None = None
    """Rewriting (model/augmentation/rewriting.py); only the rewritten rows are trained on."""
    merge_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of merges left out when sources are cut into pieces (BPE-dropout, Provilkov et al. 2020), so that a rare
    word is also known by its parts. Drawn without a seed when training begins and when it resumes."""
    shortest_crop: PositiveInt | None = None
    """Fewest tokens of the random piece of each review that is trained on instead of the whole, drawn each epoch. Words
    that do not depend on the label are then seen with all labels."""

    @property
    def has_one_label_each(self) -> bool:
        return all(isinstance(names, str) for names in (self.labels or {}).values())


class DataConfig(Strict):
    train: tuple[DataSource, ...] = Field(min_length=1)
    validation: tuple[DataSource, ...] = ()
    validation_fraction: float = Field(default=0.0, ge=0, lt=0.5)
    """Share of the training rows held out for validation where no validation file is given."""
    reported_fraction: float = Field(default=0.0, ge=0, lt=0.5)
    """Share of the rows of each kind that are neither trained nor chosen on: evaluation scores kinds by them."""
    shares: dict[str, PositiveFloat] | None = None
    """Share of the tokens that each kind of text has in training. Within a kind, corpora share by the root of their
    numbers of rows."""
    test: tuple[DataSource, ...] = ()
    aligned: DataSource | None = None
    """Pairs on which heads of a translator are compared, neither trained on nor scored; by default the captions of
    `model.alignment.heads`."""

    @model_validator(mode="after")
    def _shares_are_of_kinds(self) -> Self:
        if self.shares is None:
            return self
        for source in self.train:
            if source.kind not in self.shares:
                raise ValueError(f"{source.file}: `kind` is {source.kind}, which has no share in `shares`")
            if source.sample is not None:
                raise ValueError(
                    f"{source.file}: `sample` cannot be used with `shares`, which decide how many rows are drawn"
                )
        return self

    @model_validator(mode="after")
    def _tested_texts_have_one_label(self) -> Self:
        for source in (*self.validation, *self.test):
            if not source.has_one_label_each:
                raise ValueError(f"{source.file}: a label with several names can only be trained on")
        return self

    @model_validator(mode="after")
    def _aligned_pairs_are_for_nothing_else(self) -> Self:
        if self.aligned is not None:
            for name, sources in (("train", self.train), ("validation", self.validation), ("test", self.test)):
                if self.aligned.file in {source.file for source in sources}:
                    raise ValueError(f"`aligned`: {self.aligned.file} must not be in `{name}` too")
        return self


class TrainingConfig(Strict):
    batch_tokens: PositiveInt
    """Most padded tokens in one batch: its longest sequence (of either side) times its rows."""
    max_steps: PositiveInt
    optimizer: Literal["adamw", "muon"] = "adamw"
    """`muon` orthogonalizes the updates of weight matrices (Jordan et al. 2024); all else uses AdamW."""
    learning_rate: PositiveFloat
    """Peak rate of AdamW: reached after the warm-up, held, and reduced to zero over the last `decay_steps`."""
    muon_learning_rate: PositiveFloat = 0.01
    warmup_steps: PositiveInt
    decay_steps: PositiveInt
    weight_decay: float = Field(default=0.01, ge=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    clip_norm: PositiveFloat = 1.0
    average_checkpoints: PositiveInt = 1
    """Number of last checkpoints that are averaged into the final weights."""
    checkpoint_every_steps: PositiveInt = 500
    precision: Precision = "bf16-mixed"
    """`bf16-mixed` becomes `32-true` on a CPU that is no faster in bf16."""
    fused_attention: bool = True
    """Whether attention uses PyTorch's fused kernel; plain products are twice as fast on a CPU for short sequences."""
    seed: int = 1

    @model_validator(mode="after")
    def _last_step_is_kept(self) -> Self:
        if self.max_steps % self.checkpoint_every_steps != 0:
            raise ValueError(
                f"`max_steps` is {self.max_steps}; it must be a multiple of `checkpoint_every_steps`, "
                f"{self.checkpoint_every_steps}, or the last steps would be lost"
            )
        return self


class Recipe(Strict):
    """Corpora, schedule and notes of a training."""

    notes: str = ""
    """Notes for the card that no other file has."""
    data: DataConfig
    training: TrainingConfig

    def licences(self) -> dict[str, str]:
        """Return the licence of each training corpus, by its file."""
        return {source.file: source.licence for source in self.data.train}


class Experiment(Config, Recipe):
    """A model and its recipe, as `python -m model train` needs them."""

    @model_validator(mode="after")
    def _one_label_of_all_is_trained(self) -> Self:
        if isinstance(self.model, ClassifierConfig) and self.model.label_activation != "softmax":
            raise ValueError("`label_activation` must be softmax for training, as each row has one label")
        return self

    @model_validator(mode="after")
    def _translators_alone_drop_merges(self) -> Self:
        sources = [*self.data.train, *self.data.validation, *self.data.test]
        if not isinstance(self.model, TransformerConfig | RecurrentConfig) and any(s.merge_dropout for s in sources):
            raise ValueError(f"`merge_dropout` is only for translations; the task is {self.model.task}")
        return self


def load_recipe(directory: Path) -> Recipe:
    """Read and check the recipe.yaml of a model's directory. Raises ConfigError: a file is missing, or a value is
    wrong; the message names each key."""
    return load_yaml(directory / RECIPE, Recipe.model_validate, ConfigError)


def load_experiment(directory: Path) -> Experiment:
    """Read and check both files of a directory, and that they fit each other. Raises ConfigError: a file is missing, or
    a value is wrong; the message names each key."""
    config = load_config(directory).model_dump()

    def check(content: Any) -> Experiment:
        recipe = Recipe.model_validate(content).model_dump(exclude_unset=True)
        return Experiment.model_validate(config | recipe)

    return load_yaml(directory / RECIPE, check, ConfigError)


def save_recipe(directory: Path, recipe: Recipe) -> None:
    """Write the given settings of a recipe, without defaults."""
    content = recipe.model_dump(mode="json", include=set(Recipe.model_fields), exclude_unset=True)
    save_yaml(directory / RECIPE, content)
