"""Describes a checkpoint and its graphs in the manifest of an artifact."""

from collections.abc import Mapping
from pathlib import Path

import onnx_ir as ir

from export.onnx_attention import OPSET
from manifest.layout import TOKENIZER, VOCABULARY, WEIGHTS
from manifest.schema import (
    AlignmentChoice,
    Decoding,
    Dimensions,
    Embedding,
    Limits,
    Manifest,
    ModelOrigin,
    Precision,
    ShortlistSettings,
)
from manifest.sums import sum_of_file
from model.checkpoint import Checkpoint
from model.config import ClassifierConfig, EmbedderConfig, TransformerConfig


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
        opset=OPSET,
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
        confidence=checkpoint.confidence,
        files={name: sum_of_file(directory / name) for name in sorted([WEIGHTS, TOKENIZER, *vocabulary, *graphs])},
        graphs={name: tensors_by_type(graphs[name]) for name in sorted(graphs)},
    )


def _shortlist(config: TransformerConfig) -> ShortlistSettings | None:
    lists = config.shortlist
    return ShortlistSettings(first=lists.first, own=lists.own) if lists is not None else None


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
    names_by_type: dict[str, list[str]] = {}
    for name, value in sorted(graph.graph.initializers.items()):
        if isinstance(value.const_value, ir.ExternalTensor):
            names_by_type.setdefault(value.const_value.dtype.numpy().name, []).append(name)
    return {dtype: tuple(names_by_type[dtype]) for dtype in sorted(names_by_type)}


def last_layer(config: TransformerConfig) -> AlignmentChoice:
    """Return all heads of the last layer, for models whose heads were not compared: some single heads align nothing."""
    return AlignmentChoice(layer=config.n_decoder_layers - 1, heads=tuple(range(config.n_heads)), next_row=False)
