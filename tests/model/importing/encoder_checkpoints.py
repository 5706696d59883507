"""Tiny encoders in directories as transformers saves them, with tokenizers trained here in each format.

All dimensions differ, and weights are so large that every token changes the result of a text.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn

from tests.model.importing.sentencepieces import sentencepiece_model

TEXTS = [
    "A masterpiece of film-making, I'd say.",
    "Two hours of my life that nobody gives back to me!",
    "It is neither good nor bad: 7 out of 10, perhaps 8.",
    "  Spaces before,\ttabs  between\nand a line break; a no-break\u00a0space too. ",
    "Ünïcode: naïve façade, straße, ÉCOLE, Ελληνικά, 東京タワー, e\u0301 \ufb01 \uff21 👍🏽",
    "He said [SEP] and </s> as one says words.",
    "x",
    "The ending was the best of it, and the rest of it was dull, " * 6,
]
SIZES = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40, "num_hidden_layers": 2}
N_POSITIONS = 48
"""Number of positions; the last of the texts has more tokens."""


def write_word_pieces(directory: Path) -> int:
    """Write only vocab.txt, as in older directories of BERT; return the number of tokens."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=190, special_tokens=special, limit_alphabet=60, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    ids = tokenizer.get_vocab()
    (directory / "vocab.txt").write_text("".join(f"{token}\n" for token in sorted(ids, key=ids.__getitem__)))
    (directory / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 512}))
    return len(ids)


def write_tokenizer_json(directory: Path) -> int:
    """Write a tokenizer.json with truncation and padding, as sentence-transformers does; serving must not use them."""
    n_tokens = write_word_pieces(directory)
    fast = transformers.BertTokenizer.from_pretrained(directory).backend_tokenizer
    fast.enable_truncation(16)
    fast.enable_padding(length=16)
    (directory / "vocab.txt").unlink()
    fast.save(str(directory / "tokenizer.json"))
    return n_tokens


def write_byte_pairs(directory: Path) -> int:
    """Write RoBERTa's vocab.json and merges.txt."""
    tokenizer = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(TEXTS, vocab_size=330, special_tokens=special, show_progress=False)
    tokenizer.save_model(str(directory))
    return int(tokenizer.get_vocab_size())


def write_sentence_pieces(directory: Path) -> int:
    """Write XLM-RoBERTa's sentencepiece.bpe.model, a unigram model in spite of its name."""
    import sentencepiece  # prints at its first use

    model = sentencepiece_model(TEXTS * 3, 170, character_coverage=0.98)
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    return int(sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()) + 2  # <pad> and <mask>


def write_camembert_pieces(directory: Path) -> int:
    """Write CamemBERT's file of the same name: special tokens, all pieces but the first, and a mask."""
    return write_sentence_pieces(directory) + 3


