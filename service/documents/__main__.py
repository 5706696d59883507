"""Reads and writes documents for a service, in a process of its own: a file that is made to take all memory, or to
crash a library, takes only this one.

    python -m service.documents MAX_BYTES

On standard input come questions, on standard output answers.
"""

import json
import signal
import sys
from typing import Any

from service.base.errors import RequestError
from service.documents.kinds import BY_NAME, kind_of
from service.documents.messages import N_LENGTHS, lengths_of, packed

OWN_MEMORY = 2**30
MEMORY_OF_A_BYTE = 16
"""Of addresses: what the process takes itself, and for each byte of the largest document."""


def main(max_bytes: int) -> None:
    """Answer until there is no question left.

    Args:
        max_bytes: how large a document may be, unpacked.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks says when to end
    if sys.platform == "linux":
        import resource

        limit = OWN_MEMORY + MEMORY_OF_A_BYTE * max_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while lengths := questions.read(N_LENGTHS):
        n_said, n_file = lengths_of(lengths)
        answers.write(answer(json.loads(questions.read(n_said)), questions.read(n_file), max_bytes))
        answers.flush()


def answer(question: dict[str, Any], file: bytes, max_bytes: int) -> bytes:
    """What a file has to translate, or the file with translations."""
    try:
        kind = BY_NAME[question["kind"]] if "kind" in question else kind_of(question["file_name"], file)
        contents = kind.read(file, max_bytes)
        if "translations" in question:
            return packed({}, contents.written(question["translations"]))
        return packed({"kind": kind.name, "format": contents.format, "texts": contents.texts})
    except RequestError as error:
        return packed({"error": type(error).__name__, "detail": str(error)})
    except MemoryError:
        return packed({"error": "TooLarge", "detail": "the document takes too much memory"})


if __name__ == "__main__":
    main(int(sys.argv[1]))
