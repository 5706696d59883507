"""Files of the operator: manifests, weights, tokenizers, keys and settings.

An input is a line with the name of a reader, and the file.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
from safetensors.numpy import save

from manifest.layout import MANIFEST, TOKENIZER, WEIGHTS
from manifest.sums import FileSum
from service.access.key_file import read_keys
from service.base.artifact import OpenedFile, read_artifacts
from service.base.configuration import announce, read_settings
from service.base.errors import StartRefused
from service.kept.slots import slots_of
from service.runner.safetensors_file import DTYPES, SafetensorsFile
from service.text.tokenization import Tokenizer
from tests.fuzz.mutation import mutate_lines
from tests.fuzz.structures import nested, repeated
from tests.fuzz.target import MutateBytes, Target
from tests.service.access.key_tables import table
from tests.service.tiny_artifacts import TinyTranslator

FOLDER = Path(tempfile.mkdtemp(prefix="attend-fuzz-"))
MAX_NUMBERS = 1_000_000


def _read_manifest(content: bytes) -> None:
    folder = FOLDER / "artifacts" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_bytes(content)
    (artifact,) = read_artifacts(folder.parent)
    artifact.manifest.model_dump_json()
    artifact.verify()


def _read_weights(content: bytes) -> None:
    path = FOLDER / WEIGHTS
    path.write_bytes(content)
    file = SafetensorsFile(OpenedFile(path, FileSum(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))))
    for name in ("a", "b"):
        if name in file and file.n_bytes(name) < MAX_NUMBERS:
            array = file.read(name)
            assert (array.dtype, array.shape) == (file.dtype(name), file.shape(name))
            assert array.nbytes == file.n_bytes(name)


def _read_tokenizer(content: bytes) -> None:
    tokenizer = Tokenizer(FOLDER / TOKENIZER, content)
    slots_of([(1, 1)], tokenizer)
    for text in ("the dog", "", "犬 \n <s>"):
        (ids,) = tokenizer.encode([text])
        tokenizer.decode([ids])


def _read_keys(content: bytes) -> None:
    path = FOLDER / "keys"
    path.write_bytes(content)
    for key in read_keys(path):
        key.may_use("/translate")


def _read_settings(content: bytes) -> None:
    pairs = (line.partition("=") for line in content.decode(errors="replace").replace("\0", "").splitlines())
    environment = {f"ATTEND_{name}": value for name, _, value in pairs}
    with mock.patch.dict(os.environ, environment, clear=True):
        announce(read_settings(), environment)


READERS: dict[str, Callable[[bytes], None]] = {
    "manifest": _read_manifest,
    "weights": _read_weights,
    "tokenizer": _read_tokenizer,
    "keys": _read_keys,
    "settings": _read_settings,
}


def read(data: bytes) -> Iterator[str]:
    name, _, content = data.partition(b"\n")
    reader = READERS.get(name.decode(errors="replace"), _read_manifest)
    reader(content)
    yield "read"


def _mutate(data: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    name, _, content = data.partition(b"\n")
    if name == b"weights" and len(content) > 8 and random.random() < 0.8:
        length = int.from_bytes(content[:8], "little")
        header = mutate_lines(content[8 : 8 + length], random, mutate_bytes)
        return name + b"\n" + len(header).to_bytes(8, "little") + header + content[8 + length :]
    return name + b"\n" + mutate_lines(content, random, mutate_bytes)


def _seeds() -> list[bytes]:
    folder = FOLDER / "seed"
    if not folder.exists():
        TinyTranslator(seed=1).save(folder)
    tensors = {name: np.zeros((2, 3), dtype) for name, dtype in zip("abcdefg", DTYPES.values(), strict=True)}
    files = {
        "manifest": (folder / MANIFEST).read_bytes(),
        "weights": save(tensors),
        "tokenizer": (folder / TOKENIZER).read_bytes(),
        "keys": (table("anna", "secret", rate="60/minute", characters_per_month=9, routes=["/translate"])).encode(),
        "settings": b"PORT=1\nMODELS=a,b\nCACHE=16MB\nAPI_KEYS=x,y\nRATE_LIMIT=60/minute\nTRUSTED_PROXIES=10.0.0.0/8\n"
        b"DATABASE=postgresql://a:b@c/d\nALLOWED_ORIGINS=https://a.b\nDEVICES=0,1\nROOT_PATH=/a\nRATE_STORE=redis://a",
    }
    return [name.encode() + b"\n" + content for name, content in files.items()] + [b"keys\none\ntwo\n"]


def _weights(header: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def grow(size: int) -> bytes:
        content = header(size)
        return b"weights\n" + len(content).to_bytes(8, "little") + content

    return grow


EMPTY_TENSOR = json.dumps({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})
GROWN = {
    "manifest nested": nested("manifest\n", "[", "1", "]"),
    "manifest of objects": nested("manifest\n", '{"a":', "1", "}"),
    "manifest of names": repeated('manifest\n{"x": 1', ', "a§": 1', "}"),
    "manifest of sources": repeated('manifest\n{"sources": [1', ", {}", "]}"),
    "keys in lines": repeated("keys\n", "a§\n"),
    "keys nested": repeated("keys\na = ", "["),
    "keys in tables": repeated("keys\n", '[[keys]]\nname = "a§"\nsha256 = []\n'),
    "keys in deep tables": repeated("keys\n[a", ".a", "]\n"),
    "keys with deep names": repeated("keys\na", ".a", "= 1\n"),
    "keys in comments": repeated("keys\n", "#"),
    "keys of blanks": repeated("keys\n", " "),
    "keys of words": repeated("keys\n", "a", " ="),
    "keys of quotes": repeated("keys\n", "'"),
    "keys of a long text": repeated('keys\na = "', "\\\\", '"'),
    "settings of models": repeated("settings\nMODELS=", "a§,"),
    "settings of keys": repeated("settings\nAPI_KEYS=", "a§,"),
    "settings of proxies": repeated("settings\nTRUSTED_PROXIES=", "10.0.0.1,"),
    "settings of rates": repeated("settings\nRATE_LIMIT=", "1/minute;"),
    "settings of blanks": repeated("settings\nRATE_LIMIT=1", " ", "/minute"),
    "settings of origins": repeated("settings\nALLOWED_ORIGINS=", "https://a.b,"),
    "settings of paths": repeated("settings\nROOT_PATH=", "/a"),
    "settings of digits": repeated("settings\nPORT=", "1"),
    "settings of sizes": repeated("settings\nCACHE=", "1", "MB"),
    "settings of devices": repeated("settings\nDEVICES=", "0,"),
    "settings unknown": repeated("settings\n", "A§=1\n"),
    "weights of tensors": _weights(repeated("{", f'"a§": {EMPTY_TENSOR}, ', f'"a": {EMPTY_TENSOR}}}')),
    "weights nested": _weights(repeated('{"a": ', "[")),
    "weights of dimensions": _weights(repeated('{"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": [0', ", 9", "]}}")),
    "tokenizer nested": repeated("tokenizer\n", "["),
}  # fmt: skip

TARGET = Target(
    read=read,
    seeds=_seeds,
    allowed=(StartRefused,),
    mutate=_mutate,
    words=[
        b"null", b"true", b"[]", b"{}", b"1e999", b"-1", b"NaN", b'"\\ud800"', b"18446744073709551616", b"__metadata__",
        b'"F64"', b'"data_offsets"', b'"files"', b"../", b"C:\\\\", b"[[keys]]", b"sha256 = ", b"''' ", b'"""', b"1979-05-27",
        b"/minute", b"/day", b"GPU-", b"*", b"postgresql://", b"rediss://", b"::1", b"16MB", b"inf", b"nan", b"PORT=tcp://a",
    ],
    grown=GROWN,
)  # fmt: skip
