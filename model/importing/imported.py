"""What an import makes of a source, and what it may refuse."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tokenizers import Tokenizer
from torch import Tensor

from model.checkpoint import Alignment
from model.config import Config
from model.tokenizer import Vocabulary

NO_THRESHOLD = 1000.0
"""Of a beam, in nats: no hypothesis is given up. Nobody else gives hypotheses up."""

MAX_BEAM_SIZE = 8
"""The widest beam that is served."""


class ModelImportError(ValueError):
    """A source is incomplete, damaged, or holds a model that is not read here; the message says which and why."""


@dataclass(frozen=True)
class Options:
    """What a user says of a source that does not say it itself.

    Attributes:
        name: of the model; None is told by the source.
        sources, targets: language codes of a translator.
        prompts: texts that may be put in front of a text to embed, by name.
    """

    name: str | None = None
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedModel:
    """A model in our terms."""

    config: Config
    weights: Mapping[str, Tensor]
    """By our names, in the types in which they were stored."""
    tokenizer: Tokenizer
    vocabulary: Vocabulary | None = None
    """Where the model has other ids than the tokenizer gives."""
    alignment: Alignment | None = None
    """Where the source says which heads align."""
    notes: tuple[str, ...] = ()
    """What the source asks for and is not followed here, a sentence each."""
