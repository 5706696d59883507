"""How a model is trained, as written in its recipe.yaml: its corpora, and the schedule of each stage.

Who serves, evaluates or exports a model does not need to know; who trains one, or writes its card, does.
"""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from model.checked_yaml import Strict, load_yaml, save_yaml
from model.config import ClassifierConfig, Config, ConfigError, RecurrentConfig, TransformerConfig, load_config

RECIPE = "recipe.yaml"

Precision = Literal["32-true", "bf16-mixed"]
Part = Literal["encoder", "n_grams", "regions"]
"""Of a classifier; each is trained as if there were no other."""

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
    made_by: str | None = None
    """What made these rows, where that is no longer in the tree: a command or words, and the commit that has it.
    Training leaves them out."""
    hub: HubSource | None = None
    licence: str
    labels: dict[str, str] | None = None
    """What the labels in the corpus are called in the model, as {"neg": "negative"}; numbers are written as text."""
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
    taught: bool = False
    """Labels are a teacher's (`--teacher`), not those of the file. Training without a teacher leaves them out."""
    shortest_crop: PositiveInt | None = None
    """Train on a random piece of each review, at least so many tokens long, and not on the whole; drawn each epoch."""


class DataConfig(Strict):
    train: tuple[DataSource, ...] = Field(min_length=1)
    validation: tuple[DataSource, ...] = ()
    validation_fraction: float = Field(default=0.0, ge=0, lt=0.5)
    """Share of the training rows held out for validation where no validation file is given."""
    test: tuple[DataSource, ...] = ()
    aligned: DataSource | None = None
    """Pairs by which the heads of a translator are compared that align words: neither trained on nor scored. Left out,
    they are the captions of `model.alignment.heads`."""

    def kept(self, has_teacher: bool = False) -> list[DataSource]:
        """What is trained on: the tree has what makes these rows, and somebody labels them."""
        return [source for source in self.train if source.made_by is None and (has_teacher or not source.taught)]

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
    optimizer: Literal["adamw", "muon", "sgd"] = "adamw"
    """`muon` orthogonalizes the updates of the weight matrices (Jordan et al. 2024); the rest still takes AdamW. `sgd`
    has momentum, and unlike these no larger steps for weights whose gradients are seldom or small."""
    learning_rate: PositiveFloat
    """Peak rate of AdamW or SGD: reached after the warm-up, held, and brought to zero over the last `decay_steps`."""
    muon_learning_rate: PositiveFloat = 0.01
    warmup_steps: PositiveInt
    decay_steps: PositiveInt
    weight_decay: float = Field(default=0.01, ge=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    token_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of input tokens replaced by <unk> while training a classifier."""
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


class PretrainingConfig(Strict):
    """Masked-token pre-training of the encoder, on texts without labels (Devlin et al. 2019)."""

    train: tuple[DataSource, ...] = Field(min_length=1)
    masked: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that become <unk> and are to be guessed."""
    generator_layers: PositiveInt | None = None
    """Of an encoder that guesses them, for the model to tell which were replaced (model/training/pretraining.py); with
    None the model itself guesses."""
    window: PositiveInt | None = None
    """Tokens that are read at once; None is as many as later. Shorter ones are read faster, and words are nearly always
    guessed by what stands near."""
    training: TrainingConfig


class NGramTrainingConfig(Strict):
    """Training of a classifier's n-grams, apart from its encoder, and once more on texts that they label themselves."""

    training: TrainingConfig
    unlabelled: tuple[DataSource, ...] = ()
    """Texts for the second training, whose labels are the first's (self-training, Yarowsky 1995)."""
    least_margin: float = Field(default=1.0, ge=0)
    """Of a text's two highest logits, in nats: texts of which the first is less sure are left out."""


class RegionTrainingConfig(Strict):
    """Training of a classifier's regions, apart from its encoder."""

    unlabelled: tuple[DataSource, ...] = Field(min_length=1)
    """Texts that teach what is near a region, and so what its vector is."""
    pretraining: TrainingConfig
    """On these texts."""
    training: TrainingConfig
    """Of what is told by the vectors, which stay as they are, on labelled texts."""


class Recipe(Strict):
    """How a model is trained."""

    notes: str = ""
    """What a user must know of it that nothing else tells, for the card."""
    data: DataConfig
    pretraining: PretrainingConfig | None = None
    """Comes before the training of a classifier, and leaves it its encoder and embedding."""
    training: TrainingConfig
    n_gram_training: NGramTrainingConfig | None = None
    region_training: RegionTrainingConfig | None = None

    def unlabelled(self) -> list[DataSource]:
        """What the parts of a classifier are trained on without labels, or with labels of their own."""
        return [
            *(self.pretraining.train if self.pretraining else ()),
            *(self.n_gram_training.unlabelled if self.n_gram_training else ()),
            *(self.region_training.unlabelled if self.region_training else ()),
        ]

    def licences(self) -> dict[str, str]:
        """Of each corpus that is trained on, by its file."""
        return {source.file: source.licence for source in (*self.data.train, *self.unlabelled())}


class Experiment(Config, Recipe):
    """A model and its recipe: all that `python -m model train` needs."""

    @model_validator(mode="after")
    def _classifiers_alone_are_pretrained(self) -> Self:
        if self.pretraining is not None and not isinstance(self.model, ClassifierConfig):
            raise ValueError(f"pretraining is of classifiers, not of a model whose task is {self.model.task}")
        return self

    @model_validator(mode="after")
    def _parts_are_trained(self) -> Self:
        for part, training in (("n_grams", "n_gram_training"), ("regions", "region_training")):
            if (getattr(self.model, part, None) is None) != (getattr(self, training) is None):
                raise ValueError(f"model.{part} and {training} go together: one of them is missing")
        return self

    @model_validator(mode="after")
    def _translators_alone_drop_merges(self) -> Self:
        sources = [*self.data.train, *self.data.validation, *self.data.test, *self.unlabelled()]
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
