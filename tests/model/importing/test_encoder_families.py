"""What families of encoders have beside BERT is read in all its forms, or refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import build_model
from model.config import ClassifierConfig
from model.importing import bert
from model.importing.imported import ModelImportError, Options
from model.weights import assign_weights
from tests.model.importing.encoder_checkpoints import (
    N_POSITIONS,
    TEXTS,
    original_logits,
    write_encoder,
    write_pieces_of_deberta,
)

HEAD = "ForSequenceClassification"
PLAIN_TEXTS = [text for text in TEXTS if "[SEP]" not in text]
"""Texts without names of special tokens, which are pieces for the library, as in transformers."""


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("mpnet", {"pad_token_id": 0}),
        ("deberta-v2", {"share_att_key": False}),
        ("deberta-v2", {"pos_att_type": "c2p", "norm_rel_ebd": "none"}),
        ("deberta-v2", {"pos_att_type": ["p2c"], "position_buckets": -1}),
        ("deberta-v2", {"max_relative_positions": 30, "pooler_hidden_act": "tanh"}),
        ("deberta-v2", {"position_biased_input": True, "type_vocab_size": 2}),
        ("deberta-v2", {"type_vocab_size": 2}),
        ("modernbert", {"classifier_pooling": "mean", "global_attn_every_n_layers": 2, "num_hidden_layers": 4}),
        ("modernbert", {"layer_types": ["sliding_attention", "full_attention"], "hidden_activation": "silu"}),
        ("modernbert", dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), True)),
    ],
)
def test_variants_of_a_family_compute_what_transformers_does(
    tmp_path: Path, family: str, changes: dict[str, Any]
) -> None:
    original = write_encoder(tmp_path, family, HEAD, **changes)
    imported = bert.import_directory(tmp_path, Options())
    model = build_model(imported.config)
    assign_weights(model, imported.weights)
    for text in PLAIN_TEXTS:
        ids = imported.tokenizer.encode(text).ids[:N_POSITIONS]
        with torch.inference_mode():
            logits = model.eval()(torch.tensor([ids]), torch.tensor([len(ids)]))[0][0]
        assert logits.tolist() == pytest.approx(original_logits(original, ids).tolist(), rel=1e-5, abs=1e-5)


def change(directory: Path, **changes: Any) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("deberta-v2", {"conv_kernel_size": 3}, "models with a convolution are not supported"),
        ("deberta-v2", {"pos_att_type": "c2p|p2p"}, "`pos_att_type` has p2p; c2p and p2c are supported"),
        ("deberta-v2", {"attention_head_size": 12}, "`attention_head_size` must be 8"),
        ("deberta-v2", {"share_att_key": False}, "the weights have no encoder.layer.0.attention.self.pos_key_proj"),
        ("deberta-v2", {"pooler_hidden_act": "mish"}, "pooler: Input should be 'tanh', 'relu' or 'gelu'"),
        ("modernbert", {"mlp_bias": True}, "some of attention_bias, mlp_bias, .* are set; all or none must be"),
        ("modernbert", {"rope_scaling": {"type": "yarn"}, "rope_parameters": None}, "positions of type yarn are not"),
        ("modernbert", {"classifier_pooling": "max"}, "`classifier_pooling` is max; cls and mean are supported"),
        ("modernbert", {"hidden_activation": "mish"}, "activation mish is not supported"),
        ("modernbert", {"num_hidden_layers": 1, "layer_types": None}, "which no ModernBERT has"),
    ],
)
def test_what_a_family_does_not_have_here_is_refused_in_a_sentence(
    tmp_path: Path, family: str, changes: dict[str, Any], message: str
) -> None:
    write_encoder(tmp_path, family, HEAD)
    change(tmp_path, **changes)
    with pytest.raises(ModelImportError, match=message):
        bert.import_directory(tmp_path, Options())


def test_settings_of_older_files_are_read(tmp_path: Path) -> None:
    """Published directories of ModernBERT name the rotary bases and the layers otherwise than transformers today."""
    write_encoder(tmp_path, "modernbert", HEAD)
    bases = {"global_rope_theta": 80000.0, "local_rope_theta": 5000.0}
    change(tmp_path, rope_parameters=None, layer_types=None, global_attn_every_n_layers=2, **bases)
    model = bert.import_directory(tmp_path, Options()).config.model
    assert isinstance(model, ClassifierConfig)
    assert model.local_attention is not None
    assert (model.rotary_base, model.local_attention.rotary_base, model.local_attention.layers) == (80000, 5000, (1,))


def test_pieces_of_deberta_are_those_of_sentencepiece(tmp_path: Path) -> None:
    import sentencepiece

    write_encoder(tmp_path, "deberta-v2", HEAD)
    (tmp_path / "tokenizer.json").unlink()
    write_pieces_of_deberta(tmp_path)
    original = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    imported = bert.import_directory(tmp_path, Options())
    assert imported.config.model.special_tokens.model_dump() == {"pad": 0, "unk": 3, "bos": 1, "eos": 2}
    assert imported.tokenizer.token_to_id("[MASK]") == original.vocab_size()
    for text in PLAIN_TEXTS:
        assert imported.tokenizer.encode(text).ids == [1, *original.encode(text), 2], text
