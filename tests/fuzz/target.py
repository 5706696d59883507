"""What is fuzzed: a reader of foreign bytes, inputs to begin with, and the errors by which it refuses an input."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"

MutateBytes = Callable[[bytes], bytes]
"""Changes some bytes, as the engine does it."""
Mutate = Callable[[bytes, Random, MutateBytes], bytes]
"""Changes an input so that it keeps its structure; the bytes within are changed by the engine."""


@dataclass(frozen=True)
class Target:
    """A reader of foreign bytes.

    Args:
        read: reads an input in steps, and asserts what must hold for every input. It yields the name of each step when
            the step is done; a step that begins with "stand-in" is not a part of the reader.
        seeds: returns inputs to begin with.
        allowed: errors by which the reader refuses an input.
        mutate: changes an input; None: its bytes are changed.
        words: parts that inputs have, which the engine puts in.
        grown: inputs of about n bytes with a regular structure, by a name: they take linear time.
    """

    read: Callable[[bytes], Iterator[str]]
    seeds: Callable[[], Sequence[bytes]]
    allowed: tuple[type[BaseException], ...]
    mutate: Mutate | None = None
    words: Sequence[bytes] = ()
    grown: Mapping[str, Callable[[int], bytes]] = field(default_factory=dict)


def target_names() -> list[str]:
    """Return the names of all targets: those of the modules in `targets/`."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "targets")]))


def load_target(name: str) -> Target:
    target: Target = importlib.import_module(f"tests.fuzz.targets.{name}").TARGET
    return target


def corpus_of(name: str) -> list[Path]:
    """Return the inputs that were found for a target."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())
