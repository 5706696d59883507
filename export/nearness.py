"""How near an artifact is to its model in float32: its graphs, as they are served, read what calibrated it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from export.calibration import Inputs
from export.classifying import Classifier
from export.decoding import Translator
from export.padding import MIN_TOKENS, pad
from export.proof import forced_rows, positions_at
from export.reading import Answers, Reading, compare, embedding_of, probabilities
from export.session import open_session
from export.signatures import LAST_HIDDEN_STATE
from manifest.schema import Manifest, Nearness, Provider
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

HEADING = "## How near it is"
"""Heading of the section of the card, the last one."""


def measure(directory: Path, manifest: Manifest, provider: Provider, reading: Reading) -> Nearness:
    """Return how near the graphs of a provider are to the model that read."""
    return compare(reading.model, answers_of_graphs(directory, manifest, provider, reading), reading.answers)


def answers_of_graphs(directory: Path, manifest: Manifest, provider: Provider, reading: Reading) -> Answers:
    """Return what the graphs answer to each sequence of a reading."""
    sources = [ids[0].tolist() for ids, *_ in reading.inputs]
    model = reading.model
    if isinstance(model, Transformer):
        return tokens_of_graphs(Translator(directory, manifest, provider=provider), sources, reading.inputs)
    if isinstance(model, TransformerClassifier):
        classifier = Classifier(directory, manifest, provider)
        logits = [torch.from_numpy(embeddings.logits) for embeddings in classifier.classify(sources)]
        return [probabilities(model, logit).numpy() for logit in logits]
    assert isinstance(model, TransformerEncoder)
    session = open_session(directory, manifest, f"{provider}/encoder.onnx")
    embeddings = []
    for source in sources:
        ids, lengths = pad([source], manifest.special_tokens.pad, MIN_TOKENS)
        (states,) = session.run([LAST_HIDDEN_STATE], {"input_ids": ids, "lengths": lengths})
        embeddings.append(embedding_of(model, torch.from_numpy(states[0, : len(source)])).detach().numpy())
    return embeddings


def tokens_of_graphs(translator: Translator, sources: list[list[int]], inputs: Sequence[Inputs]) -> Answers:
    """Return the most probable token of each step while the decoder reads given targets."""
    targets = [target[0, 1:].tolist() for _, _, target in inputs]
    tokens = [np.zeros(len(target) + 1, np.int64) for target in targets]
    for step, rows in enumerate(forced_rows(translator, sources, targets, 1)):
        token_ids, _ = rows.step()
        for row, position in positions_at(step, targets).items():
            tokens[row][position] = token_ids[row, 0]
    return tokens


def card_with(card: str, manifest: Manifest) -> str:
    """Return the card of a model with what is known of how near its graphs are."""
    lines = "\n".join(f"- `{provider}`: {nearness.line()}." for provider, nearness in manifest.nearness.items())
    names = next((each.float_layers for each in manifest.nearness.values() if each.float_layers), ())
    in_floats = f"\n\nIn float32: {', '.join(f'`{name}`' for name in names)}." if names else ""
    before = card.partition(HEADING)[0].rstrip() or f"# {manifest.name}"
    return f"{before}\n\n{HEADING}\n\n{lines}{in_floats}\n"
