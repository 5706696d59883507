"""Configuration of a model, its data and its training, as written in configs/*.yaml.

Unknown keys are refused, and every value is checked where it is read, so that a typing error is found before an hour of
training, not after.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from model.batching import bucket
from model.checked_yaml import Strict, load_yaml


class ConfigError(ValueError):
    """A configuration file is missing, is not YAML, or holds a value that cannot be used."""


Positions = Literal["none", "sinusoidal", "learned", "rotary"]
Activation = Literal["relu", "gelu", "swiglu"]
Norm = Literal["post", "pre"]
Cell = Literal["rnn", "gru", "lstm"]
Precision = Literal["32-true", "bf16-mixed"]
Part = Literal["encoder", "n_grams", "regions"]
"""Of a classifier; each is trained as if there were no other."""


class LayerConfig(Strict):
    """What encoder and decoder layers are made of."""

    vocab_size: PositiveInt
    d_model: PositiveInt
    n_heads: PositiveInt
    d_ff: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    norm: Norm = "post"
    positions: Positions = "sinusoidal"
    activation: Activation = "relu"
    attention: Literal["soft", "hard"] = "soft"
    beta: PositiveFloat | None = None
    """Inverse temperature of soft attention, and of the gradient of hard attention; None is 1 / sqrt(head_dim)."""

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        self._check_heads("d_model", self.d_model)
        return self

    def _check_heads(self, name: str, width: int) -> None:
        if width % self.n_heads != 0:
            raise ValueError(f"{name} {width} is not a multiple of n_heads {self.n_heads}")
        head_dim = width // self.n_heads
        if self.positions == "rotary" and head_dim % 2 != 0:
            raise ValueError(
                f"rotary positions need an even head_dim, and {name} {width} / n_heads {self.n_heads} is {head_dim}"
            )


class TransformerConfig(LayerConfig):
    """An encoder-decoder Transformer."""

    task: Literal["translation"] = "translation"
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    d_encoder: PositiveInt | None = None
    """Width of the encoder, with an embedding of its own; None is d_model, with one embedding for both sides."""
    source: str
    target: str

    @model_validator(mode="after")
    def _heads_divide_the_encoder(self) -> Self:
        self._check_heads("d_encoder", self.encoder_layer.d_model)
        return self

    @property
    def encoder_layer(self) -> LayerConfig:
        """What the encoder's layers are made of: the decoder's, of the encoder's width."""
        return self.model_copy(update={"d_model": self.d_encoder or self.d_model})


class RecurrentConfig(Strict):
    """A recurrent encoder-decoder, the Transformer's ancestor, without attention or with additive attention."""

    task: Literal["recurrent_translation"] = "recurrent_translation"
    vocab_size: PositiveInt
    d_model: PositiveInt = Field(multiple_of=2)
    """Width of the embedding and of every state; each direction of the encoder is half as wide."""
    cell: Cell = "gru"
    attention: Literal["none", "before_cell", "after_cell"] = "after_cell"
    """Additive attention: of the state before the cell, which reads the context too, or of what the cell gives."""
    n_encoder_layers: PositiveInt
    n_decoder_layers: PositiveInt
    max_positions: PositiveInt
    dropout: float = Field(default=0.1, ge=0, lt=1)
    source: str
    target: str


class LanguageModelConfig(LayerConfig):
    """A decoder-only Transformer, which continues a text."""

    task: Literal["language_model"] = "language_model"
    n_decoder_layers: PositiveInt


class NGramConfig(Strict):
    """Words and hashed runs of words whose own weights a classifier's logits get too (model/networks/ngrams.py)."""

    buckets: PositiveInt
    longest: int = Field(default=2, ge=2, le=3)
    """Tokens of the longest run."""


class RegionConfig(Strict):
    """Regions, of which a classifier's logits get what their strongest say (model/networks/regions.py)."""

    width: PositiveInt
    """Of a region's vector."""
    detectors: PositiveInt
    radius: PositiveInt = 2
    """Tokens on either side of the one in the middle."""
    labelled_radius: PositiveInt = 1
    """The same, of tokens that are learnt from labels."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Of what the detectors found, in training."""


class ClassifierConfig(LayerConfig):
    """An encoder classifier; `labels` in the order of its logits."""

    task: Literal["classification"] = "classification"
    n_encoder_layers: PositiveInt
    labels: tuple[str, ...] = Field(min_length=2)
    lower_case: bool = False
    """Read A to Z as a to z: fewer word pieces, each seen more often."""
    pooling: Literal["max", "mean"] = "max"
    n_grams: NGramConfig | None = None
    regions: RegionConfig | None = None
    """With neither, the encoder is alone."""

    @model_validator(mode="after")
    def _parts_add_up(self) -> Self:
        for name in ("n_grams", "regions"):
            if getattr(self, name) is not None and self.pooling != "mean":
                raise ValueError(f"{name} need mean pooling: beside a maximum their logits would not be their own")
        return self


