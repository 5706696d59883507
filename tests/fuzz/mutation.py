"""Changes of inputs that keep their structure: of zips and their files, of XML and of texts with lines."""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.target import Mutate, MutateBytes

TAG = re.compile(rb"(<[^<>]*>)")
NAME = re.compile(rb"<(/?)([^\s<>/!?=]+)[^<>]*?(/?)>")
ATTRIBUTE = re.compile(rb"""(?<==)(?:"[^"]*"|'[^']*')""")
PARTS = re.compile(rb"(\s+|[^\w\s])")
DATE = (2024, 1, 1, 0, 0, 0)
MAX_REPEATS = 40


def mutate_xml(xml: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    """Change a text or an attribute, or copy, move, wrap or delete an element; tags mostly stay balanced."""
    parts = TAG.split(xml)
    change = random.random()
    if change < 0.3 or len(parts) < 5:
        i = random.randrange(0, len(parts), 2)
        parts[i] = mutate_bytes(parts[i])
    elif change < 0.45:
        i = random.randrange(1, len(parts), 2)
        parts[i] = _with_other_attribute(parts[i], random, mutate_bytes)
    elif change < 0.5:
        return mutate_bytes(xml)
    else:
        start, end = _element(parts, random)
        element = parts[start:end]
        if change < 0.7:
            at = random.randrange(0, len(parts), 2)
            parts[at:at] = element * random.choice((1, 1, 1, 2, MAX_REPEATS))
        elif change < 0.8:
            del parts[start:end]
        elif change < 0.9 and (name := NAME.match(parts[random.randrange(1, len(parts), 2)])):
            depth = random.choice((1, 1, 2, MAX_REPEATS))
            parts[start:end] = [b"<%s>" % name[2]] * depth + element + [b"</%s>" % name[2]] * depth
        else:
            other, after = _element(parts, random)
            parts[other:after] = element
    return b"".join(parts)


def mutate_lines(text: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    """Change some bytes, or copy, move, repeat or delete words or lines."""
    change = random.random()
    if change < 0.5:
        return mutate_bytes(text)
    parts = text.splitlines(keepends=True) if change < 0.75 else PARTS.split(text)
    if not parts:
        return mutate_bytes(text)
    start = random.randrange(len(parts))
    end = min(len(parts), start + random.choice((1, 1, 2, 3, 8)))
    if change % 0.25 < 0.1:
        at = random.randrange(len(parts) + 1)
        parts[at:at] = parts[start:end] * random.choice((1, 1, 1, 2, MAX_REPEATS))
    elif change % 0.25 < 0.17:
        del parts[start:end]
    else:
        part = b"".join(parts[start:end])
        parts[start:end] = [mutate_bytes(part)]
    return b"".join(parts)


def mutate_zip(data: bytes, random: Random, mutate_bytes: MutateBytes, mutate_file: Mutate = mutate_xml) -> bytes:
    """Change a file in a zip, or the files that it has; now and then the bytes of the zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            files = [(info.filename, opened.read(info)) for info in opened.infolist()]
    except Exception:  # whatever a damaged zip raises
        return mutate_bytes(data)
    change = random.random()
    if not files or change < 0.05:
        return mutate_bytes(data)
    i = random.randrange(len(files))
    name, content = files[i]
    if change < 0.9:
        files[i] = name, mutate_file(content, random, mutate_bytes)
    elif change < 0.93:
        del files[i]
    elif change < 0.96:
        files[i] = mutate_bytes(name.encode()).decode(errors="replace") or name, content
    else:
        files[i] = name, random.choice(files)[1]
    return packed(files)


def packed(files: Sequence[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as writing:
        for name, content in dict(files).items():
            writing.writestr(zipfile.ZipInfo(name, DATE), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def byte_mutation(random: Random, words: Sequence[bytes]) -> MutateBytes:
    """Return simple changes of bytes, for an engine without any of its own."""

    def mutate(data: bytes) -> bytes:
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((0, 0, 1, 1, 2, 4, 8, 32)))
        choices: list[Callable[[], bytes]] = [
            lambda: bytes([random.randrange(256)]),
            lambda: data[start:end] * random.choice((0, 2, MAX_REPEATS)),
            lambda: random.choice(words) if words else b"",
            lambda: random.choice(
                (b"\0", b"\xff", b" ", b"\n", b"0", b"-1", b"99999999999", b"\xc3\xa9", b"\xe4\xbd\xa0")
            ),
        ]
        return data[:start] + random.choice(choices)() + data[end:]

    return mutate


def _with_other_attribute(tag: bytes, random: Random, mutate_bytes: MutateBytes) -> bytes:
    values = [*ATTRIBUTE.finditer(tag)]
    if not values:
        return mutate_bytes(tag)
    value = random.choice(values)
    new = mutate_bytes(value[0][1:-1]).translate(None, b"<>\"'")
    return tag[: value.start() + 1] + new + tag[value.end() - 1 :]


def _element(parts: Sequence[bytes], random: Random) -> tuple[int, int]:
    """Return the start and the end of an element, or of a tag that has no other one."""
    start = random.randrange(1, len(parts), 2)
    name = NAME.match(parts[start])
    if name is None or name[1] or name[3]:
        return start, start + 1
    depth = 0
    for i in range(start, len(parts), 2):
        found = NAME.match(parts[i])
        if found is not None and found[2] == name[2] and not found[3]:
            depth += -1 if found[1] else 1
            if depth == 0:
                return start, i + 1
    return start, start + 1
