"""The result of an import, its options and its error."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError
from tokenizers import Tokenizer
from torch import Tensor

from model.checkpoint import Alignment
from model.config import Config
from model.tokenizer import Vocabulary

NO_THRESHOLD = 1000.0
"""Beam threshold, in nats, that drops no hypothesis: other toolkits drop none."""

MAX_BEAM_SIZE = 8
"""The widest beam that `service` runs."""


class ModelImportError(ValueError):
    """A source is incomplete, damaged or not supported; the message says why."""


def in_words(error: BaseException) -> str:
    """Return the first line of an error: libraries add traces, and advice that nobody should follow."""
    if isinstance(error, ValidationError):
        wrong = error.errors()[0]
        where = "".join(f"{part}: " for part in wrong["loc"])
        return where + wrong["msg"].removeprefix("Value error, ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = next(iter(str(error).splitlines()), "")
    return said if said and not isinstance(error, LookupError | TypeError) else f"{type(error).__name__}: {said}"


@dataclass(frozen=True)
class Options:
    """Options of an import, for facts that the source does not state.

    Attributes:
        name: name of the model; None takes that of the source.
        sources, targets: language codes of a translator.
        prompts: texts that may be put before texts to embed, by name.
    """

    name: str | None = None
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedModel:
    """An imported model with our names."""

    config: Config
    weights: Mapping[str, Tensor]
    """Weights by our names, in their stored types."""
    tokenizer: Tokenizer
    vocabulary: Vocabulary | None = None
    """Ids of pieces, if the model numbers them otherwise than the tokenizer."""
    alignment: Alignment | None = None
    """Heads that align, if the source names them."""
    notes: tuple[str, ...] = ()
    """Settings of the source that are not followed, a sentence each."""