ModelConfig = Annotated[
    TransformerConfig | RecurrentConfig | LanguageModelConfig | ClassifierConfig, Field(discriminator="task")
]


Rewrite = Literal[
    "other_names",
    "other_numbers",
    "closed_classes",
    "upper_case",
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
    """The command that makes the file, where it is nobody's corpus but made of others."""
    hub: HubSource | None = None
    licence: str
    labels: dict[str, str] | None = None
    """What the labels in the corpus are called in the model, as {"neg": "negative"}; numbers are written as text."""
    sample: PositiveInt | None = None
    """Train on so many rows, drawn afresh each epoch; test on so many, always the same. None takes all."""
    swap: bool = False
    """The file's second column is the source, the first the target."""
    prefix: str = ""
    """Put before each source, as `DE `: what language a translator of several is to write (Johnson et al. 2017)."""
    rewrite: Rewrite | None = None
    """Train on the rows that this applies to, as it rewrites them (model/augmentation/rewriting.py)."""
    merge_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Train on sources cut into smaller pieces: of the merges that make a piece this share is left out (BPE-dropout,
    Provilkov et al. 2020), so that a rare word is known by its parts too. Drawn without a seed when training begins
    and when it is resumed."""
    shortest_crop: PositiveInt | None = None
    """Train on a random piece of each review, at least so many tokens long, and not on the whole; drawn each epoch."""

    @model_validator(mode="after")
    def _prefix_stays_whole(self) -> Self:
        if self.prefix and (self.rewrite is not None or self.merge_dropout):
            change = f"rewrite {self.rewrite}" if self.rewrite is not None else f"merge_dropout {self.merge_dropout}"
            raise ValueError(f"{change} would change the prefix {self.prefix!r} too")
        return self


class DataConfig(Strict):
    train: tuple[DataSource, ...] = Field(min_length=1)
    validation: tuple[DataSource, ...] = ()
    validation_fraction: float = Field(default=0.0, ge=0, lt=0.5)
    """Share of the training rows held out for validation where no validation file is given."""
    test: tuple[DataSource, ...] = ()
    aligned: DataSource | None = None
    """Pairs by which the heads of a translator are compared that align words: neither trained on nor scored. Left out,
    they are the captions of `model.alignment.heads`."""
    pivot: tuple[DataSource, ...] = ()
    """What a new vocabulary's pieces are translated by into those of the checkpoint that training starts with
    (model/training/translated_embeddings.py): pairs of that checkpoint's languages, source and target as there."""
    max_tokens: PositiveInt
    """Longer translation pairs are left out of training; longer reviews are cut to their first and last tokens."""

    @model_validator(mode="after")
    def _pivots_are_read_as_they_are(self) -> Self:
        for source in self.pivot:
            if source.rewrite is not None or source.merge_dropout or source.prefix or source.sample is not None:
                raise ValueError(f"pivot: {source.file} is read whole and as it is")
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


class Config(Strict):
    """A whole experiment: `python -m model train` needs nothing else."""

    name: str
    description: str
    model: ModelConfig
    data: DataConfig
    pretraining: PretrainingConfig | None = None
    """Comes before the training of a classifier, and leaves it its encoder and embedding."""
    training: TrainingConfig
    n_gram_training: NGramTrainingConfig | None = None
    region_training: RegionTrainingConfig | None = None

    @model_validator(mode="after")
    def _the_longest_batch_has_positions(self) -> Self:
        longest, padded, limit = self.data.max_tokens, bucket(self.data.max_tokens), self.model.max_positions
        if padded > limit:
            raise ValueError(
                f"data.max_tokens {longest} is more than model.max_positions {limit} allows: a batch of sequences of "
                f"{longest} tokens is padded to {padded}"
            )
        return self

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
    def _translators_alone_have_pivots_and_prefixes_and_drop_merges(self) -> Self:
        if not isinstance(self.model, TransformerConfig | RecurrentConfig):
            if self.data.pivot:
                raise ValueError(f"data.pivot is of translators, and the model's task is {self.model.task}")
            sources = [*self.data.train, *self.data.validation, *self.data.test]
            sources += self.unlabelled()
            for name in ("merge_dropout", "prefix"):
                if any(getattr(source, name) for source in sources):
                    raise ValueError(f"{name} is of sources of translations, and the model's task is {self.model.task}")
        return self

    def unlabelled(self) -> list[DataSource]:
        """What the parts of a classifier are trained on without labels, or with labels of their own."""
        return [
            *(self.pretraining.train if self.pretraining else ()),
            *(self.n_gram_training.unlabelled if self.n_gram_training else ()),
            *(self.region_training.unlabelled if self.region_training else ()),
        ]

    def licences(self) -> dict[str, str]:
        """Of each corpus that is trained on, or that a pivot is, by its file."""
        return {source.file: source.licence for source in (*self.data.train, *self.data.pivot, *self.unlabelled())}


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises:
        ConfigError: with the file's name and each offending key.
    """
    return load_yaml(path, Config.model_validate, ConfigError)
