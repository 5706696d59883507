"""Hand-made artifacts: real graphs of the artifact contract with random weights, all dimensions different.

`TinyTranslator.translate` and `TinyTranslator.search` are oracles: the same model in numpy, one text at a time, without
caches, padding or batches. The classifier is in tiny_classifier.py.

Legend: B batch, S source, T target, R decoder rows, N sources, W rows of one source, L cache length, H heads,
D head_dim, E = H * D, V vocabulary.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.external_data_helper import set_external_data
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from service.engine.search import Hypothesis
from tests.service.oracle import EOS, beam_search, finish_reason
from tests.service.tiny_graph import Array, D, E, Graph, H, Weights

N_LAYERS = 2
PUNCTUATION = ".,!?"
WORDS = [*"a the dog cat man horse runs sees rides red old on in beach field".split(), *PUNCTUATION]  # noqa: SIM905
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
PAD, UNK, BOS = range(3)
assert SPECIAL[EOS] == "</s>"
V = len(SPECIAL) + len(WORDS)
MAX_SOURCE_TOKENS = 40
MAX_TARGET_TOKENS = 70


def language(code: str, source_prefix: tuple[int, ...] = (), target_prefix: tuple[int, ...] = ()) -> dict[str, Any]:
    """As a manifest has it."""
    return {"code": code, "source_prefix": [*source_prefix], "target_prefix": [*target_prefix]}


class TinyTranslator:
    """One encoder layer and two decoder layers of attention without feed-forward.

    Args:
        languages: tokens that name languages, behind the words.
    """

    def __init__(self, seed: int, languages: Sequence[str] = ()) -> None:
        self.languages = {name: i for i, name in enumerate(languages, start=V)}
        rng = np.random.default_rng(seed)

        def normal(*shape: int) -> Array:
            values: Array = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
            return values

        names = [f"encoder.{part}" for part in "qkv"]
        names += [
            f"{i}.{attention}.{part}" for i in range(N_LAYERS) for attention in ("self", "cross") for part in "qkv"
        ]
        self.weights: Weights = {name: normal(E, E) for name in names}
        self.weights["embedding"] = 6 * normal(V + len(languages), E)
        self.weights["positions_table"] = 3 * normal(MAX_TARGET_TOKENS, E)
        self.weights["vocabulary"] = 2 * normal(E, V + len(languages))
        self.weights["vocabulary"][:, [PAD, UNK, BOS, *self.languages.values()]] = 0
        self.weights["vocabulary"][:, EOS] *= 1.6  # so that both ways of finishing occur

    def translate(self, source_ids: list[int], max_target_tokens: int) -> tuple[list[int], float]:
        """Greedy target and the sum of its log-probabilities, every step computed from nothing."""
        target: list[int] = []
        total = 0.0
        while not target or finish_reason(target, len(source_ids), max_target_tokens) is None:
            log_probs = self.next_log_probs(source_ids, target)
            if not target:
                log_probs[EOS] = -np.inf
            target.append(int(log_probs.argmax()))
            total += float(log_probs.max())
        return target, total

    def search(
        self,
        source_ids: list[int],
        max_target_tokens: int,
        beam_size: int,
        length_penalty: float,
        n_best: int,
        beam_threshold: float = math.inf,
        prefix: tuple[int, ...] = (),
    ) -> list[Hypothesis]:
        """The n_best targets of beam search, every step computed from nothing."""
        return beam_search(
            lambda target: self.next_log_probs(source_ids, target),
            len(source_ids),
            max_target_tokens,
            beam_size,
            length_penalty,
            n_best,
            beam_threshold,
            prefix=prefix,
        )

    def states(self, source_ids: list[int]) -> Array:
        """What the encoder makes of the tokens of a source: (S, E)."""
        w = self.weights
        x = w["embedding"][source_ids]
        states: Array = x + attend(x @ w["encoder.q"], x @ w["encoder.k"], x @ w["encoder.v"])
        return states

    def next_log_probs(self, source_ids: list[int], target: list[int]) -> Array:
        """Of every token (V) after a target."""
        w = self.weights
        memory = self.states(source_ids)
        inputs = [BOS, *target]
        y = w["embedding"][inputs] + w["positions_table"][: len(inputs)]  # (T, E)
        causal = np.tril(np.ones((len(inputs), len(inputs)), bool))
        for i in range(N_LAYERS):
            y = y + attend(y @ w[f"{i}.self.q"], y @ w[f"{i}.self.k"], y @ w[f"{i}.self.v"], causal)
            y = y + attend(y @ w[f"{i}.cross.q"], memory @ w[f"{i}.cross.k"], memory @ w[f"{i}.cross.v"])
        return log_softmax(y[-1] @ w["vocabulary"])

    def matrices(self, source_ids: list[int], read_ids: list[int]) -> dict[str, Array]:
        """What source and target attended to, by kind: (layers, H, rows, columns)."""
        w = self.weights
        x = w["embedding"][source_ids]
        q, k, v = (x @ w[f"encoder.{part}"] for part in "qkv")
        memory = x + attend(q, k, v)
        found: dict[str, list[Array]] = {"encoder": [attention_weights(q, k)], "decoder": [], "cross": []}
        y = w["embedding"][read_ids] + w["positions_table"][: len(read_ids)]
        causal = np.tril(np.ones((len(read_ids), len(read_ids)), bool))
        for i in range(N_LAYERS):
            q, k, v = (y @ w[f"{i}.self.{part}"] for part in "qkv")
            found["decoder"].append(attention_weights(q, k, causal))
            y = y + attend(q, k, v, causal)
            q, k, v = (z @ w[f"{i}.cross.{part}"] for z, part in ((y, "q"), (memory, "k"), (memory, "v")))
            found["cross"].append(attention_weights(q, k))
            y = y + attend(q, k, v)
        return {kind: np.stack(layers) for kind, layers in found.items()}

    def save(self, directory: Path, name: str = "tiny-en-fr", **changes: Any) -> Path:
        """Write the artifact; `changes` replace parts of its manifest."""
        graphs = {"encoder": self.encoder(), "decoder_step": self.decoder_step(), "attention": self.attention()}
        parts = {
            "name": name,
            "task": "translation",
            "sources": [language("en")],
            "targets": [language("fr")],
            "labels": [],
            "label_activation": None,
            "limits": {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": MAX_TARGET_TOKENS},
            "pooling": None,
            "embedding": None,
            "decoding": {"beam_size": 2, "length_penalty": 1.0, "beam_threshold": 1000.0, "stop": "empty"},
            "alignment": {"layer": 1, "heads": [0, 2], "next_row": True},
            "evaluation": {"tiny-test": {"bleu": 12.5}},
        }
        tokens = tokenizer(end_of_sequence=True, languages=[*self.languages])
        return write_artifact(directory, self.weights, graphs, tokens, parts | changes)

    def encoder(self) -> onnx.ModelProto:
        graph = Graph(self.weights)
        graph.inputs("input_ids", TensorProto.INT64, ["B", "S"])
        graph.inputs("source_lengths", TensorProto.INT64, ["B"])
        x = graph.node("Gather", "embedding", "input_ids")
        q, k, v = (graph.heads(x, f"encoder.{part}") for part in "qkv")
        memory = graph.node("Add", x, graph.attention(q, k, v, "source_lengths"))
        memory = graph.outputs("last_hidden_state", memory, TensorProto.FLOAT, ["B", "S", E])
        for i in range(N_LAYERS):
            for part in ("key", "value"):
                keys = graph.node("MatMul", memory, f"{i}.cross.{part[0]}")
                graph.outputs(f"present.{i}.encoder.{part}", keys, TensorProto.FLOAT, ["B", "S", E])
        return graph.model()

    def decoder_step(self) -> onnx.ModelProto:
        graph = Graph(self.weights)
        graph.inputs("input_ids", TensorProto.INT64, ["R", 1])
        graph.inputs("positions", TensorProto.INT32, ["R"])
        graph.inputs("total_length", TensorProto.INT32, [1])
        graph.inputs("rows_of_sources", TensorProto.INT64, ["N", "W"])
        graph.inputs("places_of_rows", TensorProto.INT64, ["R"])
        graph.inputs("source_lengths", TensorProto.INT64, ["N"])
        graph.inputs("k", TensorProto.INT64, [1])
        positions = graph.node("Cast", "positions", to=TensorProto.INT64)
        n_valid = graph.node("Add", positions, graph.constant(np.array([1])))
        position = graph.node(
            "Unsqueeze", graph.node("Gather", "positions_table", positions), graph.constant(np.array([1]))
        )
        y = graph.node("Add", graph.node("Gather", "embedding", "input_ids"), position)
        for i in range(N_LAYERS):
            past = {}
            shapes: dict[str, list[Any]] = {"decoder": ["R", H, "L", D], "encoder": ["N", "S", E]}
            for attention, shape in shapes.items():
                for part in ("key", "value"):
                    name = f"past_key_values.{i}.{attention}.{part}"
                    past[attention, part] = graph.inputs(name, TensorProto.FLOAT, shape)
            key_and_value = []
            for part in ("key", "value"):
                update = graph.heads(y, f"{i}.self.{part[0]}")
                written = graph.node("TensorScatter", past["decoder", part], update, positions, axis=2)
                name = f"present.{i}.decoder.{part}"
                key_and_value.append(graph.outputs(name, written, TensorProto.FLOAT, ["R", H, "L", D]))
            key, value = key_and_value
            y = graph.node("Add", y, graph.attention(graph.heads(y, f"{i}.self.q"), key, value, n_valid))
            by_row = graph.node("Squeeze", graph.node("MatMul", y, f"{i}.cross.q"), graph.constant(np.array([1])))
            by_source = graph.node("Gather", by_row, "rows_of_sources")  # (N, W, E)
            memory = past["encoder", "key"], past["encoder", "value"]
            heads = {"q_num_heads": H, "kv_num_heads": H}
            context = graph.node("Attention", by_source, *memory, "", "", "", "source_lengths", **heads)
            places = graph.node("Reshape", context, graph.constant(np.array([-1, 1, E])))
            y = graph.node("Add", y, graph.node("Gather", places, "places_of_rows"))
        logits = graph.node("Squeeze", graph.node("MatMul", y, "vocabulary"), graph.constant(np.array([1])))
        log_probs, token_ids = graph.nodes("TopK", 2, graph.node("LogSoftmax", logits, axis=-1), "k")
        graph.outputs("token_ids", token_ids, TensorProto.INT64, ["R", "K"])
        graph.outputs("log_probs", log_probs, TensorProto.FLOAT, ["R", "K"])
        return graph.model()

    def attention(self) -> onnx.ModelProto:
        graph = Graph(self.weights)
        graph.inputs("input_ids", TensorProto.INT64, ["B", "S"])
        graph.inputs("source_lengths", TensorProto.INT64, ["B"])
        graph.inputs("target_ids", TensorProto.INT64, ["B", "T"])
        x = graph.node("Gather", "embedding", "input_ids")
        source = graph.valid("input_ids", "source_lengths")
        q, k, v = (graph.heads(x, f"encoder.{part}") for part in "qkv")
        found = {"encoder": [graph.matrix(q, k, source)], "decoder": [], "cross": []}
        memory = graph.node("Add", x, graph.attention(q, k, v, "source_lengths"))
        T = graph.node("Gather", graph.node("Shape", "target_ids"), graph.constant(np.array(1)))
        places = graph.node("Range", graph.constant(np.array(0)), T, graph.constant(np.array(1)))
        y = graph.node(
            "Add", graph.node("Gather", "embedding", "target_ids"), graph.node("Gather", "positions_table", places)
        )
        causal = graph.node(
            "GreaterOrEqual", graph.node("Unsqueeze", places, graph.constant(np.array([1]))), places
        )  # (T, T)
        for i in range(N_LAYERS):
            q, k, v = (graph.heads(y, f"{i}.self.{part}") for part in "qkv")
            found["decoder"].append(graph.matrix(q, k, causal))
            y = graph.node("Add", y, graph.context(found["decoder"][-1], v))
            q, k, v = (graph.heads(z, f"{i}.cross.{part}") for z, part in ((y, "q"), (memory, "k"), (memory, "v")))
            found["cross"].append(graph.matrix(q, k, source))
            y = graph.node("Add", y, graph.context(found["cross"][-1], v))
        for kind, layers in found.items():
            rows, columns = {"encoder": "SS", "decoder": "TT", "cross": "TS"}[kind]
            stacked = graph.node(
                "Concat", *(graph.node("Unsqueeze", m, graph.constant(np.array([1]))) for m in layers), axis=1
            )
            graph.outputs(kind, stacked, TensorProto.FLOAT, ["B", len(layers), H, rows, columns])
        return graph.model()


def save_translators(root: Path, translators: Mapping[str, tuple[int, str, str]]) -> Path:
    """Write the artifact of each translator: its name, and its seed, sources and targets."""
    for name, (seed, *codes) in translators.items():
        sources, targets = ([language(code) for code in some.split()] for some in codes)
        TinyTranslator(seed).save(root / name, name, sources=sources, targets=targets)
    return root


def attend(q: Array, k: Array, v: Array, mask: NDArray[np.bool_] | None = None) -> Array:
    """Soft attention with H heads, merged: (T, E) over (S, E)."""
    context = attention_weights(q, k, mask) @ v.reshape(len(v), H, D).transpose(1, 0, 2)  # (H, T, D)
    merged: Array = context.transpose(1, 0, 2).reshape(len(q), E)
    return merged


def attention_weights(q: Array, k: Array, mask: NDArray[np.bool_] | None = None) -> Array:
    """(H, T, S)."""
    query, key = (x.reshape(len(x), H, D).transpose(1, 0, 2) for x in (q, k))
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(D)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights: Array = np.exp(log_softmax(scores))
    return weights


def log_softmax(x: Array) -> Array:
    shifted = x - x.max(-1, keepdims=True)
    normalized: Array = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return normalized


def tokenizer(end_of_sequence: bool, languages: Sequence[str] = ()) -> Tokenizer:
    """One token per word with the space before it, or punctuation mark without; byte-level, as the real ones are."""
    words = [word if word in PUNCTUATION else f"Ġ{word}" for word in WORDS]
    result = Tokenizer(models.WordLevel({token: i for i, token in enumerate([*SPECIAL, *words])}, unk_token="<unk>"))
    unspaced = [normalizers.Replace(f" {mark}", mark) for mark in PUNCTUATION]
    result.normalizer = normalizers.Sequence([normalizers.Prepend(" "), *unspaced])
    result.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r" ?[^\s.,!?]+|[.,!?]|\s"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    result.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    result.add_special_tokens([*SPECIAL, *languages])
    if end_of_sequence:
        result.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", EOS)])
    return result


def write_artifact(
    directory: Path, weights: Weights, graphs: dict[str, onnx.ModelProto], tokens: Tokenizer, parts: dict[str, Any]
) -> Path:
    """Weights, graphs for the CPU that name them, and a manifest with its `parts`."""
    (directory / "cpu").mkdir(parents=True)
    save_file(weights, directory / "weights.safetensors")
    tokens.save(str(directory / "tokenizer.json"))
    taken = {}
    for name, graph in graphs.items():
        named = [tensor for tensor in graph.graph.initializer if tensor.name in weights]
        for tensor in named:
            set_external_data(tensor, "weights.safetensors")
            tensor.ClearField("raw_data")
        (directory / "cpu" / f"{name}.onnx").write_bytes(graph.SerializeToString())
        taken[f"cpu/{name}.onnx"] = {"float32": [tensor.name for tensor in named]}
    manifest = {
        "format_version": 9,
        "precision": "fp32",
        "opset": 24,
        "dimensions": {
            "d_model": E,
            "n_heads": H,
            "head_dim": D,
            "d_ff": 40,
            "n_encoder_layers": 1,
            "n_decoder_layers": N_LAYERS if parts["task"] == "translation" else 0,
            "vocab_size": tokens.get_vocab_size(),
            "target_vocab_size": tokens.get_vocab_size(),
        },
        "special_tokens": {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS},
        "graphs": taken,
        "files": {path.relative_to(directory).as_posix(): file_sum(path) for path in directory.rglob("*.*")},
        **parts,
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2))
    return directory


def file_sum(path: Path) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
