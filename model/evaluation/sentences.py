"""Sentences that people try first, each with a right translation, to be looked at: `suites/SOURCE-TARGET.tsv`."""

from pathlib import Path

from model.config import ModelConfig, RecurrentConfig, TransformerConfig
from model.data import Row, read_tsv
from model.evaluation.cases import SUITES


def sentences_for(model: ModelConfig, directory: Path = SUITES) -> list[Row]:
    """Return the sentences of a translator's direction, with their translations; none if there is no file of them."""
    if not isinstance(model, TransformerConfig | RecurrentConfig):
        return []
    path = directory / f"{model.source}-{model.target}.tsv"
    return list(read_tsv(path)) if path.is_file() else []
