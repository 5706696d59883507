"""Checkpoints of others: a directory of every family with one file changed, and archives.

An input is a line with a family, a file and the number of its bytes that are replaced, and the new beginning of the
file. A line with `archive` and a name has an archive.
"""

import io
import json
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

from model.importing.families import import_directory
from model.importing.imported import ModelImportError, Options, in_sentences
from model.importing.sentencepiece_files import read_model
from model.importing.sources import open_source_files
from tests.fuzz.mutation import mutate_lines, mutate_zip
from tests.fuzz.structures import nested, repeated
from tests.fuzz.target import MutateBytes, Target
from tests.model.importing.argos_packages import FRENCH, METADATA, SENTENCES
from tests.model.importing.bart_checkpoints import write_bart
from tests.model.importing.ctranslate2_models import random_spec, save
from tests.model.importing.encoder_checkpoints import write_encoder, write_modules
from tests.model.importing.firefox_models import shortlist_file, write_directory
from tests.model.importing.m2m100_checkpoints import write_m2m100
from tests.model.importing.marian_checkpoints import write_marian
from tests.model.importing.marian_releases import pieces_of, write_release
from tests.model.importing.sentencepieces import sentencepiece_model
from tests.model.importing.t5_checkpoints import write_t5

FOLDER = Path(tempfile.mkdtemp(prefix="attend-fuzz-"))
MAX_REPLACED = 2_000
"""Bytes of a long file that are replaced: its header."""
ARCHIVE = "archive"
ARCHIVES = ("a.zip", "a.tar", "a.tar.gz")
NEW_FILES = ("added_tokens.json", "README.md", "pytorch_model.bin", "vocab.enfr.spm.gz")
"""Files that a model may have beside its own."""
OPTIONS = Options(name="m", sources=("en",), targets=("fr",))
ENCODERS = ("bert", "xlm-roberta", "deberta", "modernbert", "sentences")
"""Families whose models have no languages."""


def _argos(directory: Path) -> None:
    directory.mkdir()
    (directory / "sentencepiece.model").write_bytes(sentencepiece_model(SENTENCES + FRENCH, 110))
    tokens = ["<unk>", "<blank>", "<s>", "</s>", *pieces_of(directory / "sentencepiece.model")[3:]]
    save(random_spec(tokens), directory / "model")
    (directory / "metadata.json").write_text(json.dumps(METADATA), encoding="utf-8")


def _firefox(directory: Path) -> None:
    write_directory(directory)
    n = len(read_model(directory / "vocab.enfr.spm").pieces)
    (directory / "lex.50.50.enfr.s2t.bin").write_bytes(shortlist_file([[i] for i in range(n)], 3))


def _sentences(directory: Path) -> None:
    write_encoder(directory, "roberta", "Model")
    write_modules(directory, {"word_embedding_dimension": 48, "pooling_mode_mean_tokens": True}, [(12, "Tanh", True)])


WRITERS: dict[str, Callable[[Path], object]] = {
    "marian": lambda directory: write_marian(directory),
    "m2m100": lambda directory: write_m2m100(directory, "m2m100"),
    "t5": lambda directory: write_t5(directory, "t5"),
    "bart": lambda directory: write_bart(directory, "bart"),
    "bert": lambda directory: write_encoder(directory, "bert", "ForSequenceClassification"),
    "xlm-roberta": lambda directory: write_encoder(directory, "xlm-roberta", "ForSequenceClassification"),
    "deberta": lambda directory: write_encoder(directory, "deberta-v2", "ForSequenceClassification"),
    "modernbert": lambda directory: write_encoder(directory, "modernbert", "ForSequenceClassification"),
    "sentences": _sentences,
    "release": write_release,
    "firefox": _firefox,
    "argos": _argos,
}


@cache
def _original(family: str) -> dict[str, bytes]:
    """The files of a model that can be imported."""
    directory = FOLDER / "originals" / family
    directory.parent.mkdir(exist_ok=True)
    WRITERS[family](directory)
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def read(data: bytes) -> Iterator[str]:
    settings, _, content = data.partition(b"\n")
    family, name, replaced, *_ = [*settings.decode(errors="replace").split(), "", "", ""]
    if family == ARCHIVE:
        path = FOLDER / (name if name in ARCHIVES else ARCHIVES[0])
        path.write_bytes(content)
        with open_source_files(str(path)) as found:
            yield "unpacked"
            _refuse_links_out(found.directory)
            with in_sentences("it cannot be read"):
                import_directory(found.directory, OPTIONS)
        return
    family = family if family in WRITERS else next(iter(WRITERS))
    files = _original(family)
    name = name if name in files or name in NEW_FILES else next(iter(files))
    directory = FOLDER / "read"
    shutil.rmtree(directory, ignore_errors=True)
    for file in files:
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if file != name:
            path.symlink_to(FOLDER / "originals" / family / file)
    (directory / name).write_bytes(content + files.get(name, b"")[int(replaced) if replaced.isdigit() else 0 :])
    import_directory(directory, Options(name="m") if family in ENCODERS else OPTIONS)
    yield "imported"


def _refuse_links_out(directory: Path) -> None:
    for path in directory.rglob("*"):
        assert path.resolve().is_relative_to(directory.resolve()), f"{path} leads out of the archive"


def seed(family: str, name: str, content: bytes, replaced: int | None = None) -> bytes:
    return f"{family} {name} {len(content) if replaced is None else replaced}\n".encode() + content


