"""Small packages of Argos Translate of either kind, with trained pieces and a model trained to reverse a sentence."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch.nn.utils.rnn import pad_sequence

from benchmarks.conversion import transformer_spec
from model.config import SpecialTokens, TransformerConfig
from model.importing.positions import sines_then_cosines
from model.networks.transformer import Transformer
from tests.model.importing.ctranslate2_models import save
from tests.model.importing.sentencepieces import sentencepiece_model

SENTENCES = [
    f"{who} {does} {what}."
    for who in ("A small dog", "The old captain", "Nobody", "She")
    for does in ("has never seen", "looks for", "talks about")
    for what in ("the river", "a green boat")
]
FRENCH = ["Le vieux capitaine cherche un bateau vert.", "Elle n'a jamais vu l'hiver à Orléans, été comme printemps."]
N_STEPS = 120
METADATA = {
    "package_version": "1.9",
    "argos_version": "1.9.0",
    "from_code": "en",
    "from_name": "English",
    "to_code": "pb",
    "to_name": "Portuguese (Brazil)",
}
Kind = Literal["opennmt", "opus"]


def write_package(
    directory: Path, kind: Kind = "opennmt", quantization: str | None = None, metadata: Mapping[str, Any] = METADATA
) -> Path:
    """Write the directory that the archive of a package has."""
    directory.mkdir(parents=True, exist_ok=True)
    content = sentencepiece_model(SENTENCES + FRENCH, 110)
    (directory / "sentencepiece.model").write_bytes(content)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=content)
    words = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size()) if i > 0 and not pieces.is_control(i)]
    save(_trained(kind, words, pieces), directory / "model", quantization)
    (directory / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    (directory / "README.md").write_text("# English to Portuguese\n", encoding="utf-8")
    (directory / "stanza").mkdir(exist_ok=True)
    return directory


def pack(directory: Path, archive: Path) -> Path:
    """Pack a package like the index of Argos Translate: a zip with one directory."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(directory.rglob("*")):
            file.write(path, Path("translate-en_pb-1_9") / path.relative_to(directory))
    return archive


class Argos:
    """Translate sentences as Argos Translate does with CTranslate2."""

    def __init__(self, directory: Path) -> None:
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(directory / "sentencepiece.model"))
        self._translator = ctranslate2.Translator(str(directory / "model"), compute_type="float32", intra_threads=1)

    def translate(self, texts: list[str], prefix: str = "") -> list[list[str]]:
        """Return the pieces of each translation, with unknown ones."""
        results = self._translator.translate_batch(
            [self.pieces.encode(text, out_type=str) for text in texts],
            target_prefix=[[prefix]] * len(texts) if prefix else None,
            beam_size=4,
            num_hypotheses=1,
            length_penalty=0.2,
        )
        return [result.hypotheses[0] for result in results]


def _trained(kind: Kind, words: list[str], pieces: sentencepiece.SentencePieceProcessor) -> TransformerSpec:
    tokens = ["<unk>", "<blank>", "<s>", "</s>", *words] if kind == "opennmt" else ["</s>", "<unk>", ">>vie<<", *words]
    ids, pad = {token: i for i, token in enumerate(tokens)}, len(tokens)
    eos, bos = ids["</s>"], ids.get("<s>", pad)
    config = TransformerConfig.model_validate(
        {
            "vocab_size": len(tokens) + 1,
            "special_tokens": SpecialTokens(pad=pad, unk=ids["<unk>"], bos=bos, eos=eos),
            "d_model": 48,
            "n_heads": 3,
            "d_ff": 80,
            "max_positions": 300,
            "dropout": 0.0,
            "norm": "pre" if kind == "opennmt" else "post",
            "activation": "relu" if kind == "opennmt" else "silu",
            "positions": "learned",
            "n_encoder_layers": 2,
            "n_decoder_layers": 1,
            "output_bias": True,
            "source": "en",
            "target": "pb",
        }
    )
    model = Transformer(config)
    assert isinstance(model.embedding.encoding, torch.nn.Parameter)
    assert model.output_bias is not None
    model.embedding.encoding.data = sines_then_cosines(300, config.d_model, config.d_model / 2)
    model.embedding.encoding.requires_grad = False
    _train(model, [[ids[piece] for piece in pieces.encode(text, out_type=str)] for text in SENTENCES], kind)

    spec = transformer_spec(model)
    table = model.embedding.tokens.weight.detach()[:pad].numpy()
    for embeddings in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        embeddings.weight = table
    spec.decoder.projection.bias = model.output_bias.detach()[:pad].numpy()
    if kind == "opus":
        spec.encoder.activation = spec.decoder.activation = np.int8(Activation.SWISH)
        spec.decoder.start_from_zero_embedding = True
        spec.config.add_source_eos = True
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    return spec


def _train(model: Transformer, sources: list[list[int]], kind: Kind) -> None:
    special = model.config.special_tokens
    ends = [special.eos] if kind == "opus" else []
    source, given, wanted = (
        pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=special.pad)
        for rows in (
            [[*row, *ends] for row in sources],
            [[special.bos, *reversed(row)] for row in sources],
            [[*reversed(row), special.eos] for row in sources],
        )
    )
    lengths = (source != special.pad).sum(dim=1)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.004)
    for _ in range(N_STEPS):
        chosen = torch.randperm(len(sources))[:12]
        model.embedding.tokens.weight.data[special.pad] = 0.0
        logits = model.logits(model(source[chosen], lengths[chosen], given[chosen]))
        loss = F.cross_entropy(logits.flatten(0, 1), wanted[chosen].flatten(), ignore_index=special.pad)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
