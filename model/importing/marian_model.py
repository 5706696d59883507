"""Models in Marian's own formats, from a file of weights, vocabularies and languages (Junczys-Dowmunt et al. 2018).

Marian computes other positions than its copy in transformers (model/importing/marian.py).
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from manifest.schema import AlignmentChoice
from manifest.vocabulary import Vocabulary
from model.config import SpecialTokens, TransformerConfig
from model.importing.encoder_decoder import round_up
from model.importing.imported import ModelImportError
from model.importing.marian_bin import read_bin
from model.importing.marian_pieces import Languages, read_pieces, source_tokenizer
from model.importing.marian_weights import ACTIVATIONS, Architecture, MarianFile, Weights, read_npz
from model.importing.packed_files import unpacked_name
from model.importing.positions import sines_then_cosines
from model.importing.sentencepiece_files import read_model, tokenizer_of
from model.tokenizer import EOS, UNK

N_POSITIONS = 512
"""Number of positions. Marian has no limit; OPUS-MT models were trained on at most 500 tokens."""
NORM_EPS = 1e-6
READERS = {".npz": read_npz, ".bin": read_bin}


def read_weights(path: Path) -> MarianFile:
    """Read a file of weights in either format. Raises ModelImportError: the file is damaged, or the format or the model
    is not supported."""
    suffix = Path(unpacked_name(path.name)).suffix
    if suffix not in READERS:
        raise ModelImportError(f"{path.name} is not supported; of Marian's formats {' and '.join(READERS)} are")
    return READERS[suffix](path)


def read_vocabularies(source_path: Path, target_path: Path) -> Vocabulary:
    """Read the ids of source and target pieces, which may be one file. Raises ModelImportError: a file is missing or
    damaged, or the two number special pieces otherwise."""
    source = read_pieces(source_path)
    target = source if target_path == source_path else read_pieces(target_path)
    for piece in (UNK, EOS):
        if source[piece] != target[piece]:
            raise ModelImportError(f"{source_path.name} and {target_path.name} have different ids for {piece}")
    return Vocabulary(source, target, source[UNK])


def sentencepiece_tokenizer(source_path: Path, target_path: Path) -> Tokenizer:
    """Return the tokenizer of vocabularies that are SentencePiece models: the first cuts, the second joins."""
    tokenizer = source_tokenizer(source_path)
    tokenizer.decoder = tokenizer_of(read_model(target_path)).decoder
    return tokenizer


def build(
    file: MarianFile, vocabulary: Vocabulary, source: Languages, target: Languages
) -> tuple[TransformerConfig, dict[str, Tensor]]:
    """Return the configuration of a model and its weights by our names, without `is_target_token`. Raises
    ModelImportError: the weights do not fit the vocabularies or the options of the model."""
    architecture = file.architecture
    if architecture.is_shared_embedding and vocabulary.source != vocabulary.target:
        raise ModelImportError("encoder and decoder share an embedding, but not a vocabulary")
    pad = max(len(vocabulary.source), len(vocabulary.target))  # Marian has none: the first added row
    n_tokens = round_up(pad + 1)
    transformer = TransformerConfig(
        vocab_size=n_tokens,
        source_vocab_size=None if architecture.is_shared_embedding else n_tokens,
        special_tokens=SpecialTokens(pad=pad, unk=vocabulary.unk, bos=pad, eos=vocabulary.target[EOS]),
        d_model=architecture.dim_emb,
        n_heads=architecture.transformer_heads,
        d_ff=architecture.transformer_dim_ffn,
        n_encoder_layers=architecture.enc_depth,
        n_decoder_layers=architecture.dec_depth,
        max_positions=N_POSITIONS,
        norm_eps=NORM_EPS,
        positions="learned",
        activation=ACTIVATIONS[architecture.transformer_ffn_activation],
        decoder_self="ssru" if architecture.is_recurrent else "attention",
        tied_output=architecture.is_tied_output,
        output_bias=True,
        source=source,
        target=target,
    )
    try:
        weights = Weights(file, n_tokens).by_our_names(len(vocabulary.source), len(vocabulary.target))
    except ModelImportError as error:
        raise ModelImportError(f"{file.name}: {error}") from error
    encoding = sines_then_cosines(N_POSITIONS, transformer.d_model, transformer.d_model / 2 - 1)
    weights["embedding.encoding"] = encoding
    if transformer.has_source_embedding:
        weights["encoder_embedding.encoding"] = encoding.clone()
    return transformer, weights


def written_tokens(transformer: TransformerConfig, ids: Iterable[int]) -> Tensor:
    """Return which tokens (V) a translation may have: these ids, without <unk>."""
    is_written = torch.zeros(transformer.vocab_size, dtype=torch.bool)
    is_written[list(ids)] = True
    is_written[transformer.special_tokens.unk] = False
    return is_written


def aligning_head(architecture: Architecture) -> AlignmentChoice:
    """Return the head of a model that was trained to align: the first one of a layer (Garg et al. 2019)."""
    return AlignmentChoice(layer=architecture.alignment_layer, heads=(0,), next_row=False)
