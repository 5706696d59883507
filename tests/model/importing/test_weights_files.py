"""Weights are read from every layout of Hugging Face, and from nothing else."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from model.importing import sentence_encoder
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.importing.weights_files import read_tensors, tensor_names
from model.weights import read_weights
from tests.model.importing.encoder_checkpoints import write_encoder

TENSORS = {"a": torch.arange(6.0).view(2, 3).half(), "b": torch.arange(4.0).bfloat16() / 3, "n": torch.arange(3)}


def expect_tensors(found: dict[str, Tensor]) -> None:
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_one_file_is_read_in_the_types_that_it_has(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    expect_tensors(read_tensors(tmp_path))


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        (torch.float16, torch.float16),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float32),
    ],
)
def test_a_checkpoint_has_types_that_are_known_everywhere(
    tmp_path: Path, stored: torch.dtype, kept: torch.dtype
) -> None:
    original = write_encoder(tmp_path / "theirs", "bert", "Model").to(stored)
    original.save_pretrained(tmp_path / "theirs")
    import_model(str(tmp_path / "theirs"), tmp_path / "ours", Options())
    table = read_weights(tmp_path / "ours" / "weights.safetensors")["embedding.tokens.weight"]
    assert table.dtype == kept
    assert torch.equal(table, original.embeddings.word_embeddings.weight.to(kept))


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_bin_file_is_read(tmp_path: Path, is_zip: bool) -> None:
    """Old versions of PyTorch wrote no zips."""
    path = tmp_path / "pytorch_model.bin"
    torch.save(TENSORS, path, _use_new_zipfile_serialization=is_zip)
    expect_tensors(read_tensors(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_file_is_mapped_and_not_copied(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    (save_file if path.suffix == ".safetensors" else torch.save)(TENSORS, path)
    found = read_tensors(tmp_path)
    assert str(path) in Path("/proc/self/maps").read_text()
    expect_tensors(found)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_several_files_are_read_by_their_index(tmp_path: Path, name: str) -> None:
    where = {key: f"part-{i}{Path(name).suffix}" for i, key in enumerate(TENSORS)}
    for key, part in where.items():
        save = save_file if name.endswith("safetensors") else torch.save
        save({key: TENSORS[key]}, tmp_path / part)
    (tmp_path / f"{name}.index.json").write_text(json.dumps({"weight_map": where}))
    expect_tensors(read_tensors(tmp_path))
    (tmp_path / where["b"]).unlink()
    with pytest.raises(ModelImportError, match=f"{where['b']} is missing; {name}.index.json names it"):
        read_tensors(tmp_path)


def test_an_index_reads_nothing_outside_its_directory(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "part.safetensors")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(TENSORS, "../part.safetensors")}))
    with pytest.raises(ModelImportError, match="is missing"):
        read_tensors(index.parent)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize(
    "content", [b"", b"nothing of the kind", b"PK\x03\x04 half a file", b"version https://git-lfs"]
)
def test_a_damaged_file_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelImportError, match=name) as told:
        read_tensors(tmp_path)
    assert "\n" not in str(told.value)


def test_an_index_may_name_a_tensor_twice_if_it_is_the_same(tmp_path: Path) -> None:
    for part, factor in (("one", 1), ("two", 1), ("three", 2)):
        save_file({name: tensor * factor for name, tensor in TENSORS.items()}, tmp_path / f"{part}.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}')
    expect_tensors(read_tensors(tmp_path))
    index.write_text('{"weight_map": {"a": "one.safetensors", "b": "three.safetensors"}}')
    with pytest.raises(ModelImportError, match=r"one\.safetensors and three\.safetensors have \w, and it differs"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("name", ["model-00001-of-00002.safetensors", "pytorch_model-00001-of-00002.bin"])
def test_parts_without_their_index_are_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ModelImportError, match=f"the index of {name} is missing: .*index.json"):
        read_tensors(tmp_path)


def test_safetensors_come_before_a_bin_file(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    torch.save({"another": TENSORS["a"]}, tmp_path / "pytorch_model.bin")
    expect_tensors(read_tensors(tmp_path))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_what_a_training_program_puts_around_names_is_left_out(tmp_path: Path, prefix: str) -> None:
    save_file({f"{prefix}{name}": tensor for name, tensor in TENSORS.items()}, tmp_path / "model.safetensors")
    expect_tensors(read_tensors(tmp_path))
    assert tensor_names(tmp_path) == TENSORS.keys()


@pytest.mark.parametrize("key", ["state_dict", "model"])
def test_a_checkpoint_of_training_is_read_if_it_has_one_model(tmp_path: Path, key: str) -> None:
    """Lightning stores the attributes of its module: `model.bert...`."""
    nested = {f"model.{name}": tensor for name, tensor in TENSORS.items()}
    more = {"epoch": 3, "optimizer_states": [{"state": {}}], "hyper_parameters": {"lr": 0.1}}
    torch.save({key: nested, **more}, tmp_path / "pytorch_model.bin")
    expect_tensors(read_tensors(tmp_path))
    torch.save({key: nested, "ema": nested, **more}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelImportError, match=f"it must have one model, not {key}, ema"):
        read_tensors(tmp_path)


class Foreign:
    pass


def test_a_bin_file_runs_nothing(tmp_path: Path) -> None:
    torch.save({"a": Foreign()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelImportError, match=r"pytorch_model\.bin is damaged, or holds no weights"):
        read_tensors(tmp_path)


def test_a_directory_without_weights_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelImportError, match=r"model\.safetensors or pytorch_model\.bin is needed"):
        read_tensors(tmp_path)


def test_files_that_are_nested_too_deeply_are_refused_in_a_sentence(tmp_path: Path) -> None:
    nested = "[" * 5_000 + "]" * 5_000
    (tmp_path / "model.safetensors.index.json").write_text(nested)
    with pytest.raises(ModelImportError, match=r"must map weights to files in `weight_map`: .*nested too deeply"):
        read_tensors(tmp_path)
    (tmp_path / "adapter_config.json").write_text(nested)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ModelImportError, match=r"has no weights: .* merge it into its base model"):
        read_tensors(tmp_path)
    (tmp_path / "modules.json").write_text(nested)
    with pytest.raises(ModelImportError, match=r"modules\.json must list modules"):
        sentence_encoder.import_directory(tmp_path, Options())


def test_an_archive_that_would_fill_the_disk_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", bytes(20_000_000))
    with pytest.raises(ModelImportError, match=r"m\.zip unpacks to more than 10000000 bytes"):
        import_model(str(tmp_path / "m.zip"), tmp_path / "ours", Options())
