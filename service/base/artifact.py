"""Reads artifact directories. A damaged or foreign one is refused with a sentence that says what is wrong."""

import hashlib
import io
import logging
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.base.errors import ArtifactRefused

logger = logging.getLogger(__name__)

FORMAT_VERSION = 9

MAX_BEAM_SIZE = 8

AttentionKind = Literal["cross", "encoder", "decoder"]

GRAPHS = {
    "translation": ("encoder.onnx", "decoder_step.onnx", "attention.onnx"),
    "classification": ("classifier.onnx", "attention.onnx"),
    "embedding": ("encoder.onnx", "attention.onnx"),
}
"""The graphs that a task needs; each provider has a folder of them."""
DENSE = "dense.onnx"
"""One more graph, if pooled states go through dense layers."""
MANIFEST, WEIGHTS, TOKENIZER = "manifest.json", "weights.safetensors", "tokenizer.json"
VOCABULARY = "vocabulary.json"
"""The ids of pieces, if a model numbers them otherwise than its tokenizer does."""

LOST_AND_FOUND = "lost+found"
"""A directory of every ext4 volume, which only root may read."""

Dtype = Literal["bool", "uint8", "int8", "int32", "int64", "float16", "float32"]

TokenPooling = Literal["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]

Stop = Literal["empty", "no_better", "full", "full_no_better"]
"""When a beam search ends; service/engine/beam_search.py describes each rule."""

Task = Literal["translation", "classification", "embedding"]

NO_LANGUAGE = "und"
"""Target language of what is no translation: summaries, answers, whatever a model writes."""

Count = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Dimensions(_Section):
    d_model: Count
    d_encoder: Count | None = None
    """Width of the encoder; None if it is d_model."""
    n_heads: Count
    head_dim: Count
    d_ff: Count
    n_encoder_layers: Count
    n_decoder_layers: int = Field(ge=0)
    vocab_size: Count
    target_vocab_size: Count

    @property
    def d_states(self) -> int:
        """Width of the encoder's states."""
        return self.d_encoder or self.d_model


class SpecialTokens(_Section):
    pad: TokenId
    unk: TokenId
    bos: TokenId
    eos: TokenId


class Language(_Section):
    code: str = Field(min_length=1)
    """Code that the model uses, such as fr or fra_Latn."""
    source_prefix: tuple[TokenId, ...]
    """Tokens before a source that is in this language, or is to be translated into it."""
    target_prefix: tuple[TokenId, ...]
    """Tokens with which a target in this language begins."""


class Limits(_Section):
    max_source_tokens: Count
    max_target_tokens: int = Field(ge=0)


class Decoding(_Section):
    beam_size: int = Field(ge=1, le=MAX_BEAM_SIZE)
    length_penalty: float = Field(ge=0, allow_inf_nan=False)
    beam_threshold: float = Field(ge=0, allow_inf_nan=False)
    stop: Stop


class Embedding(_Section):
    """How the states of a text's tokens become its embedding."""

    dimensions: Count
    pooling: tuple[TokenPooling, ...] = Field(min_length=1)
    normalize: bool
    prompts: dict[str, str]
    default_prompt: str | None = None
    pool_prompt: bool
    cut_to: tuple[Count, ...] = ()
    """Numbers of dimensions to which embeddings may be cut, as the model was trained for that."""


class AlignmentChoice(_Section):
    """The cross-attention that tells best which source token a target token translates."""

    layer: int = Field(ge=0)
    heads: tuple[int, ...] = Field(min_length=1)
    next_row: bool
    """Whether the row counts in which the target token is read, instead of the row in which it is written."""


class Nearness(_Section):
    """How near graphs are to the model in float32; `export` measured it."""

    precision: Literal["fp32", "int8", "fp16"] = "fp32"
    float_layers: tuple[str, ...] = ()
    """Layers in float32 in spite of the precision."""
    same: float | None = None
    """Share of the same next tokens, or of the same labels."""
    difference: float | None = None
    """Mean difference of a classifier's probabilities."""
    cosine: float | None = None
    """Mean cosine between embeddings."""
    of: int
    """Number of answers that were compared."""


class ModelOrigin(_Section):
    """Where an imported model came from."""

    source: str
    """Id of the hub, or a file name."""
    revision: str | None = None


class ShortlistSettings(_Section):
    """Which target tokens a translation may have: those in the lists of its source's tokens, which are tensors of the
    weights, and the first ones."""

    first: int = Field(ge=0)
    """Tokens below it are always allowed."""
    own: bool
    """Whether the tokens of the source are allowed too."""


class FileSum(_Section):
    sha256: str
    bytes: int


class Manifest(_Section):
    """The content of manifest.json."""

    format_version: Literal[9]
    name: str = Field(min_length=1)
    task: Task
    precision: Literal["fp32", "int8", "fp16"]
    parameters: Count | None = None
    """Number of trained numbers; None in artifacts that were written before this was recorded."""
    origin: ModelOrigin | None = None
    """None if the model was trained with attend."""
    licence: str | None = None
    """Licence that the owner of an imported model names."""
    opset: int
    dimensions: Dimensions
    decoder_self: Literal["attention", "ssru"] = "attention"
    """How a translator's decoder reads the target tokens before: an SSRU has one state in place of keys and values."""
    special_tokens: SpecialTokens
    sources: tuple[Language, ...]
    """Languages that a translator reads; it translates each into every other language of `targets`."""
    targets: tuple[Language, ...]
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put before a source, by name; what they ask for is no translation."""
    labels: tuple[str, ...]
    label_activation: Literal["softmax", "sigmoid", "identity"] | None
    pairs: bool = False
    """Whether a classifier reads pairs of texts."""
    limits: Limits
    pooling: Literal["mean", "max", "first", "mean_states"] | None
    embedding: Embedding | None
    decoding: Decoding | None
    alignment: AlignmentChoice | None
    nearness: dict[str, Nearness] = Field(default_factory=dict)
    """By provider; empty if it was not measured."""
    slots: tuple[tuple[TokenId, TokenId], ...] = ()
    """Pairs of a source token and the target token that it becomes, the surest first."""
    shortlist: ShortlistSettings | None = None
    """None if a translation may have all tokens of its language."""
    evaluation: dict[str, dict[str, float]]
    graphs: dict[str, dict[Dtype, tuple[str, ...]]]
    """The tensors that each graph takes from the weights, by graph and by the type that the graph declares."""
    files: dict[str, FileSum]
    """All files that are read; others in the directory are ignored."""

    @property
    def writes_no_language(self) -> bool:
        """Whether what a translator writes is no translation."""
        return [language.code for language in self.targets] == [NO_LANGUAGE]

    def has_graphs_for(self, provider: str) -> bool:
        """Whether there are graphs for a provider: all that the task needs, or none."""
        return any(graph.startswith(f"{provider}/") for graph in self.graphs)

    @property
    def pools_states(self) -> bool:
        """Whether one state of a text decides its class, so that no token has logits of its own."""
        return self.pooling in ("first", "mean_states")

    @property
    def attention_layers(self) -> dict[AttentionKind, int]:
        """Number of layers that have matrices, by kind of attention."""
        depth: dict[AttentionKind, int] = {"encoder": self.dimensions.n_encoder_layers}
        if self.task == "translation":
            depth["cross"] = self.dimensions.n_decoder_layers
            if self.decoder_self == "attention":
                depth["decoder"] = self.dimensions.n_decoder_layers
        return depth

    @property
    def has_dense(self) -> bool:
        """Whether pooled states go through dense layers."""
        return f"cpu/{DENSE}" in self.graphs

    @model_validator(mode="after")
    def _fits_its_task(self) -> "Manifest":
        if self.task == "translation":
            wanted = {
                "sources": bool(self.sources),
                "targets": bool(self.targets),
                "decoding": self.decoding is not None,
                "alignment": self._alignment_exists(),
                "n_decoder_layers": self.dimensions.n_decoder_layers > 0,
                "max_target_tokens": self.limits.max_target_tokens > 0,
            }
        elif self.task == "classification":
            wanted = {
                "labels": bool(self.labels),
                "label_activation": self.label_activation is not None,
                "pooling": self.pooling is not None,
            }
        else:
            wanted = {"embedding": self.embedding is not None}
        missing = [name for name, given in wanted.items() if not given]
        providers = ("cpu", "cuda") if self.has_graphs_for("cuda") else ("cpu",)
        needed = (*GRAPHS[self.task], DENSE) if self.has_dense else GRAPHS[self.task]
        graphs = [f"{provider}/{graph}" for provider in providers for graph in needed]
        missing += [f"graphs.{graph}" for graph in graphs if graph not in self.graphs]
        missing += [f"files.{file}" for file in (TOKENIZER, WEIGHTS, *graphs) if file not in self.files]
        if missing:
            raise ValueError(f"{self.task} needs {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _stays_in_its_directory(self) -> "Manifest":
        for file in self.files:
            if PureWindowsPath(file).anchor or ".." in PureWindowsPath(file).parts:
                raise ValueError(f"files.{file} is not in the artifact's directory")
        return self

    @model_validator(mode="after")
    def _has_its_special_tokens(self) -> "Manifest":
        size = max(self.dimensions.vocab_size, self.dimensions.target_vocab_size)
        for name, token_id in self.special_tokens.model_dump().items():
            if token_id >= size:
                raise ValueError(f"special_tokens.{name} is {token_id}, the vocabulary has {size:,} tokens")
        return self

    def _alignment_exists(self) -> bool:
        choice, dimensions = self.alignment, self.dimensions
        return (
            choice is not None
            and choice.layer < dimensions.n_decoder_layers
            and all(0 <= head < dimensions.n_heads for head in choice.heads)
        )


Stamp = tuple[int, int, int]
"""Inode, size and time of the last change in ns: they differ if a file was replaced or written."""


@dataclass(frozen=True)
class Artifact:
    """One model on disk.

    Attributes:
        manifest_sum: the sum of the manifest's own file.
        stamps: the stamp of each file, taken before it was read.
    """

    directory: Path
    manifest: Manifest
    manifest_sum: FileSum | None = None
    stamps: dict[str, Stamp | None] = field(default_factory=dict)

    def path(self, file: str) -> Path:
        return self.directory / file

    def read(self, file: str) -> bytes:
        """Return the content of a file. It is what the manifest says, whenever it is read.

        Raises:
            ArtifactRefused: the file is missing, or has changed.
        """
        path = self.path(file)
        with _reading(path):
            content = path.read_bytes()
        _check(path, _sum_of(content), self.manifest.files[file])
        return content

    def open(self, file: str) -> "OpenedFile":
        """Open a file, whose content is what the manifest says.

        Raises:
            ArtifactRefused: the file is missing, or has changed.
        """
        return OpenedFile(self.path(file), self.manifest.files[file])

    def verify(self) -> None:
        """Raises ArtifactRefused: a file is not what the manifest says."""
        for name, expected in self.manifest.files.items():
            _check(self.path(name), sum_of(self.path(name)), expected)

    def is_as_read(self, file: str) -> bool:
        """Whether the content of a file, or of the manifest itself, is unchanged."""
        expected = self.manifest_sum if file == MANIFEST else self.manifest.files[file]
        try:
            return sum_of(self.path(file)) == expected
        except ArtifactRefused:
            return False


class OpenedFile:
    """A file that stays open and unchanged, also when another file takes its place.

    Raises:
        ArtifactRefused: the file is missing, or is not what the manifest says.
    """

    def __init__(self, path: Path, expected: FileSum) -> None:
        self.path = path
        self.size = expected.bytes
        with _reading(path), path.open("rb") as file:
            self._number = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._number)
            self._stamp = _stamp(os.fstat(self._number))
            found = _sum_of_opened(file)
        _check(path, found, expected)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill a buffer of bytes with the content from `offset` on. Processes that share the file may do so at once.

        Raises:
            ArtifactRefused: the file was written to since it was opened, or cannot be read.
        """
        with _reading(self.path):
            while buffer and (n_read := os.preadv(self._number, [buffer], offset)):  # at most 2 GB at once
                buffer, offset = buffer[n_read:], offset + n_read
            is_unchanged = _stamp(os.fstat(self._number)) == self._stamp
        if buffer or not is_unchanged:
            raise ArtifactRefused(f"{self.path}: was written to after the model had been loaded; load it anew")


def read_artifacts(root: Path, names: Sequence[str] = ()) -> list[Artifact]:
    """Return the artifacts directly under `root`; their files are checked when they are read. Other directories are
    skipped, with a warning unless they are hidden.

    Args:
        names: names of the artifacts to return, in this order; by default all, in the order of their directories.

    Raises:
        ArtifactRefused: there are no artifacts, two have one name, or one is damaged or of another format.
    """
    by_name: dict[str, Artifact] = {}
    for artifact in _found(root):
        twin = by_name.setdefault(artifact.manifest.name, artifact)
        if twin is not artifact:
            raise ArtifactRefused(f"{artifact.directory} and {twin.directory} are both named {artifact.manifest.name}")
    if not by_name:
        raise ArtifactRefused(f"{root}: contains no artifact directory")
    for name in names:
        if name not in by_name:
            raise ArtifactRefused(f"{root}: has no model {name}; available: {', '.join(by_name)}")
    return [by_name[name] for name in names or by_name]


def read_artifact(directory: Path) -> Artifact:
    """Return the artifact of a directory, after a check of every file that its manifest names.

    Raises:
        ArtifactRefused: it is damaged, incomplete, or of another format.
    """
    artifact = _opened(directory)
    artifact.verify()
    return artifact


class _NoManifest(ArtifactRefused):
    """A directory has no manifest, so it is not an artifact."""


def _found(root: Path) -> Iterator[Artifact]:
    """Yield the artifacts directly under `root`. Only their manifests are read."""
    try:
        is_artifact = (root / MANIFEST).is_file()
        directories = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactRefused(f"{root}: does not exist") from None
    except OSError as error:
        raise ArtifactRefused(f"{root}: cannot be read: {error}") from error
    if is_artifact:
        raise ArtifactRefused(f"{root}: is an artifact itself; ATTEND_ARTIFACTS must be the folder that contains it")
    for directory in directories:
        try:
            if directory.name == LOST_AND_FOUND:
                raise _NoManifest
            artifact = _opened(directory)
        except _NoManifest:
            logger.warning("%s is skipped: it has no %s", directory, MANIFEST)
        else:
            yield artifact


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return _stamp(found)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns


def sum_of(path: Path) -> FileSum:
    """Raises ArtifactRefused: there is no such file, or this user may not read it."""
    with _reading(path), path.open("rb") as file:
        return _sum_of_opened(file)


def _sum_of_opened(file: io.BufferedReader) -> FileSum:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileSum(sha256=digest, bytes=file.tell())


def _opened(directory: Path) -> Artifact:
    """Return the artifact of a directory. Only its manifest is read."""
    path = directory / MANIFEST
    stamp = stamp_of(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise _NoManifest(f"{path}: does not exist; is this an artifact directory?") from None
    except OSError as error:
        raise ArtifactRefused(f"{path}: cannot be read: {error}") from error
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        raise ArtifactRefused(f"{path}: {_first_problem(error)}") from error
    stamps = {MANIFEST: stamp, **{file: stamp_of(directory / file) for file in manifest.files}}
    return Artifact(directory, manifest, _sum_of(content), stamps)


def _first_problem(found: ValidationError) -> str:
    """Return one sentence about the error that matters most: another format version explains all others."""
    error = min(found.errors(), key=lambda error: error["loc"] != ("format_version",))
    if error["loc"] == ("format_version",):
        return f"format_version is {error['input']!r}, this service reads {FORMAT_VERSION}"
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {error['msg']}" if place else error["msg"]


def _sum_of(content: bytes) -> FileSum:
    return FileSum(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


def _check(path: Path, found: FileSum, expected: FileSum) -> None:
    if found.sha256 != expected.sha256:
        raise ArtifactRefused(
            f"{path}: sha256 is {found.sha256[:12]}... ({found.bytes} bytes); "
            f"the manifest says {expected.sha256[:12]}... ({expected.bytes} bytes)"
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ArtifactRefused(f"{path}: is missing") from None
    except OSError as error:
        raise ArtifactRefused(f"{path}: cannot be read: {error}") from error
