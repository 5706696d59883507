"""The WebSocket of live translation: frames, and the messages in them."""

import json
import struct
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.http_service import Service
from tests.fuzz.target import MutateBytes, Target

MASK = bytes(4)
"""Changes nothing, so that messages stay readable in the inputs."""


@cache
def _service() -> Service:
    return Service()


def read(data: bytes) -> Iterator[str]:
    """Send frames to a service. Raises AssertionError: what comes back is neither frames of text nor of control."""
    answer = _service().converse(data)
    yield "answered"
    while answer:
        opcode, length, start = answer[0] & 15, answer[1], 2
        assert opcode in (1, 8, 9, 10), f"the opcode is {opcode}"
        if length == 126:
            [length], start = struct.unpack("!H", answer[2:4]), 4
        elif length == 127:
            [length], start = struct.unpack("!Q", answer[2:10]), 10
        if opcode == 1:
            message = json.loads(answer[start : start + length])
            assert "concluded" in message or message["status"] != 500, message
        answer = answer[start + length :]


def frame(content: bytes, opcode: int = 0x81) -> bytes:
    n = len(content)
    length = bytes([0x80 | n]) if n < 126 else struct.pack("!BH", 0xFE, n) if n < 2**16 else struct.pack("!BQ", 0xFF, n)
    return bytes([opcode]) + length + MASK + content


def frames(*messages: dict[str, Any]) -> bytes:
    return b"".join(frame(json.dumps(message).encode()) for message in messages)


def _seeds() -> list[bytes]:
    start = {"source": "en", "target": "fr"}
    said = [{"text": "the dog "}, {"text": "the dog runs. "}, {"text": "the dog runs. a cat "}]
    return [
        frames(said[0] | start, *said[1:], {"text": "the dog runs. a cat sees", "final": True}),
        frames({"text": "the red **dog** ", "glossary": {"dog": "clebs"}, "keep": ["a"], "beam_size": 2} | start),
        frames({"text": "the dog. a", "target": "xx"}, {"text": "", "x": 1}, {"text": "a dog ", "key": "one"} | start),
        frames({"text": "犬が走る。猫が ", "model": "tiny-en-fr", "split_sentences": False, "timeout_s": 1}),
        frame(b'{"text": "the ', 0x01) + frame(b'dog "}', 0x80) + frame(b"", 0x89) + frame(b"", 0x8A) + frame(b"\x03\xe8", 0x88),
        frame(b"\x00", 0x82),
        frame(b"[]"),
    ]  # fmt: skip


def _mutate(data: bytes, chance: Random, mutate: MutateBytes) -> bytes:
    """Change the messages, and write their frames anew; or change any bytes."""
    if chance.random() < 0.3:
        return mutate(data)
    return b"".join(frame(mutate(part)) for part in data.split(b"\x81") if part)


TARGET = Target(
    read=read,
    seeds=_seeds,
    allowed=(),
    mutate=_mutate,
    words=[b'"text": "', b'"final": true', b'"source": "fr"', b"\\ud800", b". ", b"\x81\x80", b"\x01", b"\x80", b"\x88", b"\x89"],
    grown={
        "messages": lambda size: frame(b'{"text": "a "}') * (size // 20),
        "finals": lambda size: frame(b'{"text": "a", "final": true}') * min(size // 40, 200),
        "pings": lambda size: frame(b"", 0x89) * (size // 6),
        "pieces": lambda size: frame(b'{"text": "', 0x01) + frame(b"a", 0x00) * (size // 7),
        "a text": lambda size: frame(json.dumps({"text": "a " * (size // 2)}).encode()),
    },
)  # fmt: skip