def _zip(files: Sequence[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _tar(files: Sequence[tuple[str, bytes]], mode: str = "w", link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        if link:
            entry = tarfile.TarInfo("config.json")
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
    return buffer.getvalue()


def _seeds() -> list[bytes]:
    found = []
    for family in WRITERS:
        for name, content in _original(family).items():
            found.append(seed(family, name, content[: len(content) if len(content) < 6_000 else MAX_REPLACED]))
    files = [("m/config.json", b'{"model_type": "marian"}'), ("m/a", b"")]
    return [
        *found,
        seed(ARCHIVE, "a.zip", _zip(files)),
        seed(ARCHIVE, "a.tar", _tar(files, link="a")),
        seed(ARCHIVE, "a.tar.gz", _tar(files, "w:gz")),
    ]


def _mutate(data: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    settings, _, content = data.partition(b"\n")
    if settings.startswith(b"archive a.zip"):
        return settings + b"\n" + mutate_zip(content, random, mutate_bytes, mutate_lines)
    if b".safetensors " in settings and len(content) > 8 and random.random() < 0.9:
        return settings + b"\n" + content[:8] + mutate_lines(content[8:], random, mutate_bytes)[: len(content) - 8]
    return settings + b"\n" + mutate_lines(content, random, mutate_bytes)


def _pickled(size: int) -> bytes:
    """Return weights of PyTorch that are a pickle of lists in each other."""
    return seed("bert", "pytorch_model.bin", b"\x80\x02" + b"]" * size + b".")


def _packed(size: int) -> bytes:
    """Return a vocabulary that unpacks to a thousand times its size."""
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1_000_000)
    packed = [packer.compress(zeros) for _ in range(size // 1_000)]
    return seed("firefox", "vocab.enfr.spm.gz", b"".join([*packed, packer.flush()]))


def _deep_folders(size: int) -> bytes:
    return seed(ARCHIVE, "a.zip", _zip([("a/" * min(size // 2, 1_900) + "b", b"")]))


def _piece(size: int) -> bytes:
    """Return a SentencePiece model of BPE whose last piece is long."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    model.trainer_spec.model_type = 2
    for i, piece in enumerate(("<unk>", "<s>", "</s>", "a", "b", "ab", "ab" * (size // 2))):
        model.pieces.add(piece=piece, score=-i, type=2 if i == 0 else 3 if i < 3 else 1)
    return seed("xlm-roberta", "sentencepiece.bpe.model", model.SerializeToString(), 10**9)


def _json(family: str, name: str, grow: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda size: seed(family, name, grow(size), 10**9)


GROWN = {
    "config nested": _json("bert", "config.json", nested('{"a": ', "[", "1", "]", "}")),
    "config of names": _json("bert", "config.json", repeated('{"x": 1', ', "a§": 1', "}")),
    "config of labels": _json("bert", "config.json", repeated('{"model_type": "bert", "id2label": {"x": 1', ', "§": "a§"', "}}")),
    "config of a number": _json("bert", "config.json", repeated('{"model_type": "bert", "hidden_size": ', "1", "}")),
    "words": _json("bert", "vocab.txt", repeated("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "a§\n")),
    "a word": _json("bert", "vocab.txt", repeated("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "a")),
    "tokenizer nested": _json("modernbert", "tokenizer.json", nested('{"a": ', "[", "1", "]", "}")),
    "added tokens": _json("bert", "added_tokens.json", repeated('{"x": 1', ', "a§": 1', "}")),
    "yaml nested": _json("release", "decoder.yml", nested("a: ", "[", "1", "]")),
    "yaml deep": _json("release", "decoder.yml", repeated("", "- ")),
    "yaml of names": _json("release", "decoder.yml", repeated("x: 1\n", "name§: 1\n")),
    "yaml aliases": _json("release", "decoder.yml", lambda size: b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, min(size // 25, 300))) + b"vocabs: [*a%d, *a9]\nmodels: [*a%d]\n" % ((min(size // 25, 300) - 1,) * 2)),
    "yaml a number": _json("release", "opus.spm-spm.vocab.yml", repeated("a: ", "1")),
    "card of a table": _json("bert", "README.md", repeated("---\n", "a§: b\n", "---\n")),
    "card nested": _json("bert", "README.md", nested("---\na: ", "[", "1", "]", "\n---\n")),
    "pickle nested": _pickled,
    "packed zeros": _packed,
    "folders in folders": _deep_folders,
    "a long piece": _piece,
    "metadata nested": _json("argos", "metadata.json", nested('{"a": ', "[", "1", "]", "}")),
    "modules": _json("sentences", "modules.json", repeated("[{}", ', {"idx": §, "name": "a", "path": "b", "type": "sentence_transformers.models.Dense"}', "]")),
}  # fmt: skip

TARGET = Target(
    read=read,
    seeds=_seeds,
    allowed=(ModelImportError,),
    mutate=_mutate,
    words=[
        b"null", b"true", b"[]", b"{}", b"1e999", b"-1", b"NaN", b"2147483647", b"1000000000", b'"\\ud800"', b"9223372036854775808",
        b"../", b"C:\\\\", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"- ", b"&a ", b"*a", b"!!python/object ",
        b'"gelu"', b'"F64"', b'"BF16"', b"0.5", b"-inf", b"__proto__", b"num_hidden_layers", b"vocab_size", b"d_model",
    ],
    grown=GROWN,
)  # fmt: skip
