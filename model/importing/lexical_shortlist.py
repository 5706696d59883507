"""Marian's binary shortlists (lex.*.s2t.bin): for each source token, the target tokens that may translate it."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manifest.vocabulary import Vocabulary
from model.config import ShortlistConfig
from model.importing.imported import ModelImportError
from model.importing.packed_files import read_packed

MAGIC = 0xF11A48D5013417F5


def read_shortlist(path: Path, vocabulary: Vocabulary, n_source: int) -> tuple[ShortlistConfig, dict[str, Tensor]]:
    """Read a shortlist, perhaps compressed, as settings and weights by our names.

    Args:
        n_source: size of the source vocabulary with the tokens that are added to it; these have empty lists.

    Raises:
        ModelImportError: the file is damaged, or is of other vocabularies.
    """
    content = np.frombuffer(read_packed(path), np.uint8)
    header = content[:48].copy().view("<u8") if len(content) >= 48 else np.zeros(6, np.uint64)
    magic, _checksum, first, _best, n_offsets, n_entries = (int(number) for number in header)
    if magic != MAGIC or len(content) < 48 + 8 * n_offsets + 4 * n_entries:
        raise ModelImportError(f"{path.name} is damaged, or is no shortlist of Marian's")
    if n_offsets != len(vocabulary.source) + 1:
        raise ModelImportError(
            f"{path.name} has lists for {n_offsets - 1} tokens, but the vocabulary has {len(vocabulary.source)} pieces"
        )
    ends = 48 + 8 * n_offsets
    offsets = content[48:ends].copy().view("<i8")
    tokens = content[ends : ends + 4 * n_entries].copy().view("<u4")
    is_sorted = offsets[0] == 0 and offsets[-1] == n_entries and bool((np.diff(offsets) >= 0).all())
    if not is_sorted or n_entries == 0 or tokens.max() >= len(vocabulary.target):
        raise ModelImportError(f"{path.name} is damaged: its lists do not fit the vocabulary")
    offsets = np.concatenate([offsets, np.full(n_source + 1 - n_offsets, n_entries)])
    config = ShortlistConfig(first=first, own=vocabulary.source == vocabulary.target, n_entries=n_entries)
    return config, {
        "shortlist.offsets": torch.from_numpy(offsets),
        "shortlist.tokens": torch.from_numpy(tokens.astype(np.int32)),
    }
