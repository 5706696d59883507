"""Releases in Marian's own format with random weights, and their forward pass in NumPy by Marian's names.

Legend: S source, T target, E d_model, V vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import yaml

from tests.model.importing.sentencepieces import sentencepiece_model

D, HEADS, D_FF, ENCODER, DECODER = 24, 3, 40, 2, 3
MODEL = "opus.spm-spm.transformer-align.model1.npz.best-perplexity.npz"
ENGLISH = [
    "A small red house stands beside the river.",
    "Where is the station, and when does the train leave?",
    "The children read their books under the old tree.",
    "He says: it's late, we'll go home!",
]
FRENCH = [
    "Une petite maison rouge se trouve près de la rivière.",
    "Où est la gare, et quand part le train ?",
    "Les enfants lisent leurs livres sous le vieil arbre.",
    "Il dit : c'est tard, nous rentrons !",
]
OPTIONS: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": D,
    "enc-depth": ENCODER,
    "dec-depth": DECODER,
    "transformer-heads": HEADS,
    "transformer-dim-ffn": D_FF,
    "transformer-decoder-dim-ffn": 0,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-decoder-ffn-depth": 0,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-guided-alignment-layer": "last",
    "transformer-tied-layers": [],
    "transformer-no-projection": False,
    "transformer-train-position-embeddings": False,
    "right-left": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": False,
}
KINDS: dict[str, dict[str, Any]] = {
    "tied": {"tied-embeddings-all": True},
    "separate": {"tied-embeddings": True, "transformer-ffn-activation": "gelu"},
    "untied": {"transformer-ffn-activation": "relu"},
    "shared source": {"tied-embeddings-src": True},
    "ssru": {"tied-embeddings-all": True, "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"},
}


def write_release(
    directory: Path, kind: str = "tied", labels: Sequence[str] = (), separate: bool | None = None, **options: Any
) -> dict[str, np.ndarray]:
    """Write a release from English to French; return its arrays by name."""
    directory.mkdir()
    (directory / "source.spm").write_bytes(sentencepiece_model(ENGLISH * 8, 90))
    (directory / "target.spm").write_bytes(sentencepiece_model(FRENCH * 8, 80))
    source, target = (pieces_of(directory / name) for name in ("source.spm", "target.spm"))
    if kind == "separate" if separate is None else separate:
        vocabularies = {"opus.src.vocab.yml": source, "opus.trg.vocab.yml": target}
    else:
        joint = list(dict.fromkeys([*source, *target]))
        vocabularies = {"opus.spm-spm.vocab.yml": [*joint, *(f">>{code}<<" for code in labels)]}
    for name, pieces in vocabularies.items():
        write_vocabulary(directory / name, pieces)
    named = [next(iter(vocabularies)), list(vocabularies)[-1]]
    said = OPTIONS | KINDS[kind] | {key.replace("_", "-"): value for key, value in options.items()}
    arrays = random_arrays(said, len(vocabularies[named[0]]), len(vocabularies[named[1]]))
    write_npz(directory / MODEL, arrays, said)
    decoder = {"relative-paths": True, "models": [MODEL], "vocabs": named, "beam-size": 6, "normalize": 1}
    (directory / "decoder.yml").write_text(yaml.safe_dump(decoder | {"word-penalty": 0, "mini-batch": 1}))
    (directory / "README.md").write_text(
        "# opus-2019.zip\n\n* source language(s): de\n* target language(s): de\n"
        "# opus-2020.zip\n\n* source language(s): en\n* target language(s): fr\n"
    )
    (directory / "LICENSE").write_text("\nAttribution 4.0 International\n\n====\n")
    return arrays


def pieces_of(path: Path) -> list[str]:
    """Number pieces as OPUS-MT does: </s> and <unk> first."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return ["</s>", "<unk>", *(processor.id_to_piece(i) for i in range(3, len(processor)))]


def write_vocabulary(path: Path, pieces: Sequence[str]) -> None:
    lines = (yaml.safe_dump({piece: i}, allow_unicode=True) for i, piece in enumerate(pieces))
    path.write_text("".join(lines), encoding="utf-8")


def write_npz(path: Path, arrays: Mapping[str, np.ndarray], options: Mapping[str, Any]) -> None:
    said = np.frombuffer(yaml.safe_dump(dict(options)).encode() + b"\0", dtype=np.int8)
    with path.open("wb") as file:
        np.savez(file, **arrays, **{"special:model.yml": said})


