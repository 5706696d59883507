"""What a service and the process that reads its documents tell each other: two lengths of four bytes, JSON, a file."""

import json
from typing import Any

N_LENGTHS = 8


def packed(header: dict[str, Any], file: bytes = b"") -> bytes:
    said = json.dumps(header).encode()
    return len(said).to_bytes(4, "big") + len(file).to_bytes(4, "big") + said + file


def lengths_of(message: bytes) -> tuple[int, int]:
    """Read the lengths of its JSON and of its file from the first eight bytes of a message."""
    return int.from_bytes(message[:4], "big"), int.from_bytes(message[4:N_LENGTHS], "big")
