"""Documents: read, translated by a stand-in, written back, and read once more.

An input is a line with settings, such as `po fr missing`, and the file.
"""

from collections.abc import Iterator, Sequence
from random import Random

from service.base.errors import InvalidDocument, TooLarge, UnsupportedFileType
from service.documents.contents import ReadOptions
from service.documents.kinds import KINDS_BY_NAME, kind_of
from service.documents.wrapping import visible_text
from tests.fuzz import structures
from tests.fuzz.mutation import mutate_lines
from tests.fuzz.stand_in import WAYS, translation
from tests.fuzz.target import Mutate, MutateBytes

ALLOWED = (InvalidDocument, TooLarge, UnsupportedFileType)
MAX_BYTES = 4 * 10_485_760
"""Limit of an unpacked file, as the service has it by default."""
MAX_TEXT = 50_000
"""A document with a longer text is refused."""
TARGETS = ("fr", "ru", "ja", "ar", "zh-Hant", "de-AT")
FLAGS = ("missing", "column=text", "column=en=fr", "unknown", *WAYS)
MAX_SETTINGS = 200


def seed(settings: str, file: bytes | str) -> bytes:
    return settings.encode() + b"\n" + (file if isinstance(file, bytes) else file.encode())


def grown(kind: str, before: str, piece: str, after: str = "") -> structures.Grow:
    """Return files of a kind that are translated into Russian, with a piece again and again."""
    return structures.repeated(f"{kind} ru\n{before}", piece, after)


def nested(kind: str, before: str, start: str, inside: str, end: str, after: str = "") -> structures.Grow:
    return structures.nested(f"{kind} ru\n{before}", start, inside, end, after)


def read_document(data: bytes) -> Iterator[str]:
    """Read an input, write it as it is and with a translation, and read that. Raises AssertionError: the untranslated
    file is another one, or the translated file cannot be read."""
    settings, _, file = data.partition(b"\n")
    name, *words = settings.decode(errors="replace").split() or ["txt"]
    named = KINDS_BY_NAME.get(name, KINDS_BY_NAME["txt"])
    kind = kind_of(f"a{named.endings[0]}", file)
    yield "found the kind"
    options = _options(words)
    contents = kind.read(file, options)
    yield "read"
    assert all(contents.texts), "a text is empty"
    shown = map(visible_text, contents.texts) if contents.format == "html" else contents.texts
    if max(map(len, shown), default=0) > MAX_TEXT:
        return
    yield "stand-in measured texts"
    if kind.written_as is None or kind.name == "po":
        assert kind.write(file, options, contents.texts) == file, "the file changes without a translation"
        yield "written as it is"
    way = next((word for word in words if word in WAYS), WAYS[0])
    translations = [translation(text, contents.format, way) for text in contents.texts]
    yield "stand-in translated"
    written = kind.write(file, options, translations)
    yield "written"
    kind = KINDS_BY_NAME["html"] if kind.name == "pdf" else kind
    if kind.name == "html" and b"charset" in file.lower():  # where it is a part of a text, the stand-in changes it
        return
    try:
        kind.read(written, ReadOptions())
    except InvalidDocument as error:
        raise AssertionError(f"the translated file cannot be read: {error}") from error


def mutate_document(mutate_file: Mutate = mutate_lines) -> Mutate:
    """Return a change of an input: of its settings now and then, of the file otherwise."""

    def mutate(data: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
        settings, _, file = data.partition(b"\n")
        if random.random() < 0.03:
            name = (settings.split() or [b"txt"])[0].decode(errors="replace")
            chosen = [name, random.choice(TARGETS), *random.sample(FLAGS, random.randrange(3))]
            return seed(" ".join(chosen), file)
        return settings[:MAX_SETTINGS] + b"\n" + mutate_file(file, random, mutate_bytes)

    return mutate


def _options(words: Sequence[str]) -> ReadOptions:
    target = next((word for word in words if word in TARGETS), TARGETS[0])
    columns = tuple(word.removeprefix("column=") for word in words if word.startswith("column="))
    if "unknown" in words:
        return ReadOptions(MAX_BYTES, only_missing="missing" in words, columns=columns)
    return ReadOptions(MAX_BYTES, "en", target, "missing" in words, columns)
