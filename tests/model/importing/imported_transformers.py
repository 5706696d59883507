"""Imported encoder-decoders as models and configurations."""

from model.checkpoint import build_model
from model.config import TransformerConfig
from model.importing.imported import ImportedModel
from model.networks.transformer import Transformer
from model.weights import assign_weights


def built(imported: ImportedModel) -> Transformer:
    model = build_model(imported.config)
    assign_weights(model, imported.weights)
    assert isinstance(model, Transformer)
    return model.eval()


def config_of(imported: ImportedModel) -> TransformerConfig:
    config = imported.config.model
    assert isinstance(config, TransformerConfig)
    return config