def write_word_pieces_of_mpnet(directory: Path) -> int:
    """Write only vocab.txt, with the names of special tokens of MPNet."""
    n_tokens = write_word_pieces(directory)
    names = {"[PAD]": "<pad>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    words = (directory / "vocab.txt").read_text().split("\n")
    (directory / "vocab.txt").write_text("\n".join(names.get(word, word) for word in words))
    return n_tokens


def write_pieces_of_deberta(directory: Path) -> int:
    """Write only spm.model, as in the published directories of DeBERTa."""
    import sentencepiece  # prints at its first use

    names = {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    model = sentencepiece_model(TEXTS * 3, 170, character_coverage=0.98, **names, **ids)
    (directory / "spm.model").write_bytes(model)
    return int(sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()) + 1  # [MASK]


def write_tokenizer_json_of_deberta(directory: Path) -> int:
    """Write a tokenizer.json: transformers reads spm.model without its normalization."""
    n_tokens = write_pieces_of_deberta(directory)
    transformers.DebertaV2Tokenizer.from_pretrained(directory).save_pretrained(directory)
    (directory / "spm.model").unlink()
    return n_tokens


def write_byte_pairs_of_modernbert(directory: Path) -> int:
    """Write a tokenizer.json of byte-level BPE with the special tokens of BERT."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    around = [("[CLS]", 2), ("[SEP]", 3)]
    pair = "[CLS] $A [SEP] $B [SEP]"
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", pair, special_tokens=around)
    tokenizer.save(str(directory / "tokenizer.json"))
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | names))
    return int(tokenizer.get_vocab_size())


Write = Callable[[Path], int]

FAMILIES: dict[str, tuple[str, Write, dict[str, Any]]] = {
    "bert": ("Bert", write_word_pieces, SIZES | {"max_position_embeddings": N_POSITIONS}),
    "distilbert": (
        "DistilBert",
        write_tokenizer_json,
        {"dim": 24, "n_heads": 3, "hidden_dim": 40, "n_layers": 2, "max_position_embeddings": N_POSITIONS},
    ),
    "roberta": (
        "Roberta",
        write_byte_pairs,
        SIZES | {"max_position_embeddings": N_POSITIONS + 2, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    ),
    "xlm-roberta": (
        "XLMRoberta",
        write_sentence_pieces,
        SIZES | {"max_position_embeddings": N_POSITIONS + 2, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    ),
    "camembert": (
        "Camembert",
        write_camembert_pieces,
        SIZES | {"max_position_embeddings": N_POSITIONS + 2, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    ),
    "mpnet": (
        "MPNet",
        write_word_pieces_of_mpnet,
        SIZES | {"max_position_embeddings": N_POSITIONS + 2, "layer_norm_eps": 1e-5},
    ),
    "deberta-v2": (
        "DebertaV2",
        write_tokenizer_json_of_deberta,
        SIZES
        | {
            "max_position_embeddings": N_POSITIONS,
            "relative_attention": True,
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": "p2c|c2p",
            "position_biased_input": False,
        },
    ),
    "modernbert": (
        "ModernBert",
        write_byte_pairs_of_modernbert,
        SIZES
        | {"max_position_embeddings": N_POSITIONS, "local_attention": 10, "pad_token_id": 0}
        | {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    ),
}
"""Class name, tokenizer and settings by model_type."""


def write_encoder(directory: Path, family: str, kind: str, **changes: Any) -> Any:
    """Write a directory and return the model of transformers in it.

    Args:
        kind: "Model", or "ForSequenceClassification".
        changes: changes of the configuration.
    """
    directory.mkdir(parents=True, exist_ok=True)
    name, write_tokenizer, sizes = FAMILIES[family]
    n_tokens = write_tokenizer(directory)
    config = getattr(transformers, f"{name}Config")(**{"vocab_size": n_tokens} | sizes | changes)
    model = getattr(transformers, f"{name}{kind}")(config).eval()
    randomize(model)
    model.save_pretrained(directory)
    return model


def randomize(model: nn.Module) -> None:
    random = torch.Generator().manual_seed(7)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=random)
        parameter.data = 1 + values / 5 if "orm.weight" in name else values * (1.0 if "word_emb" in name else 0.3)


def original_tokenizer(directory: Path) -> Any:
    """Load the tokenizer of a directory with transformers."""
    return transformers.AutoTokenizer.from_pretrained(directory)


def original_ids(directory: Path, text: str) -> list[int]:
    """Return the ids of transformers, which reads names of special tokens in a text as these tokens."""
    tokenizer = original_tokenizer(directory)
    ids: list[int] = tokenizer(text, truncation=False, padding=False, split_special_tokens=True)["input_ids"]
    return ids


@torch.inference_mode()
def original_logits(model: Any, ids: list[int]) -> Tensor:
    """Return the logits (C) of one sequence."""
    found: Tensor = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.int64))
    logits: Tensor = found.logits[0]  # type: ignore[attr-defined]
    return logits


@torch.inference_mode()
def original_states(model: Any, ids: list[int]) -> Tensor:
    """Return the last hidden states (S, E) of one sequence."""
    found = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.int64))
    states: Tensor = found.last_hidden_state[0]
    return states


MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


def pooled(states: Tensor, n_left_out: int = 0) -> Tensor:
    """Pool the states (S, E) of one text in each of the modes, as sentence-transformers defines them."""
    rows, places = states[n_left_out:], torch.arange(n_left_out, len(states))[:, None] + 1
    weighted, total = (rows * places).sum(dim=0) / places.sum(), rows.sum(dim=0)
    return torch.cat([rows[0], rows.amax(dim=0), total / len(rows), total / len(rows) ** 0.5, weighted, rows[-1]])


def write_modules(
    directory: Path,
    pooling: dict[str, Any],
    dense: Sequence[tuple[int, str, bool]] = (),
    transformer: str = "",
    normalize: bool = True,
) -> list[nn.Linear]:
    """Write the files of sentence-transformers around an encoder, with dense layers.

    Args:
        pooling: the configuration of the pooling.
        dense: width, activation and presence of a bias, for each layer.
        transformer: the folder of the encoder.
    """
    random = torch.Generator().manual_seed(11)
    modules, layers = [("Transformer", transformer), ("Pooling", "1_Pooling")], []
    modes = pooling.get("pooling_mode", "mean")
    width = SIZES["hidden_size"] * (1 if isinstance(modes, str) else len(modes))
    for i, (d_output, activation, has_bias) in enumerate(dense, start=2):
        layer = nn.Linear(width, d_output, has_bias)
        for parameter in layer.parameters():
            parameter.data = torch.randn(parameter.shape, generator=random) * 0.3
        path = directory / f"{i}_Dense"
        path.mkdir()
        settings = {"in_features": width, "out_features": d_output, "bias": has_bias}
        settings["activation_function"] = f"torch.nn.modules.{activation}"
        (path / "config.json").write_text(json.dumps(settings))
        torch.save(
            {f"linear.{name}": tensor for name, tensor in layer.state_dict().items()}, path / "pytorch_model.bin"
        )
        modules.append(("Dense", path.name))
        layers.append(layer)
        width = d_output
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if normalize:
        modules.append(("Normalize", f"{len(modules)}_Normalize"))
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules)
    ]
    (directory / "modules.json").write_text(json.dumps(listed))
    return layers