def random_arrays(options: Mapping[str, Any], n_source: int, n_target: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    arrays: dict[str, np.ndarray] = {}

    def new(name: str, *shape: int, mean: float = 0.0, scale: float | None = None) -> None:
        scale = shape[0] ** -0.5 if scale is None else scale
        arrays[name] = (mean + scale * rng.standard_normal(shape)).astype(np.float32)

    def norm(name: str) -> None:
        new(f"{name}_ln_scale", 1, D, mean=1, scale=0.1)
        new(f"{name}_ln_bias", 1, D, scale=0.1)

    for side, depth, attentions in (("encoder", ENCODER, ["self"]), ("decoder", DECODER, ["self", "context"])):
        for layer in (f"{side}_l{i}" for i in range(1, depth + 1)):
            is_recurrent = side == "decoder" and options["transformer-decoder-autoreg"] == "rnn"
            if is_recurrent:
                new(f"{layer}_rnn_W", D, D)
                new(f"{layer}_rnn_Wf", D, D)
                new(f"{layer}_rnn_bf", 1, D, scale=0.1)
                norm(f"{layer}_rnn_ffn")
            for attention in attentions[is_recurrent:]:
                for x in "qkvo":
                    new(f"{layer}_{attention}_W{x}", D, D)
                    new(f"{layer}_{attention}_b{x}", 1, D, scale=0.1)
                norm(f"{layer}_{attention}_Wo")
            new(f"{layer}_ffn_W1", D, D_FF)
            new(f"{layer}_ffn_b1", 1, D_FF, scale=0.1)
            new(f"{layer}_ffn_W2", D_FF, D)
            new(f"{layer}_ffn_b2", 1, D, scale=0.1)
            norm(f"{layer}_ffn_ffn")
    if options["tied-embeddings-all"] or options["tied-embeddings-src"]:
        new("Wemb", n_source, D, scale=D**-0.5)
    else:
        new("encoder_Wemb", n_source, D, scale=D**-0.5)
        new("decoder_Wemb", n_target, D, scale=D**-0.5)
    if not (options["tied-embeddings-all"] or options["tied-embeddings"]):
        new("decoder_ff_logit_out_Wt", n_target, D, scale=D**-0.5)
    new("decoder_ff_logit_out_b", 1, n_target, scale=0.1)
    return arrays


def logits(
    arrays: Mapping[str, np.ndarray], activation: str, tied: bool, source: Sequence[int], target: Sequence[int]
) -> np.ndarray:
    """Return the log-probabilities (T, V) of every target token given those before it."""
    w = {name: array.astype(np.float64) for name, array in arrays.items()}

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return normed * w[f"{name}_ln_scale"] + w[f"{name}_ln_bias"]

    def attended(x: np.ndarray, y: np.ndarray, name: str, causal: bool = False) -> np.ndarray:
        q, k, v = (z @ w[f"{name}_W{n}"] + w[f"{name}_b{n}"] for z, n in ((x, "q"), (y, "k"), (y, "v")))
        contexts = []
        for head in np.split(np.arange(D), HEADS):
            scores = q[:, head] @ k[:, head].T / math.sqrt(D // HEADS)
            scores = np.where(np.tri(*scores.shape) > 0, scores, -np.inf) if causal else scores
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            contexts.append(weights / weights.sum(-1, keepdims=True) @ v[:, head])
        output = np.concatenate(contexts, -1) @ w[f"{name}_Wo"] + w[f"{name}_bo"]
        return norm(x + output, f"{name}_Wo")

    def recurred(x: np.ndarray, name: str) -> np.ndarray:
        state, outputs = np.zeros(D), []
        for token in x:
            forget = 1 / (1 + np.exp(-(token @ w[f"{name}_Wf"] + w[f"{name}_bf"][0])))
            state = forget * state + (1 - forget) * (token @ w[f"{name}_W"])
            outputs.append(np.maximum(state, 0))
        return norm(x + np.array(outputs), f"{name}_ffn")

    def fed(x: np.ndarray, name: str) -> np.ndarray:
        hidden = ACTIVATIONS[activation](x @ w[f"{name}_W1"] + w[f"{name}_b1"])
        return norm(x + hidden @ w[f"{name}_W2"] + w[f"{name}_b2"], f"{name}_ffn")

    decoder_table = w.get("Wemb", w.get("decoder_Wemb"))
    assert decoder_table is not None
    x = w.get("Wemb", w.get("encoder_Wemb"))[list(source)] * math.sqrt(D) + positions(len(source))  # type: ignore[index]
    for layer in (f"encoder_l{i}" for i in range(1, ENCODER + 1)):
        x = fed(attended(x, x, f"{layer}_self"), f"{layer}_ffn")
    y = np.concatenate([np.zeros((1, D)), decoder_table[list(target)[:-1]] * math.sqrt(D)]) + positions(len(target))
    for layer in (f"decoder_l{i}" for i in range(1, DECODER + 1)):
        is_recurrent = f"{layer}_rnn_W" in w
        y = recurred(y, f"{layer}_rnn") if is_recurrent else attended(y, y, f"{layer}_self", causal=True)
        y = attended(y, x, f"{layer}_context")
        y = fed(y, f"{layer}_ffn")
    return y @ (decoder_table if tied else w["decoder_ff_logit_out_Wt"]).T + w["decoder_ff_logit_out_b"]


def positions(n: int) -> np.ndarray:
    half = D // 2
    angles = [[p / 10000 ** (i / (half - 1)) for i in range(half)] for p in range(n)]
    return np.array([[*map(math.sin, row), *map(math.cos, row)] for row in angles])


ACTIVATIONS = {
    "swish": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}
