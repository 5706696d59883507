"""Inputs that fuzzing has found are read again; each was mended."""

from pathlib import Path

import pytest

from tests.fuzz.findings import finding_of
from tests.fuzz.target import CORPUS, corpus_of, load_target, target_names

ONCE_SLOW = {
    "artifacts": ("keys nested", "weights nested", "weights of dimensions"),
    "checkpoints": ("yaml aliases", "a long piece", "packed zeros"),
    "http": ("wrong texts of LibreTranslate", "wrong dictionaries"),
    "markup": ("html nested texts",),
    "messages": ("po plural forms of blanks", "po messages of conversions", "xliff blanks in a tag", "xliff blanks in a target"),
    "packages": (
        "excel lines", "excel quoted str", "epub files named and long", "odt texts in nested spans", "zip of a long name",
        "zip of one name",
    ),
    "text_files": ("md labels",),
}  # fmt: skip
"""Structures that once took quadratic time or more, by their target."""
SIZE = 2**16
"""So many bytes take a fraction of a second in linear time."""
INPUTS = [(name, path) for name in target_names() for path in corpus_of(name)]


@pytest.mark.parametrize(("name", "path"), INPUTS, ids=[f"{name}/{path.name}" for name, path in INPUTS])
def test_an_input_that_was_found_is_read_or_refused(name: str, path: Path) -> None:
    finding = finding_of(load_target(name), path.read_bytes(), max_seconds=None)
    assert finding is None, finding.details


@pytest.mark.parametrize(("name", "structure"), [(name, one) for name, all_of in ONCE_SLOW.items() for one in all_of])
def test_a_structure_that_once_took_long_is_read_or_refused(name: str, structure: str) -> None:
    target = load_target(name)
    finding = finding_of(target, target.grown[structure](SIZE), max_seconds=None)
    assert finding is None, finding.details


@pytest.mark.parametrize("name", target_names())
def test_the_inputs_to_begin_with_are_read(name: str) -> None:
    target = load_target(name)
    for seed in target.seeds():
        finding = finding_of(target, seed, max_seconds=None)
        assert finding is None, finding.details


def test_each_folder_of_the_corpus_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= {*target_names()}
