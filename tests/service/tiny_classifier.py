"""A hand-made classifier, and an encoder for embeddings with its weights, as `tiny_artifacts` makes a translator.

`TinyClassifier.logits` is an oracle: the same model in numpy, one text at a time, without padding or batches.

Legend: B batch, S source, E width, V vocabulary, C labels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from tokenizers import processors

from tests.service.oracle import EOS
from tests.service.tiny_artifacts import BOS, V, attend, attention_weights, tokenizer, write_artifact
from tests.service.tiny_graph import Array, E, Graph, H, Weights

LABELS = ["negative", "neutral", "positive"]
WINDOW = 7


class TinyClassifier:
    """A bag of words: per-token logits, pooled. Its attention, of which nothing depends, is that of an encoder.

    Args:
        pairs: whether it reads pairs of texts, with special tokens as BERT has them.
    """

    def __init__(self, seed: int, pooling: str, labels: Sequence[str] = LABELS, pairs: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.labels, self.pairs = [*labels], pairs
        self.weights: Weights = {"token_logits_table": rng.standard_normal((V, len(labels))).astype(np.float32)}
        self.weights["embedding"] = rng.standard_normal((V, E)).astype(np.float32)
        self.weights |= {f"encoder.{part}": rng.standard_normal((E, E)).astype(np.float32) / 5 for part in "qk"}
        self.pooling = pooling

    def logits(self, token_ids: list[int]) -> Array:
        """Of a text of any length, read at once."""
        per_token = self.weights["token_logits_table"][token_ids]  # (S, C)
        pooled: Array = per_token.mean(0) if self.pooling == "mean" else per_token.max(0)
        return pooled

    def save(self, directory: Path, name: str = "tiny-sentiment", **changes: Any) -> Path:
        """Write the artifact; `changes` replace parts of its manifest."""
        graphs = {"classifier": self.classifier(), "attention": self.attention()}
        parts = {
            "name": name,
            "task": "classification",
            "sources": [],
            "targets": [],
            "labels": self.labels,
            "label_activation": "softmax",
            "limits": {"max_source_tokens": WINDOW, "max_target_tokens": 0},
            "pooling": self.pooling,
            "embedding": None,
            "decoding": None,
            "alignment": None,
            "evaluation": {"tiny-test": {"accuracy": 0.5}},
            "pairs": self.pairs,
        }
        tokens = tokenizer(end_of_sequence=False)
        if self.pairs:
            template = "<s> $A </s>", "<s> $A </s> $B:1 </s>:1"
            tokens.post_processor = processors.TemplateProcessing(*template, [("<s>", BOS), ("</s>", EOS)])
        return write_artifact(directory, self.weights, graphs, tokens, parts | changes)

    def save_for_embeddings(self, directory: Path, name: str = "tiny-vectors", cut_to: Sequence[int] = ()) -> Path:
        """Write its encoder as a model that was made for embeddings, with a prompt."""
        made = {"dimensions": E, "pooling": ["mean"], "normalize": True, "cut_to": [*cut_to]}
        prompts = {"prompts": {"query": "where "}, "default_prompt": None, "pool_prompt": True}
        parts = {
            "name": name,
            "task": "embedding",
            "sources": [],
            "targets": [],
            "labels": [],
            "label_activation": None,
            "limits": {"max_source_tokens": WINDOW, "max_target_tokens": 0},
            "pooling": None,
            "embedding": made | prompts,
            "decoding": None,
            "alignment": None,
            "evaluation": {},
        }
        graphs = {"encoder": self.classifier(), "attention": self.attention()}
        return write_artifact(directory, self.weights, graphs, tokenizer(end_of_sequence=False), parts)

    def states(self, token_ids: list[int]) -> Array:
        """What the encoder makes of the tokens of a window: (S, E)."""
        x = self.weights["embedding"][token_ids]
        q, k = (x @ self.weights[f"encoder.{part}"] for part in "qk")
        states: Array = x + attend(q, k, k)
        return states

    def matrix(self, token_ids: list[int]) -> Array:
        """What the tokens of a window attended to: (1, H, S, S)."""
        x = self.weights["embedding"][token_ids]
        return attention_weights(x @ self.weights["encoder.q"], x @ self.weights["encoder.k"])[None]

    def attention(self) -> onnx.ModelProto:
        graph = Graph(self.weights)
        graph.inputs("input_ids", TensorProto.INT64, ["B", "S"])
        graph.inputs("lengths", TensorProto.INT64, ["B"])
        x = graph.node("Gather", "embedding", "input_ids")
        q, k = (graph.heads(x, f"encoder.{part}") for part in "qk")
        matrix = graph.matrix(q, k, graph.valid("input_ids", "lengths"))
        stacked = graph.node("Unsqueeze", matrix, graph.constant(np.array([1])))
        graph.outputs("encoder", stacked, TensorProto.FLOAT, ["B", 1, H, "S", "S"])
        return graph.model()

    def classifier(self) -> onnx.ModelProto:
        graph = Graph(self.weights)
        graph.inputs("input_ids", TensorProto.INT64, ["B", "S"])
        graph.inputs("lengths", TensorProto.INT64, ["B"])
        per_token = graph.node("Gather", "token_logits_table", "input_ids")
        S = graph.node("Gather", graph.node("Shape", "input_ids"), graph.constant(np.array(1)))
        places = graph.node("Range", graph.constant(np.array(0)), S, graph.constant(np.array(1)))
        column, last = graph.constant(np.array([1])), graph.constant(np.array([2]))
        lengths = graph.node("Unsqueeze", "lengths", column)
        valid = graph.node("Unsqueeze", graph.node("Less", places, lengths), last)  # (B, S, 1)
        zero, low = graph.constant(np.zeros(1, np.float32)), graph.constant(np.full(1, -1e9, np.float32))
        masked = graph.node("Where", valid, per_token, zero)
        masked = graph.outputs("token_logits", masked, TensorProto.FLOAT, ["B", "S", len(self.labels)])
        if self.pooling == "mean":
            total = graph.node("ReduceSum", masked, column, keepdims=0)
            pooled = graph.node("Div", total, graph.node("Cast", lengths, to=TensorProto.FLOAT))
        else:
            pooled = graph.node("ReduceMax", graph.node("Where", valid, per_token, low), column, keepdims=0)
        graph.outputs("logits", pooled, TensorProto.FLOAT, ["B", len(self.labels)])
        x = graph.node("Gather", "embedding", "input_ids")
        q, k = (graph.heads(x, f"encoder.{part}") for part in "qk")
        states = graph.node("Add", x, graph.attention(q, k, graph.heads(x, "encoder.k"), "lengths"))
        graph.outputs("last_hidden_state", states, TensorProto.FLOAT, ["B", "S", E])
        return graph.model()
