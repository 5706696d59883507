"""What a model computes in PyTorch for a proof: each sequence alone, unpadded, without a cache, in one pass.

Legend: S source, T target, E d_model, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from export.calibration import ServedModel
from export.examination import Array
from model.networks.attention import MultiHeadAttention
from model.networks.matrices import classification_matrices, translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

Outputs = dict[str, list[Array]]
"""What was computed, by its name: an array for each sequence, or several."""
STEPS, MEMORY, STATES, DENSE = "decoder steps", "encoder outputs", "hidden states", "dense layers"

LAST_BITS, LAST_BITS_OF_HALF = 2.0**-23, 2.0**-11
"""Distance between neighbouring numbers in float32, and largest rounding to float16, relative to the number."""


def reference_of(model: ServedModel, sources: Sequence[list[int]], targets: Sequence[list[int]] = ()) -> Outputs:
    """Return what PyTorch computes of sources, and for a translator of targets, without <s>, that it reads."""
    outputs: Outputs = defaultdict(list)
    for i, source in enumerate(sources):
        ids, lengths = torch.tensor([source]), torch.tensor([len(source)])
        if isinstance(model, Transformer):
            read = torch.tensor([[model.config.special_tokens.bos, *targets[i]]])
            of_example = _translation(model, ids, lengths, read)
        else:
            of_example = _encoding(model, ids, lengths)
        for name, arrays in of_example.items():
            outputs[name] += arrays
    return dict(outputs)


def _translation(model: Transformer, ids: Tensor, lengths: Tensor, target: Tensor) -> Outputs:
    with _outputs_of(model.encoder, model.decoder) as outputs:
        matrices = translation_matrices(model, ids, lengths, target)
    (memory,), (hidden,) = outputs[model.encoder], outputs[model.decoder]
    attentions = [layer.cross_attention for layer in model.decoder.decoder_layers()]
    projected = [(a, heads) for a in attentions for heads in a.project_memory(memory, memory)]
    return {
        MEMORY: [attention.merge_heads(heads)[0].numpy() for attention, heads in projected],
        STATES: [memory[0].numpy()],
        STEPS: [centred(model.logits(hidden)[0, :, model.is_target_token].numpy())],
        **{f"{kind} attention": [getattr(matrices, kind)[0].numpy()] for kind in ("encoder", "decoder", "cross")},
    }


def _encoding(model: TransformerClassifier | TransformerEncoder, ids: Tensor, lengths: Tensor) -> Outputs:
    with _outputs_of(model.encoder) as outputs:
        matrices = classification_matrices(model, ids, lengths)
    (hidden,) = outputs[model.encoder]
    of_encoder: Outputs = {STATES: [hidden[0].numpy()], "attention": [matrices[0].numpy()]}
    if isinstance(model, TransformerClassifier):
        logits, of_tokens = model.classify(hidden, lengths)
        of_encoder |= {"logits": [logits[0].numpy()]}
        of_encoder |= {"token logits": [of_tokens[0].numpy()]} if not model.config.pools_states else {}
    elif model.config.dense:
        of_encoder |= {DENSE: [model.project(mean_state(model, hidden)).numpy()]}
    return of_encoder


def mean_state(model: TransformerEncoder, hidden: Tensor) -> Tensor:
    """Return the mean of states (1, S, E) as often as the model has ways to pool: (1, D), which its dense layers
    read."""
    return torch.cat([hidden.mean(dim=1)] * len(model.config.pooling), dim=1)


@contextmanager
def _outputs_of(*modules: nn.Module) -> Iterator[dict[nn.Module, list[Tensor]]]:
    of_each: dict[nn.Module, list[Tensor]] = {module: [] for module in modules}
    handles = [module.register_forward_hook(lambda m, _inputs, output: of_each[m].append(output)) for module in modules]
    try:
        yield of_each
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def other_last_bits(model: ServedModel, last_bit: float = LAST_BITS) -> Iterator[None]:
    """Change the last bits of what every layer reads, at random, as another order of its sums would.

    What follows of it is how much a model amplifies rounding (Parker 1997, "Monte Carlo Arithmetic").
    """
    random = torch.Generator().manual_seed(0)

    def changed(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        return x * (1 + last_bit * (2 * torch.rand(x.shape, generator=random) - 1))

    def hook(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        others = {id(x): changed(x) for x in inputs}  # what is one tensor stays one
        return tuple(others[id(x)] for x in inputs)

    layers = [m for m in model.modules() if isinstance(m, MultiHeadAttention) or not list(m.children())]
    handles = [layer.register_forward_pre_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def centred(distributions: Array) -> Array:
    """Subtract the mean from log-probabilities: logits again, whatever the mean of the logits was.

    The mean is a float64: NumPy adds up numbers that do not lie side by side one by one, and in float32 the mean of
    250,000 of them is off by a hundred-thousandth.
    """
    means = distributions.mean(axis=-1, keepdims=True, dtype=np.float64)
    centred: Array = (distributions - means).astype(np.float32)
    return centred
