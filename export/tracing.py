"""From graph modules to ONNX models: tracing, names of inputs and outputs, references to weights.safetensors instead of
tensors, and nothing that depends on the machine.

Legend: B batch, S source, T target, R decoder rows of N sources, at most W of one, L cache length, H heads, D head_dim,
V vocabulary, C classes, K tokens of a shortlist.
"""

import ast
import inspect
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset23
from onnxscript.optimizer import optimize_ir
from onnxscript.rewriter.pattern import RewriteRule
from torch import Tensor, nn
from torch.export import Dim
from torch.onnx._internal._lazy_import import onnxscript_apis  # type: ignore[attr-defined]
from torch.onnx._internal.exporter import _fx_passes, _schemas

from export.graphs import (
    MEMORY_STEP,
    ClassifierGraph,
    DecoderStepGraph,
    DenseGraph,
    EncoderGraph,
    Graph,
    OneStateGraph,
    TextAttentionGraph,
    TextEncoderGraph,
    TranslationAttentionGraph,
)
from export.onnx_attention import OPSET
from export.signatures import (
    INT32,
    Shape,
    Signature,
    classifier_signature,
    decoder_step_signature,
    dense_signature,
    encoder_signature,
    text_attention_signature,
    text_encoder_signature,
    translation_attention_signature,
)
from manifest.layout import WEIGHTS
from model.networks.attention import MultiHeadAttention
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.weights import SCALES, STEP

EXAMPLE_SIZES = {"B": 2, "R": 3, "N": 4, "W": 6, "S": 5, "L": 7, "T": 8, "K": 9, "k": 2}
"""Sizes of the example inputs: all different, and none of them 1, which tracing would take for a constant."""
ATTENTION = {"Attention", "GroupQueryAttention"}
"""Operators that compute a whole attention sublayer between its projections."""
SCOPES = "pkg.torch.onnx.name_scopes"
"""Metadata key under which the exporter notes the modules of a node, outermost first."""


def cast(tensor: Any, dtype: int) -> Any:
    """Translate `Tensor.to` to ONNX; the optimizer drops it if the tensor has that type already."""
    return opset23.Cast(tensor, to=dtype)


def identity(tensor: Any) -> Any:
    """Translate `Tensor.detach_` of constants to ONNX."""
    return opset23.Identity(tensor)


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.to.dtype: cast,
    torch.ops.aten.detach_.default: identity,
}
"""Operators that the exporter translates only after its decompositions, left out here. Opset 24 has the same ones."""


def unless_in_vain(rewrite: Callable[..., Any]) -> Callable[..., Any]:
    """Return `RewriteRule.try_rewrite` without the attempts at nodes of other operators than the rule's: most of the
    optimizer's time, as a rule for pairs of nodes lists the whole graph at each."""

    def try_rewrite(rule: RewriteRule, model: ir.Model, graph: ir.Graph, node: ir.Node, **options: Any) -> Any:
        if rule._target_pattern.output_nodes[0].op.matches(node.op_type):
            return rewrite(rule, model, graph, node, **options)
        return None

    return try_rewrite


RewriteRule.try_rewrite = unless_in_vain(RewriteRule.try_rewrite)  # type: ignore[method-assign]
# PyTorch's exporter parses the source and the signature of every operator's translation again for each graph, which
# takes longer than translating a small one.
onnxscript_apis.get_torchlib_ops = cache(onnxscript_apis.get_torchlib_ops)
_schemas.op_signature_from_function = cache(_schemas.op_signature_from_function)
# Its decompositions trace a graph twice more, and its search for operands of different types once more. Only
# TRANSLATIONS would need them: nothing is written in place, and types are changed by `to` alone. ONNX Runtime would
# refuse any other graph, or the proof of its artifact would find it.
_fx_passes.decompose_with_registry = lambda exported_program, registry: exported_program  # noqa: ARG005
_fx_passes.insert_type_promotion_nodes = lambda graph_module: None  # noqa: ARG005


class ExportError(RuntimeError):
    """The model or graph cannot be exported as the artifact requires."""


