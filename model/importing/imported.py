"""The result of an import, its options and its error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError
from tokenizers import Tokenizer
from torch import Tensor

from manifest.schema import AlignmentChoice
from manifest.vocabulary import Vocabulary
from model.config import Config, Decoding, ModelConfig, Provenance

NO_THRESHOLD = 1000.0
"""Beam threshold, in nats, that drops no hypothesis: other toolkits drop none."""


class ModelImportError(ValueError):
    """A source is incomplete, damaged or not supported; the message says why."""


class HubError(ModelImportError):
    """A hub cannot be reached, or does not give a model."""


class NotOnHubError(HubError):
    """The hub has no such model, or shows it to others only."""


class MissingTensorError(ModelImportError):
    """The weights lack a tensor, which is named."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the weights have no {name}")
        self.name = name


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


@contextmanager
def in_sentences(what: str) -> Iterator[None]:
    """Turn any error into a ModelImportError that says what could not be done, and why.

    Libraries raise errors of any type for a damaged file.
    """
    try:
        yield
    except ModelImportError:
        raise
    except Exception as error:
        raise ModelImportError(f"{what}: {in_words(error)}") from error


@dataclass(frozen=True)
class Options:
    """Options of an import, for facts that the source does not state.

    Attributes:
        name: name of the model; None takes that of the source.
        sources, targets: language codes of a translator.
        prompts: texts that may be put before others, by name.
        dimensions: numbers of dimensions to which embeddings may be cut.
    """

    name: str | None = None
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    dimensions: tuple[int, ...] = ()


@dataclass(frozen=True)
class ImportedModel:
    """An imported model with our names."""

    config: Config
    weights: Mapping[str, Tensor]
    """Weights by our names, in their stored types."""
    tokenizer: Tokenizer
    vocabulary: Vocabulary | None = None
    """Ids of pieces, if the model numbers them otherwise than the tokenizer."""
    alignment: AlignmentChoice | None = None
    """Heads that align, if the source names them."""
    notes: tuple[str, ...] = ()
    """Settings of the source that are not followed, a sentence each."""
    evaluation: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Scores that its owner published, by test set and metric."""


def config_of(
    directory: Path,
    options: Options,
    family: str,
    does: str,
    model: ModelConfig,
    licence: str | None,
    decoding: Decoding = Decoding(),  # noqa: B008  it is immutable
    max_tokens: int | None = None,
) -> Config:
    """Return the configuration of an imported model, which has the name of the options or of its directory.

    Args:
        does: what the model does, after its family in the description.
        max_tokens: the longest text that the model reads; by default all positions of the model.
    """
    return Config(
        name=options.name or directory.name,
        description=f"{family}, {does}.",
        max_tokens=max_tokens or model.max_positions,
        model=model,
        decoding=decoding,
        provenance=Provenance(source=directory.name, family=family, licence=licence),
    )
