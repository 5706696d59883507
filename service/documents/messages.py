"""Messages between a service and the process that reads its documents: the lengths of JSON and of a file, then both."""

import json
import struct
from typing import Any

LENGTHS = struct.Struct("!II")


def pack_message(header: dict[str, Any], file: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return LENGTHS.pack(len(text), len(file)) + text + file
