"""Directories as Firefox downloads them, with random weights: files written byte for byte, apart from the readers."""

import gzip
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
import zstandard

from model.importing.sentencepiece_files import pieces_of, read_model
from tests.model.importing.marian_releases import ENGLISH, FRENCH, KINDS, OPTIONS, random_arrays
from tests.model.importing.sentencepieces import sentencepiece_model

MODEL, VOCABULARY, SHORTLIST = "model.enfr.intgemm.alphas.bin", "vocab.enfr.spm", "lex.50.50.enfr.s2t.bin"
SSRU = OPTIONS | KINDS["ssru"] | {"transformer-ffn-activation": "relu"}
UPSTREAM, FORK = 0x10001, 0x4101
"""Types of int8 matrices in Marian, and in the fork that Firefox uses."""


def write_directory(directory: Path, is_separate: bool = False, packed: str = "") -> dict[str, np.ndarray]:
    """Write a model from English to French with int8 weights; return its arrays as Marian would read them.

    Args:
        packed: ".gz" or ".zst" compresses each file.
    """
    directory.mkdir()
    sides = (
        {"srcvocab.enfr.spm": ENGLISH, "trgvocab.enfr.spm": FRENCH} if is_separate else {VOCABULARY: ENGLISH + FRENCH}
    )
    for name, texts in sides.items():
        (directory / name).write_bytes(vocabulary_of(texts))
    sizes = [len(pieces_of(read_model(directory / name))) for name in (*sides, *sides)[:2]]
    options = SSRU | ({"tied-embeddings-all": False, "tied-embeddings": True} if is_separate else {})
    arrays = random_arrays(options, *sizes)
    (directory / MODEL).write_bytes(bin_file(arrays, options, FORK))
    if packed:
        for path in [*directory.iterdir()]:
            path.with_name(path.name + packed).write_bytes(compressed(path.read_bytes(), packed))
            path.unlink()
    return {name: stored(name, array, FORK) for name, array in arrays.items()}


def compressed(content: bytes, packed: str) -> bytes:
    if packed == ".gz":
        return gzip.compress(content)
    return zstandard.compress(content)


def vocabulary_of(texts: list[str]) -> bytes:
    return sentencepiece_model(texts * 8, 380, eos_id=0, unk_id=1, bos_id=-1, byte_fallback=True, num_threads=1)


def is_int8(name: str, kind: int | None) -> bool:
    is_product = name[:-1].endswith("_W") or name.endswith("_W")
    return kind is not None and (is_product or (kind == FORK and "Wemb" in name))


def rounded(array: np.ndarray) -> tuple[np.ndarray, float]:
    multiplier = float(np.float32(127 / np.abs(array).max()))
    return np.clip(np.round(array * np.float32(multiplier)), -127, 127).astype(np.int8), multiplier


def stored(name: str, array: np.ndarray, kind: int | None) -> np.ndarray:
    """Return the values that a file has for an array."""
    if not is_int8(name, kind):
        return array
    numbers, multiplier = rounded(array)
    return numbers.astype(np.float32) / np.float32(multiplier)


def bin_file(arrays: Mapping[str, np.ndarray], options: Mapping[str, Any], kind: int | None) -> bytes:
    """Write a .bin file.

    Args:
        kind: type of matrices in int8; None keeps all in floats.
    """
    said = yaml.safe_dump(dict(options)).encode() + b"\0"
    items = [("special:model.yml", 0x101, (len(said),), said)]
    for name, array in arrays.items():
        if not is_int8(name, kind):
            items.append((name, 0x404, array.shape, array.astype("<f4").tobytes()))
            continue
        assert kind is not None
        numbers, multiplier = rounded(array)
        content = (numbers if "Wemb" in name else numbers.T).tobytes() + struct.pack("<f", multiplier)
        items.append((name, kind, array.shape, content + bytes(-len(content) % 256)))
        items.append((f"{name}_QuantMultA", 0x404, (1, 1), struct.pack("<f", 31.5)))
    written = struct.pack("<QQ", 1, len(items))
    for name, type_, shape, content in items:
        written += struct.pack("<QQQQ", len(name.encode()) + 1, type_, len(shape), len(content))
    written += b"".join(name.encode() + b"\0" for name, *_ in items)
    written += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(written) + 8) % 256
    return written + struct.pack("<Q", padding) + bytes(padding) + b"".join(item[3] for item in items)


def shortlist_file(lists: list[list[int]], first: int) -> bytes:
    """Write a lex.*.s2t.bin file with a list of target tokens for each source token."""
    ends = [sum(map(len, lists[:i])) for i in range(len(lists) + 1)]
    tokens = [token for one in lists for token in one]
    header = struct.pack("<QQQQQQ", 0xF11A48D5013417F5, 0, first, 50, len(ends), len(tokens))
    return header + struct.pack(f"<{len(ends)}Q", *ends) + struct.pack(f"<{len(tokens)}I", *tokens)
