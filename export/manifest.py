"""manifest.json, which describes an artifact directory. Its reader in `service` is written for the same format."""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import onnx_ir as ir
from pydantic import BaseModel, ConfigDict, Field

from export.onnx_attention import OPSET
from model.checkpoint import FORMAT_VERSION, MANIFEST, TOKENIZER, VOCABULARY, Alignment, Checkpoint
from model.config import (
    ClassifierConfig,
    DecoderSelf,
    EmbedderConfig,
    Language,
    Pooling,
    SpecialTokens,
    Stop,
    TokenPooling,
    TransformerConfig,
)
from model.weights import WEIGHTS

MAX_BEAM_SIZE = 8
"""The widest beam that `service` runs."""

Precision = Literal["fp32", "int8", "fp16"]
Task = Literal["translation", "classification", "embedding"]
Provider = Literal["cpu", "cuda"]
"""ONNX Runtime providers, which are also the folders of their graphs."""


class Section(BaseModel):
    """Base class of sections: immutable, and without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dimensions(Section):
    d_model: int
    d_encoder: int | None = None
    """Width of the encoder; None if it is d_model."""
    n_heads: int
    head_dim: int
    d_ff: int
    n_encoder_layers: int
    n_decoder_layers: int
    """0 without a decoder."""
    vocab_size: int
    """Number of source tokens, and of target tokens unless targets have a vocabulary of their own."""
    target_vocab_size: int


class Limits(Section):
    """Largest number of tokens in one sequence."""

    max_source_tokens: int
    """Includes </s>; for a classifier, the size of a window."""
    max_target_tokens: int
    """Includes </s>; 0 for a classifier."""


class Decoding(Section):
    """Default settings of the search."""

    beam_size: int = Field(ge=1, le=MAX_BEAM_SIZE)
    length_penalty: float
    beam_threshold: float
    stop: Stop


class Embedding(Section):
    """How the embedding of a text is computed from the states of its tokens."""

    dimensions: int
    pooling: tuple[TokenPooling, ...]
    normalize: bool
    prompts: dict[str, str]
    default_prompt: str | None
    pool_prompt: bool
    cut_to: tuple[int, ...] = ()
    """Numbers of dimensions to which embeddings may be cut."""


class ModelOrigin(Section):
    """Where an imported model came from."""

    source: str
    """Id of the hub, or a file name."""
    revision: str | None
    """Commit of a hub's repository."""
    imported: str | None = None
    """When it was imported (ISO 8601, UTC)."""


class Nearness(Section):
    """How near the graphs of a provider are to the model in float32, on the texts that calibrate it (export/texts.py).

    Those of another provider than the CPU are rehearsed in PyTorch.
    """

    precision: Precision = "fp32"
    """Type in which most of the graphs' weights and products are."""
    float_layers: tuple[str, ...] = ()
    """Dense layers and tables that are in float32 in spite of an int8 precision, but for narrow ones."""
    same: float | None = None
    """Share of the same answers: most probable next tokens of a translator, labels of a classifier."""
    difference: float | None = None
    """Mean difference of a classifier's probabilities."""
    cosine: float | None = None
    """Mean cosine between embeddings."""
    of: int
    """Number of answers that were compared."""

    @property
    def value(self) -> float:
        """The share or cosine: 1 for a model that answers the same; 0 for one that does not compute numbers."""
        value = self.cosine if self.same is None else self.same
        return value if value is not None and math.isfinite(value) else 0.0

    def line(self) -> str:
        """Return a sentence for people."""
        if self.cosine is not None:
            found = f"mean cosine {self.cosine:.4f} to the embeddings of float32, over {self.of} texts"
        else:
            of_probabilities = "" if self.difference is None else f", probabilities differ by {self.difference:.4f}"
            what = "next tokens" if self.difference is None else "labels"
            found = f"{100 * self.value:.1f} % of {self.of} {what} are those of float32{of_probabilities}"
        in_floats = f", {len(self.float_layers)} layers in float32" * bool(self.float_layers)
        return f"{self.precision}{in_floats}: {found}"