def trace_all(model: Transformer | TransformerClassifier | TransformerEncoder) -> dict[str, ir.Model]:
    """Return every graph of the model's artifact, by file name. Raises ExportError: an attention sublayer did not
    become exactly one node, or one became a node in a graph of matrices."""
    fused = model.config.attention == "soft"
    if isinstance(model, TransformerClassifier):
        n_layers = model.config.n_encoder_layers * fused
        graph = OneStateGraph(model) if model.config.pools_states else ClassifierGraph(model)
        return {
            "classifier.onnx": trace(graph, classifier_signature(model), n_layers),
            "attention.onnx": trace(TextAttentionGraph(model), text_attention_signature(model), 0),
        }
    if isinstance(model, TransformerEncoder):
        n_layers = model.config.n_encoder_layers * fused
        graphs = {
            "encoder.onnx": trace(TextEncoderGraph(model), text_encoder_signature(model), n_layers),
            "attention.onnx": trace(TextAttentionGraph(model), text_attention_signature(model), 0),
        }
        if model.config.dense:
            graphs["dense.onnx"] = trace(DenseGraph(model), dense_signature(model), 0)
        return graphs
    return {
        "encoder.onnx": trace(EncoderGraph(model), encoder_signature(model), model.config.n_encoder_layers * fused),
        "decoder_step.onnx": trace_decoder_step(model),
        "attention.onnx": trace(TranslationAttentionGraph(model), translation_attention_signature(model), 0),
    }


def trace_decoder_step(model: Transformer) -> ir.Model:
    """Return `decoder_step.onnx` of a translator. Raises ExportError: like `trace_all`."""
    attentions = [module for module in model.decoder.modules() if isinstance(module, MultiHeadAttention)]
    fused = len(attentions) if model.config.attention == "soft" else 0
    return trace(DecoderStepGraph(model), decoder_step_signature(model), fused)


def trace(graph: Graph[Any], signature: Signature, n_attention: int) -> ir.Model:
    """Trace a graph to an ONNX model with the signature's names and shapes, and `n_attention` nodes of fused attention.
    Raises ExportError: the graph has another number of them."""
    dtype = torch.float16 if graph.dtype == torch.float16 else torch.float32
    inputs = signature.integers | signature.floats
    examples = [
        example(shape, torch.int32 if name in INT32 else torch.int64) for name, shape in signature.integers.items()
    ]
    examples += [example(shape, dtype) for shape in signature.floats.values()]
    dynamic = [dynamic_axes(shape) for shape in inputs.values()]
    parameters = inspect.signature(graph.forward).parameters.values()
    n_named = sum(parameter.kind is not parameter.VAR_POSITIONAL for parameter in parameters)
    dynamic_shapes = (*dynamic[:n_named], *([tuple(dynamic[n_named:])] if dynamic[n_named:] else []))
    model = export_module(graph, tuple(examples), dynamic_shapes, list(inputs), list(signature.outputs))
    tensors_by_name = dict(graph.named_parameters()) | dict(graph.named_buffers())
    tensors = take_tensors(model, {name: name_of(name) for name in model.graph.initializers if name in tensors_by_name})
    optimize_ir(model)
    refer_to_tensors(model, tensors)
    n_attentions = sum(node.op_type in ATTENTION for node in model.graph)
    if n_attentions != n_attention:
        raise ExportError(
            f"{type(graph).__name__} has {n_attention} attention sublayers and {n_attentions} nodes of attention"
        )
    name_nodes(model, tensors)
    anonymize(model)
    name_boundary(model, inputs | signature.outputs)
    return model


def export_module(
    module: nn.Module, examples: tuple[Tensor, ...], dynamic_shapes: Any, inputs: list[str], outputs: list[str]
) -> ir.Model:
    """Export a module with PyTorch, given examples of its inputs and the names of inputs and outputs."""
    with quiet_exporter():
        captured = torch.export.export(module.eval(), examples, dynamic_shapes=dynamic_shapes)
        program = torch.onnx.export(
            captured,
            input_names=inputs,
            output_names=outputs,
            custom_translation_table=TRANSLATIONS,
            opset_version=OPSET,
            dynamo=True,
            optimize=False,
            verbose=False,
        )
    assert program is not None
    return program.model


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every tensor of a served model, by its name in graphs and weights.safetensors."""
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    return {name_of(name): tensor.detach() for name, tensor in tensors.items()}


def name_of(name: str) -> str:
    """Convert a module's name for a tensor to its name in weights.safetensors (attribute names cannot have dots)."""
    name = name.removeprefix("model.").replace("weight_scales", f"weight{SCALES}")
    return name.replace(MEMORY_STEP, f"memory{STEP}")


