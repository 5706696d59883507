"""Files of a directory written by converters of CTranslate2: settings, vocabularies, and named tensors.

Format of the tensors: `model_spec.py` of https://github.com/OpenNMT/CTranslate2 writes version 6, `model.cc` reads all.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from model.importing.imported import ModelImportError, in_words
from model.tokenizer import BOS, EOS, UNK

MODEL, CONFIG = "model.bin", "config.json"
MAX_VERSION, MIN_VERSION_WITH_CONFIG = 6, 6
"""Versions of the format: the latest, and the first with a config.json."""
TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
"""Types by their code; before version 4 the code is the size of an item."""
TYPES_BY_SIZE = {4: torch.float32, 2: torch.int16, 1: torch.int8}
SCALE = "_scale"
INT16_SCALE = 1000.0
"""Scale of int16 weights that have none of their own."""
Content = TypeVar("Content")


@dataclass(frozen=True)
class Settings:
    """Settings of tokens in config.json, which an import needs."""

    unk_token: str = UNK
    bos_token: str = BOS
    eos_token: str = EOS
    decoder_start_token: str | None = BOS
    add_source_bos: bool = False
    add_source_eos: bool = False
    layer_norm_epsilon: float | None = None


@dataclass(frozen=True)
class ModelDirectory:
    """A stored model.

    Attributes:
        spec, revision: architecture, and version of the names of its tensors.
        source, target: tokens in the order of their ids, with the unknown token.
        variables: tensors by name; weights are dequantized, others as stored. Several names may share one object.
    """

    spec: str
    revision: int
    settings: Settings
    source: list[str]
    target: list[str]
    variables: Mapping[str, Tensor]


def read_directory(directory: Path) -> ModelDirectory:
    """Read a model of any version. Raises ModelImportError: a file is missing or damaged, or of a later version."""
    version, spec, revision, variables = _read_model(directory / MODEL)
    has_config = version >= MIN_VERSION_WITH_CONFIG
    settings = read_json_as(directory / CONFIG, Settings) if has_config else _take_settings(variables)
    source, target = (_tokens(directory, side, settings.unk_token) for side in ("source", "target"))
    return ModelDirectory(spec, revision, settings, source, target, variables)


def read_json_as(path: Path, kind: type[Content]) -> Content:
    """Read a JSON file into a type. Raises ModelImportError: the file is missing or damaged."""
    if not path.is_file():
        raise ModelImportError(f"{path.name} is missing")
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except ValidationError as error:
        raise ModelImportError(f"{path.name} is damaged: {in_words(error)}") from error


def _take_settings(variables: dict[str, Tensor]) -> Settings:
    def flag(name: str, default: bool) -> bool:
        return bool(variables.pop(name, torch.tensor(default)).any())

    def token(name: str, default: str) -> str:
        stored = variables.pop(name, None)
        return default if stored is None else stored.numpy().tobytes().decode(errors="replace")

    bos, eos = token("bos_token", BOS), token("eos_token", EOS)
    start = bos if flag("with_target_bos", True) else eos
    return Settings(
        unk_token=token("unk_token", UNK),
        bos_token=bos,
        eos_token=eos,
        decoder_start_token=None if flag("user_decoder_start_tokens", False) else start,
        add_source_bos=flag("with_source_bos", False),
        add_source_eos=flag("with_source_eos", False),
    )


def _tokens(directory: Path, side: str, unk: str) -> list[str]:
    """Read the vocabulary of a side or of both: a list in JSON, or in older models a token per line."""
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        as_json, as_lines = directory / f"{name}.json", directory / f"{name}.txt"
        if as_json.is_file():
            tokens = read_json_as(as_json, list[str])
        elif as_lines.is_file():
            tokens = as_lines.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
            if all(token.endswith("\r") for token in tokens):
                tokens = [token[:-1] for token in tokens]
        else:
            continue
        return tokens if unk in tokens else [*tokens, unk]
    raise ModelImportError(f"shared_vocabulary.json is missing, and so is {side}_vocabulary.json")


def _read_model(path: Path) -> tuple[int, str, int, dict[str, Tensor]]:
    """Read the version, specification, revision and tensors of a model.bin."""
    if not path.is_file():
        raise ModelImportError(f"{path.name} is missing")
    reader = _Reader(path)
    version = reader.number("I")
    if not 1 <= version <= MAX_VERSION:
        raise ModelImportError(f"{path.name} is no CTranslate2 model, or its version is later than {MAX_VERSION}")
    spec, revision = (reader.text(), reader.number("I")) if version >= 2 else ("", 1)
    stored = dict(_variable(reader, version) for _ in range(reader.number("I")))
    variables = {name: _dequantize(name, tensor, stored) for name, tensor in stored.items() if not _is_scale(name)}
    for _ in range(reader.number("I") if version >= 3 else 0):
        alias, name = reader.text(), reader.text()
        if _is_scale(alias):  # its weight is an alias too
            continue
        if name not in variables:
            raise reader.damaged(f"{alias} is an alias of {name}, which is missing")
        variables[alias] = variables[name]
    reader.refuse_more()
    return version, spec, revision, variables


def _variable(reader: "_Reader", version: int) -> tuple[str, Tensor]:
    name = reader.text()
    shape = [reader.number("I") for _ in range(reader.number("B"))]
    if version >= 4:
        code, n_bytes = reader.number("B"), reader.number("I")
        dtype = TYPES[code] if code < len(TYPES) else None
    else:
        code = reader.number("B")
        dtype, n_bytes = TYPES_BY_SIZE.get(code), code * reader.number("I")
    if dtype is None or n_bytes == 0 or n_bytes != math.prod(shape) * dtype.itemsize:
        raise reader.damaged(f"the size of {name} does not match its shape and type")
    return name, torch.from_numpy(reader.take(n_bytes).copy()).view(dtype).reshape(shape)


def _is_scale(name: str) -> bool:
    return name.endswith(f"/weight{SCALE}")


def _dequantize(name: str, tensor: Tensor, stored: Mapping[str, Tensor]) -> Tensor:
    """Dequantize a weight: int8 has a scale for each row, or one, and int16 has one."""
    if not name.endswith("/weight") or tensor.is_floating_point():
        return tensor
    scale = stored.get(name + SCALE)
    if scale is None and tensor.dtype == torch.int16:
        scale = torch.tensor(INT16_SCALE)
    if scale is None or tensor.ndim != 2 or scale.numel() not in (1, len(tensor)):
        raise ModelImportError(f"{MODEL} is damaged: {name} has integers without a scale for each row")
    return tensor.float() / scale.float().reshape(-1, 1)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._bytes = np.fromfile(path, np.uint8)
        self._at = 0

    def number(self, code: str) -> int:
        """Read a number of type `code` of the module struct."""
        (number,) = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")).data)
        return int(number)

    def text(self) -> str:
        """Read a text, preceded by its length, which counts the final NUL."""
        try:
            return self.take(self.number("H")).tobytes().decode().removesuffix("\0")
        except UnicodeDecodeError as error:
            raise self.damaged("a name is not UTF-8") from error

    def take(self, n_bytes: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        taken = self._bytes[self._at : self._at + n_bytes]
        if len(taken) < n_bytes:
            raise self.damaged(f"it ends after {len(self._bytes):,} bytes, too early")
        self._at += n_bytes
        return taken

    def refuse_more(self) -> None:
        """Raise an error if bytes are left."""
        if self._at < len(self._bytes):
            raise self.damaged(f"{len(self._bytes) - self._at:,} bytes come after its end")

    def damaged(self, why: str) -> ModelImportError:
        return ModelImportError(f"{self._name} is damaged: {why}")