class Shortlist(Section):
    """Which target tokens a translation may have: those in the lists of its source's tokens, which are tensors of the
    weights, and the first ones."""

    first: int
    """Tokens below it are always allowed."""
    own: bool
    """Whether the tokens of the source are allowed too."""


class File(Section):
    """Checksum and size of a file."""

    sha256: str
    bytes: int


class Manifest(Section):
    """The manifest; its fields are written in this order."""

    format_version: int = FORMAT_VERSION
    name: str
    task: Task
    precision: Precision
    """Type in which weights are stored."""
    parameters: int | None = None
    """Number of trained numbers; None in artifacts that were written before this was recorded."""
    origin: ModelOrigin | None = None
    """None if the model was trained with attend."""
    licence: str | None = None
    """Licence that the owner of an imported model names."""
    opset: int = OPSET
    dimensions: Dimensions
    decoder_self: DecoderSelf = "attention"
    """How a translator's decoder reads the target tokens before: an SSRU has one state in place of keys and values."""
    special_tokens: SpecialTokens
    sources: tuple[Language, ...]
    """Languages that a translator reads; each is translated into every other language of `targets`."""
    targets: tuple[Language, ...]
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts that may be put before a translator's source, by name."""
    labels: tuple[str, ...]
    """Labels in the order of the logits; empty if the model is no classifier."""
    label_activation: Literal["softmax", "sigmoid", "identity"] | None
    pairs: bool = False
    """Whether a classifier reads pairs of texts."""
    limits: Limits
    pooling: Pooling | None
    """How a classifier pools its tokens."""
    embedding: Embedding | None
    """Settings of an encoder of texts."""
    decoding: Decoding | None
    alignment: Alignment | None
    """Heads of cross-attention in attention.onnx that align tokens; None for a classifier."""
    nearness: dict[Provider, Nearness] = Field(default_factory=dict)
    """By provider; empty if it was not measured."""
    slots: tuple[tuple[int, int], ...] = ()
    """Pairs of a source token and the target token that it becomes, most reliable first."""
    shortlist: Shortlist | None = None
    """None if a translation may have all tokens of its language."""
    evaluation: dict[str, dict[str, float]]
    """Scores of the checkpoint by test set and metric."""
    files: dict[str, File]
    """Every other file that is served. Other files in the directory belong to its owner."""
    graphs: dict[str, dict[str, tuple[str, ...]]]
    """Tensors of weights.safetensors that each graph reads, by the type that it expects."""


