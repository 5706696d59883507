"""The reader of artifact directories: a corrupted or foreign one is refused with a sentence that says what is wrong."""

import hashlib
import logging
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

GRAPHS = {
    "translation": ("encoder.onnx", "decoder_step.onnx", "attention.onnx"),
    "classification": ("classifier.onnx", "attention.onnx"),
    "embedding": ("encoder.onnx", "attention.onnx"),
}
"""What a task needs for each provider, in a folder of the provider's name."""
DENSE = "dense.onnx"
"""Beside them, where pooled states go through dense layers."""
MANIFEST, WEIGHTS, TOKENIZER = "manifest.json", "weights.safetensors", "tokenizer.json"
VOCABULARY = "vocabulary.json"
"""Ids of pieces, where a model numbers them otherwise than its tokenizer does."""

LOST_AND_FOUND = "lost+found"
"""Every volume of ext4 has one, which only root may read."""

Dtype = Literal["bool", "uint8", "int8", "int32", "int64", "float16", "float32"]

TokenPooling = Literal["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]

Stop = Literal["empty", "no_better", "full", "full_no_better"]
"""When a beam search ends; service/engine/beam_search.py tells of each."""

Task = Literal["translation", "classification", "embedding"]

Count = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Dimensions(_Section):
    d_model: Count
    d_encoder: Count | None = None
    """The encoder's width, where it is not d_model."""
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
    """As the model has it."""
    source_prefix: tuple[TokenId, ...]
    """Tokens put in front of a source: in this language, or to be translated into it."""
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
    """How a text's embedding is made of the states of its tokens."""

    dimensions: Count
    pooling: tuple[TokenPooling, ...] = Field(min_length=1)
    normalize: bool
    prompts: dict[str, str]
    default_prompt: str | None = None
    pool_prompt: bool


class AlignmentChoice(_Section):
    """Which cross-attention tells best what a target token translates."""

    layer: int = Field(ge=0)
    heads: tuple[int, ...] = Field(min_length=1)
    next_row: bool
    """Look at the row in which the token is read again, and not at the one in which it is produced."""


class FileSum(_Section):
    sha256: str
    bytes: int


class Manifest(_Section):
    """manifest.json."""

    format_version: Literal[9]
    name: str = Field(min_length=1)
    task: Task
    precision: Literal["fp32", "int8", "fp16"]
    opset: int
    dimensions: Dimensions
    special_tokens: SpecialTokens
    sources: tuple[Language, ...]
    """Which a translator reads; each is translated into every other language of `targets`."""
    targets: tuple[Language, ...]
    labels: tuple[str, ...]
    label_activation: Literal["softmax", "sigmoid"] | None
    limits: Limits
    pooling: Literal["mean", "max", "first"] | None
    embedding: Embedding | None
    decoding: Decoding | None
    alignment: AlignmentChoice | None
    slots: tuple[tuple[TokenId, TokenId], ...] = ()
    """Pairs of a source token and the target token that it becomes, the surest first."""
    evaluation: dict[str, dict[str, float]]
    graphs: dict[str, dict[Dtype, tuple[str, ...]]]
    """Of each graph the tensors that it takes from the weights, by the type that it declares for them."""
    files: dict[str, FileSum]
    """Everything that is served; what else lies in the directory is neither read nor refused."""

    def has_graphs_for(self, provider: str) -> bool:
        """All or none of them, as validation has it."""
        return any(graph.startswith(f"{provider}/") for graph in self.graphs)

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
"""What tells cheaply that a file is another one, or was written: inode, size, and time of the last change in ns."""


@dataclass(frozen=True)
class Artifact:
    """One model on disk."""

    directory: Path
    manifest: Manifest
    manifest_sum: FileSum | None = None
    stamps: dict[str, Stamp | None] = field(default_factory=dict)
    """Of every file, taken before it was read."""

    def path(self, file: str) -> Path:
        return self.directory / file

    def read(self, file: str) -> bytes:
        """A file that the manifest names, whenever it is called: what is computed with is what the manifest says.

        Raises:
            ArtifactRefused: it is missing, or another one.
        """
        path = self.path(file)
        with _reading(path):
            content = path.read_bytes()
        _check(path, _sum_of(content), self.manifest.files[file])
        return content

    def verify(self) -> None:
        """Raises ArtifactRefused: a file is not what the manifest says."""
        for name, expected in self.manifest.files.items():
            _check(self.path(name), sum_of(self.path(name)), expected)

    def is_as_read(self, file: str) -> bool:
        """Whether a file's content is still what it was, the manifest's too."""
        expected = self.manifest_sum if file == MANIFEST else self.manifest.files[file]
        try:
            return sum_of(self.path(file)) == expected
        except ArtifactRefused:
            return False


def read_artifacts(root: Path, names: Sequence[str] = ()) -> list[Artifact]:
    """The artifacts directly under `root`, whose files are checked when they are read. What else lies there is passed
    over, directories with a warning, unless they are hidden.

    Args:
        names: those that are wanted, in this order; none for all, by directory.

    Raises:
        ArtifactRefused: there is none, two have one name, or one is not what it should be.
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
    """One artifact directory, every file that its manifest names checked.

    Raises:
        ArtifactRefused: it is corrupted, incomplete, or of another format.
    """
    artifact = _opened(directory)
    artifact.verify()
    return artifact


class _NoManifest(ArtifactRefused):
    """A directory is none of an artifact."""


def _found(root: Path) -> Iterator[Artifact]:
    """The artifacts directly under `root`, none of their files checked but for the manifest."""
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
            logger.warning("%s is passed over: it has no %s", directory, MANIFEST)
        else:
            yield artifact


def stamp_of(path: Path) -> Stamp | None:
    """None where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def sum_of(path: Path) -> FileSum:
    """Raises ArtifactRefused: there is no such file, or this user may not read it."""
    with _reading(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileSum(sha256=digest, bytes=file.tell())


def _opened(directory: Path) -> Artifact:
    """Only its manifest is read."""
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
    """One sentence for the error that matters most: another format version explains all the others."""
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
