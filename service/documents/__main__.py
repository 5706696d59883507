"""Read and write documents in a process of their own: a file that fills the memory or crashes a library ends only this
process.

    python -m service.documents MAX_BYTES

The process reads requests from standard input, and writes answers to standard output.
"""

import json
import signal
import sys
from typing import Any

from service.base.errors import RequestError
from service.documents.contents import ReadOptions
from service.documents.kinds import KINDS_BY_NAME, kind_of
from service.documents.messages import LENGTHS, pack_message

OWN_MEMORY = 2**30
MEMORY_PER_BYTE = 16
"""Limit of the address space: `OWN_MEMORY`, and `MEMORY_PER_BYTE` for each byte of the largest document."""


def main(max_bytes: int) -> None:
    """Answer requests until standard input ends. An unpacked document has at most `max_bytes`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service ends this process
    if sys.platform == "linux":
        import resource

        limit = OWN_MEMORY + MEMORY_PER_BYTE * max_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while lengths := requests.read(LENGTHS.size):
        n_text, n_file = LENGTHS.unpack(lengths)
        answers.write(answer(json.loads(requests.read(n_text)), requests.read(n_file)))
        answers.flush()


def answer(request: dict[str, Any], file: bytes) -> bytes:
    """Return the texts of a file, or the file with the translations in the request."""
    try:
        kind = KINDS_BY_NAME[request["kind"]] if "kind" in request else kind_of(request["file_name"], file)
        options = ReadOptions(**request["options"])
        if "translations" in request:
            return pack_message({}, kind.write(file, options, request["translations"]))
        return pack_message({"kind": kind.name} | vars(kind.read(file, options)))
    except RequestError as error:
        return pack_message({"error": type(error).__name__, "detail": str(error)})
    except MemoryError:
        return pack_message({"error": "TooLarge", "detail": "The document takes too much memory"})


if __name__ == "__main__":
    main(int(sys.argv[1]))
