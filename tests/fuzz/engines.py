"""Engines that change inputs: atheris, guided by coverage, or hypothesis where atheris is not installed."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.findings import finding_of, limit_memory
from tests.fuzz.mutation import byte_mutation, mutate_lines
from tests.fuzz.target import Target, corpus_of, load_target

MAX_LENGTH = 8_192
MAX_HANG_SECONDS = 300
"""Wall time after which libFuzzer ends a process that hangs in code of C."""
SLOWER = 3.0
"""Instrumented code is slower by about this factor."""


def has_atheris() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


class Counter:
    """Reads inputs, saves what is wrong, and counts both."""

    def __init__(self, target: Target, folder: Path, max_seconds: float) -> None:
        self._target, self._folder, self._max_seconds = target, folder, max_seconds
        self.n_read = self.n_accepted = 0

    def read(self, data: bytes) -> None:
        self.n_read += 1
        finding = finding_of(self._target, data, self._max_seconds)
        if finding is not None and finding.save(data, self._folder / "found"):
            print(f"found: {finding.place}", flush=True)


def fuzz_with_atheris(name: str, seconds: int, folder: Path) -> None:
    """Fuzz a target in this process, which then ends."""
    import atheris

    with atheris.instrument_imports(include=["service", "model", "html", "markdown_it", "email", "json", "csv"]):
        target = load_target(name)
    corpus = _with_seeds(name, target, folder / "corpus")
    counter = Counter(target, folder, SLOWER * 2.0)
    mutate = target.mutate or mutate_lines

    def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)
        for _ in range(random.choice((1, 1, 2, 4))):
            data = mutate(data, random, lambda part: atheris.Mutate(part, len(part) + 16) if part else b" ")
        return data[:max_size]

    dictionary = folder / "words.dict"
    escaped = ("".join(map("\\x{:02x}".format, word)) for word in target.words)
    dictionary.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")
    arguments = [
        sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-timeout={MAX_HANG_SECONDS}", "-print_final_stats=1",
        f"-max_len={MAX_LENGTH}", f"-artifact_prefix={folder}/", f"-dict={dictionary}", "-rss_limit_mb=3000",
        "-close_fd_mask=0", "-len_control=0",
    ]  # fmt: skip
    limit_memory()
    atheris.Setup(arguments, counter.read, custom_mutator=custom_mutator)
    atheris.Fuzz()


def fuzz_with_hypothesis(name: str, seconds: int, folder: Path) -> None:
    """Fuzz a target in this process, without the guidance of coverage."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    target = load_target(name)
    counter = Counter(target, folder, 2.0)
    seeds = [*target.seeds(), *(path.read_bytes() for path in corpus_of(name))]
    ends_at = time.monotonic() + seconds
    limit_memory()

    @given(st.sampled_from(seeds), st.integers(0, 2**32), st.integers(1, 6))
    def read(data: bytes, number: int, n_changes: int) -> None:
        if time.monotonic() < ends_at:
            random = Random(number)
            for _ in range(n_changes):
                data = (target.mutate or mutate_lines)(data, random, byte_mutation(random, target.words))
            counter.read(data)

    while time.monotonic() < ends_at:
        once = settings(max_examples=200, database=None, deadline=None, phases=[Phase.generate],
                        suppress_health_check=[*HealthCheck])(read)  # fmt: skip
        seed(time.monotonic_ns())(once)()
    print(json.dumps({"executions": counter.n_read}), flush=True)


ENGINES: dict[str, Callable[[str, int, Path], None]] = {
    "atheris": fuzz_with_atheris,
    "hypothesis": fuzz_with_hypothesis,
}


def _with_seeds(name: str, target: Target, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate([*target.seeds(), *(path.read_bytes() for path in corpus_of(name))]):
        (folder / f"seed-{i}").write_bytes(seed)
    return folder
