"""Names of weights and settings in the families of encoders that transformers has.

Source: Devlin et al. 2019, "BERT"; Liu et al. 2019, "RoBERTa"; Sanh et al. 2019, "DistilBERT".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from model.importing import deberta, modernbert, mpnet

Settings = Callable[[Mapping[str, Any]], dict[str, Any]]
Tables = Callable[[Mapping[str, Tensor], Mapping[str, Any], Mapping[str, Any]], Iterator[tuple[str, Tensor]]]


@dataclass(frozen=True)
class Naming:
    """Names of weights and settings in one family of encoders.

    Attributes:
        prefix: prefix of the encoder's weights if there is a head beside it.
        layers: prefix of a layer's weights, before its number.
        projections: those of queries, keys and values, or all in one.
        parts: other parts of a layer, by our names.
        sizes: keys of config.json, by our names.
        fixed: values that config.json may leave out.
        tied: the output projection of a language model, to which the token table is tied.
        pads_first: whether positions are counted from after the padding id.
        padding_id: that id, if it is fixed in the family, whatever config.json says.
        tokens: the table of tokens.
        norms: normalizations outside of the layers, by our names.
        settings: returns the fields of a LayerConfig that differ from BERT's, given a config.json.
        tables: yields further weights by our names, given the encoder's tensors, its config.json and its fields.
    """

    family: str
    prefix: str
    layers: str
    projections: tuple[str, ...]
    parts: Mapping[str, str]
    sizes: Mapping[str, str]
    fixed: Mapping[str, Any]
    tied: str
    pads_first: bool = False
    padding_id: int | None = None
    tokens: str = "embeddings.word_embeddings.weight"
    norms: Mapping[str, str] = field(default_factory=lambda: {"embedding.norm": "embeddings.LayerNorm"})
    settings: Settings = lambda _: {}
    tables: Tables = lambda *_: iter(())


BERT = Naming(
    "BERT",
    "bert.",
    layers="encoder.layer.",
    projections=("attention.self.query", "attention.self.key", "attention.self.value"),
    parts={
        "self_attention.output": "attention.output.dense",
        "add_norm_self.norm": "attention.output.LayerNorm",
        "feed_forward.hidden": "intermediate.dense",
        "feed_forward.output": "output.dense",
        "add_norm_feed_forward.norm": "output.LayerNorm",
    },
    sizes={
        "d_model": "hidden_size",
        "n_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "n_encoder_layers": "num_hidden_layers",
        "activation": "hidden_act",
        "norm_eps": "layer_norm_eps",
        "dropout": "hidden_dropout_prob",
    },
    fixed={"activation": "gelu", "norm_eps": 1e-12, "dropout": 0.1},
    tied="cls.predictions.decoder.weight",
)
ROBERTA = replace(BERT, family="RoBERTa", prefix="roberta.", tied="lm_head.decoder.weight", pads_first=True)


NAMINGS: Mapping[str, Naming] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": replace(ROBERTA, family="XLM-RoBERTa"),
    "camembert": replace(ROBERTA, family="CamemBERT"),
    "distilbert": Naming(
        "DistilBERT",
        "distilbert.",
        layers="transformer.layer.",
        projections=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        parts={
            "self_attention.output": "attention.out_lin",
            "add_norm_self.norm": "sa_layer_norm",
            "feed_forward.hidden": "ffn.lin1",
            "feed_forward.output": "ffn.lin2",
            "add_norm_feed_forward.norm": "output_layer_norm",
        },
        sizes={
            "d_model": "dim",
            "n_heads": "n_heads",
            "d_ff": "hidden_dim",
            "n_encoder_layers": "n_layers",
            "activation": "activation",
            "dropout": "dropout",
        },
        fixed={"activation": "gelu", "norm_eps": 1e-12, "dropout": 0.1},
        tied="vocab_projector.weight",
    ),
    "mpnet": replace(
        ROBERTA,
        family="MPNet",
        prefix="mpnet.",
        padding_id=1,
        projections=("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        parts={**BERT.parts, "self_attention.output": "attention.attn.o", "add_norm_self.norm": "attention.LayerNorm"},
        settings=mpnet.settings,
        tables=mpnet.tables,
    ),
    "deberta-v2": replace(
        BERT,
        family="DeBERTa-v2",
        prefix="deberta.",
        projections=("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"),
        fixed={**BERT.fixed, "norm_eps": 1e-7},
        settings=deberta.settings,
        tables=deberta.tables,
    ),
    "modernbert": Naming(
        "ModernBERT",
        "model.",
        layers="layers.",
        projections=("attn.Wqkv",),
        parts={
            "self_attention.output": "attn.Wo",
            "add_norm_self.norm": "attn_norm",
            "feed_forward.hidden": "mlp.Wi",
            "feed_forward.output": "mlp.Wo",
            "add_norm_feed_forward.norm": "mlp_norm",
        },
        sizes={
            "d_model": "hidden_size",
            "n_heads": "num_attention_heads",
            "d_ff": "intermediate_size",
            "n_encoder_layers": "num_hidden_layers",
            "norm_eps": "norm_eps",
            "dropout": "mlp_dropout",
        },
        fixed={"norm_eps": 1e-5, "dropout": 0.0},
        tied="decoder.weight",
        tokens="embeddings.tok_embeddings.weight",
        norms={"embedding.norm": "embeddings.norm", "encoder.final_norm": "final_norm"},
        settings=modernbert.settings,
    ),
}
"""Naming by model_type."""
