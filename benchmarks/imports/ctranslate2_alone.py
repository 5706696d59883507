"""Prints tokens per second and MB of memory of CTranslate2 in a process that has nothing else."""

import os
import sys
import time
from collections.abc import Sequence

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
import ctranslate2  # noqa: E402  (it would import torch where there is one, which would count as its memory)

from benchmarks.memory import footprint  # noqa: E402


def main(directory: str, language: str, n_tokens: int, n_times: int, pieces: Sequence[str]) -> None:
    """Translate a sentence several times by greedy search, into n_tokens tokens."""
    translator = ctranslate2.Translator(directory, "cpu", compute_type="int8", intra_threads=os.cpu_count() or 1)
    limits = {"max_decoding_length": n_tokens, "min_decoding_length": n_tokens}
    for _ in range(n_times):
        began = time.monotonic()
        translator.translate_batch([pieces], target_prefix=[[language]], beam_size=1, **limits)
        elapsed_s = time.monotonic() - began
    print(n_tokens / elapsed_s, footprint(os.getpid())["mb"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
