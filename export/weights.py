"""weights.bin: every weight of an artifact's graphs, once, however many of them use it.

Graphs repeat much: attention.onnx has the encoder's and the decoder's weights once more. They refer to the file by its
name, and ONNX Runtime maps it into memory from beside the graph.
"""

from collections.abc import Iterable
from pathlib import Path

import onnx_ir as ir

WEIGHTS = "weights.bin"

SMALLEST = 1024
"""Bytes of a weight that is worth a reference; smaller ones stay in their graphs."""

ALIGNMENT = 64
"""A cache line, which is also the widest vector of a CPU."""


def store_weights(models: Iterable[ir.Model], directory: Path) -> None:
    """Move the models' initializers into weights.bin of `directory`; equal bytes share one place in it."""
    places: dict[bytes, int] = {}
    with (directory / WEIGHTS).open("wb") as file:
        for model in models:
            for weight in model.graph.initializers.values():
                tensor = weight.const_value
                assert tensor is not None
                content = tensor.tobytes()
                if len(content) < SMALLEST:
                    continue
                if content not in places:
                    file.write(bytes(-file.tell() % ALIGNMENT))
                    places[content] = file.tell()
                    file.write(content)
                weight.const_value = ir.ExternalTensor(
                    WEIGHTS,
                    places[content],
                    len(content),
                    tensor.dtype,
                    shape=ir.Shape(tensor.numpy().shape),
                    name=tensor.name or "",
                    base_dir=directory,
                )