def describe(checkpoint: Checkpoint, precision: Precision, directory: Path, graphs: Mapping[str, ir.Model]) -> Manifest:
    """Return the manifest of an artifact with these graphs, whose other files are all in `directory`."""
    config = checkpoint.config.model
    assert isinstance(config, TransformerConfig | ClassifierConfig | EmbedderConfig)
    translator = config if isinstance(config, TransformerConfig) else None
    classifier = config if isinstance(config, ClassifierConfig) else None
    embedder = config if isinstance(config, EmbedderConfig) else None
    decoding, provenance = checkpoint.config.decoding, checkpoint.config.provenance
    # A model is of no use beyond the longest source that it was trained on.
    max_source_tokens = checkpoint.config.max_tokens
    max_target_tokens = min(config.max_positions, decoding.max_target_tokens or config.max_positions)
    vocabulary = [VOCABULARY] if (directory / VOCABULARY).is_file() else []
    return Manifest(
        name=checkpoint.config.name,
        task=config.task,
        precision=precision,
        parameters=sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        origin=ModelOrigin(**provenance.model_dump(include={*ModelOrigin.model_fields})) if provenance else None,
        licence=provenance.licence if provenance else None,
        dimensions=Dimensions(
            d_model=config.d_model,
            d_encoder=translator.d_encoder if translator else None,
            n_heads=config.n_heads,
            head_dim=config.width_of_head,
            d_ff=config.d_ff,
            n_encoder_layers=config.n_encoder_layers,
            n_decoder_layers=translator.n_decoder_layers if translator else 0,
            vocab_size=(translator.source_vocab_size if translator else None) or config.vocab_size,
            target_vocab_size=config.vocab_size,
        ),
        decoder_self=translator.decoder_self if translator else "attention",
        special_tokens=config.special_tokens,
        sources=translator.sources if translator else (),
        targets=translator.targets if translator else (),
        prompts=translator.prompts if translator else {},
        labels=classifier.labels if classifier else (),
        label_activation=classifier.label_activation if classifier else None,
        pairs=classifier is not None and classifier.pairs is not None,
        limits=Limits(max_source_tokens=max_source_tokens, max_target_tokens=max_target_tokens if translator else 0),
        pooling=classifier.pooling if classifier else None,
        embedding=_embedding(embedder) if embedder else None,
        decoding=Decoding.model_validate(decoding.model_dump(exclude={"max_target_tokens"})) if translator else None,
        alignment=(checkpoint.alignment or last_layer(translator)) if translator else None,
        shortlist=_shortlist(translator) if translator else None,
        evaluation=checkpoint.evaluation,
        files={name: checksum(directory / name) for name in sorted([WEIGHTS, TOKENIZER, *vocabulary, *graphs])},
        graphs={name: tensors_by_type(graphs[name]) for name in sorted(graphs)},
    )


def _shortlist(config: TransformerConfig) -> Shortlist | None:
    lists = config.shortlist
    return Shortlist(first=lists.first, own=lists.own) if lists is not None else None


def _embedding(config: EmbedderConfig) -> Embedding:
    widths = [config.d_model * len(config.pooling), *(dense.d_output for dense in config.dense)]
    return Embedding(
        dimensions=widths[-1],
        pooling=config.pooling,
        normalize=config.normalize,
        prompts=config.prompts,
        default_prompt=config.default_prompt,
        pool_prompt=config.pool_prompt,
        cut_to=config.cut_to,
    )


def tensors_by_type(graph: ir.Model) -> dict[str, tuple[str, ...]]:
    """Return the names of the tensors that a graph reads from weights.safetensors, by type."""
    found: dict[str, list[str]] = {}
    for name, value in sorted(graph.graph.initializers.items()):
        if isinstance(value.const_value, ir.ExternalTensor):
            found.setdefault(value.const_value.dtype.numpy().name, []).append(name)
    return {dtype: tuple(found[dtype]) for dtype in sorted(found)}


def providers(manifest: Manifest) -> list[Provider]:
    """Return the providers that the artifact has graphs for."""
    return [provider for provider in get_args(Provider) if f"{provider}/attention.onnx" in manifest.files]


def last_layer(config: TransformerConfig) -> Alignment:
    """Return all heads of the last layer, for models whose heads were not compared: some single heads align nothing."""
    return Alignment(layer=config.n_decoder_layers - 1, heads=tuple(range(config.n_heads)), next_row=False)


SPECIAL = ("decoder_self", "pairs", "prompts", "nearness", "shortlist")
"""Fields that only some models need: they are written where they are not at their default."""


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Write manifest.json, the last file of an artifact."""
    fields = Manifest.model_fields
    usual = {n for n in SPECIAL if getattr(manifest, n) == fields[n].get_default(call_default_factory=True)}
    text = manifest.model_dump_json(indent=2, exclude=usual)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Read manifest.json; raise FileNotFoundError or a pydantic ValidationError."""
    return Manifest.model_validate_json((directory / MANIFEST).read_text(encoding="utf-8"))


def checksum(path: Path) -> File:
    """Return the checksum and size of a file."""
    with path.open("rb") as file:
        return File(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=file.tell())
