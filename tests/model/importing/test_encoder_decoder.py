"""Names of tensors: of tables that are tied, and of models without their head."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.importing import m2m100, marian
from model.importing.encoder_decoder import (
    DECODER_TABLE,
    ENCODER_TABLE,
    OUTPUT,
    SHARED_TABLE,
    notes_on_copies,
    read_embeddings,
)
from model.importing.imported import ModelImportError, Options
from tests.model.importing.m2m100_checkpoints import write_m2m100
from tests.model.importing.marian_checkpoints import write_marian

TIED: dict[tuple[bool, bool], list[set[str]]] = {
    (True, True): [{SHARED_TABLE, ENCODER_TABLE, DECODER_TABLE, OUTPUT}],
    (True, False): [{ENCODER_TABLE}, {DECODER_TABLE, OUTPUT}],
    (False, True): [{SHARED_TABLE, ENCODER_TABLE, DECODER_TABLE}, {OUTPUT}],
    (False, False): [{ENCODER_TABLE}, {DECODER_TABLE}, {OUTPUT}],
}
"""Names of one table each, by `tie_word_embeddings` and `share_encoder_decoder_embeddings`."""


@pytest.mark.parametrize(("tied", "shared"), TIED)
def test_a_table_is_found_under_each_of_its_tied_names(tied: bool, shared: bool) -> None:
    config = {"tie_word_embeddings": tied, "share_encoder_decoder_embeddings": shared}
    groups = TIED[tied, shared]
    tables = [torch.full((70, 2), float(place)) for place, _ in enumerate(groups)]
    whole = {name: table for names, table in zip(groups, tables, strict=True) for name in names}
    expected, expected_fields = read_embeddings(whole, config)
    for kept in product(*map(sorted, groups)):
        found, fields = read_embeddings({name: whole[name] for name in kept}, config)
        assert fields == expected_fields
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        for lost in kept:
            with pytest.raises(ModelImportError, match="the weights have no "):
                read_embeddings({name: whole[name] for name in kept if name != lost}, config)


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_a_file_may_have_a_tied_table_under_any_name(tmp_path: Path, family: str) -> None:
    importer: Any = marian if family == "marian" else m2m100
    if family == "marian":
        write_marian(tmp_path)
    else:
        write_m2m100(tmp_path, "m2m100")
    expected = importer.import_directory(tmp_path, Options()).weights
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    table = tensors.pop(SHARED_TABLE)
    for name in (ENCODER_TABLE, DECODER_TABLE, OUTPUT):
        save_file(tensors | {name: table}, path)
        found = importer.import_directory(tmp_path, Options()).weights
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[ours], expected[ours]) for ours in expected)


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_a_model_without_its_head_is_read(tmp_path: Path, family: str) -> None:
    """transformers reads it into a model with a head, too; a bias that is missing there is zero."""
    importer: Any = marian if family == "marian" else m2m100
    original: Any = write_marian(tmp_path) if family == "marian" else write_m2m100(tmp_path, "m2m100")
    expected = importer.import_directory(tmp_path, Options()).weights
    original.model.save_pretrained(tmp_path)
    found = importer.import_directory(tmp_path, Options())
    assert not any(name.startswith("model.") for name in load_file(tmp_path / "model.safetensors"))
    for name, weight in expected.items():
        assert torch.equal(found.weights[name], weight if name != "output_bias" else torch.zeros(len(weight)))
    notes = ("the weights have no final_logits_bias, so that it is zero",)
    assert found.notes == (notes if family == "marian" else ())
    read_again = type(original).from_pretrained(tmp_path)
    table = read_again.get_input_embeddings().weight
    assert torch.equal(found.weights["embedding.tokens.weight"][: len(table)], table)


@pytest.mark.parametrize("shared", [True, False])
def test_a_single_table_has_no_copies(shared: bool) -> None:
    config = {"share_encoder_decoder_embeddings": shared}
    for name in (SHARED_TABLE, DECODER_TABLE, ENCODER_TABLE, OUTPUT):
        assert notes_on_copies({name: torch.ones(2, 2)}, config) == ()


def test_a_copy_that_differs_from_the_table_it_is_tied_to_is_told(tmp_path: Path) -> None:
    write_marian(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    for copy, notes in (
        (tensors[SHARED_TABLE].clone(), ()),
        (tensors[SHARED_TABLE] * 2, (f"{OUTPUT} differs from {SHARED_TABLE}; config.json ties them, ",)),
    ):
        save_file(tensors | {OUTPUT: copy}, path)
        imported = marian.import_directory(tmp_path, Options())
        assert [note.partition("so that")[0] for note in imported.notes] == list(notes)
        assert torch.equal(imported.weights["embedding.tokens.weight"][: len(copy)], tensors[SHARED_TABLE])
