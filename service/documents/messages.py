"""Messages between the service and its reader process: the lengths of a JSON text and a file, then both."""

import json
import struct
from typing import Any

LENGTHS = struct.Struct("!II")


def pack_message(header: dict[str, Any], file: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return LENGTHS.pack(len(text), len(file)) + text + file