def example(shape: Shape, dtype: torch.dtype) -> Tensor:
    """Return a tensor of ones, which are valid as tokens, positions, lengths and numbers of candidates."""
    return torch.ones([EXAMPLE_SIZES[size] if isinstance(size, str) else size for size in shape], dtype=dtype)


def dynamic_axes(shape: Shape) -> dict[int, object]:
    """Return the axes whose size is a letter."""
    return {axis: Dim.DYNAMIC for axis, size in enumerate(shape) if isinstance(size, str)}


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silence the exporter's messages about optional packages and its own deprecated calls."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def take_tensors(model: ir.Model, names: Mapping[str, str]) -> list[ir.Value]:
    """Turn the used tensors of the model into inputs, so that no pass looks at their content.

    Args:
        names: the final names of tensors by their names in the trace.
    """
    taken = [model.graph.initializers.pop(traced) for traced in names]
    taken = [value for value in taken if value.uses()]
    for value in taken:
        value.name, value.const_value = names[value.name or ""], None
    model.graph.inputs.extend(taken)
    return taken


def refer_to_tensors(model: ir.Model, tensors: Sequence[ir.Value]) -> None:
    """Make the graph read its tensors from weights.safetensors by name, instead of from its inputs."""
    for value in tensors:
        model.graph.inputs.remove(value)
        if not value.uses():
            continue
        assert value.dtype is not None
        assert isinstance(value.shape, ir.Shape)
        value.const_value = ir.ExternalTensor(
            WEIGHTS, None, None, value.dtype, shape=value.shape, name=value.name or "", base_dir=""
        )
        model.graph.initializers.add(value)


def name_nodes(model: ir.Model, tensors: Iterable[ir.Value]) -> None:
    """Name each node after the layer it belongs to, so that a profile of the graph can be read.

    Constants other than the model's tensors are named after the first node that reads them: the exporter's own names
    depend on the mode that PyTorch is in.
    """
    seen: Counter[str] = Counter()
    named = {value.name for value in tensors}
    for node in model.graph:
        scopes = ast.literal_eval(node.metadata_props.get(SCOPES, "[]"))
        layers = [scope for scope in scopes[:-1] if scope and not scope.startswith("_")]  # the last is the operation
        layer = layers[-1].removeprefix("model.") if layers else "graph"
        name = f"{layer}/{node.op_type}"
        node.name = f"{name}.{seen[name]}" if seen[name] else name
        seen[name] += 1
        for place, value in enumerate(node.inputs):
            if value is not None and value.is_initializer() and value.name not in named:
                value.name = f"{node.name}:{place}"
                named.add(value.name)


def name_boundary(model: ir.Model, shapes: dict[str, Shape]) -> None:
    """Give inputs and outputs shapes in the signature's letters, and drop all shapes in between."""
    boundary = [*model.graph.inputs, *model.graph.outputs]
    for node in model.graph:
        for value in node.outputs:
            if value not in boundary:
                value.shape = value.type = None
    for value in boundary:
        value.shape = ir.Shape(shapes[value.name or ""])


def anonymize(model: ir.Model) -> None:
    """Drop stack traces, paths and versions, so that a checkpoint gives the same bytes on every machine."""
    model.producer_name, model.producer_version, model.doc_string = "attend", None, None
    model.metadata_props.clear()
    model.graph.metadata_props.clear()
    values = [*model.graph.inputs, *model.graph.initializers.values()]
    for node in model.graph:
        node.metadata_props.clear()
        node.doc_string = None
        values += node.outputs
    for value in values:
        value.metadata_props.clear()
        value.doc_string = None
