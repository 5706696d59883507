"""What cannot be imported is refused in a sentence on standard error, and nothing is left behind."""

import errno
import json
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from model import __main__
from model.importing import sources, writing
from model.importing.families import import_directory
from model.importing.imported import ModelImportError, Options
from tests.model.importing.encoder_checkpoints import write_encoder
from tests.model.importing.marian_checkpoints import write_marian

Change = Callable[[Path], object]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories of models that can be imported."""
    root = tmp_path_factory.mktemp("originals")
    write_marian(root / "marian")
    write_encoder(root / "bert", "bert", "ForSequenceClassification")
    write_encoder(root / "distilbert", "distilbert", "ForSequenceClassification")
    write_encoder(root / "roberta", "roberta", "ForSequenceClassification")
    return root


def refusal(
    originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, family: str, change: Change
) -> str:
    """Import a changed model with the command; return its error, after a look at everything else that it did.

    A change may return another source than the directory, and options.
    """
    directory, temporary = tmp_path / "source" / "m", tmp_path / "temporary"
    shutil.copytree(originals / family, directory)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    returned = change(directory)
    source, *options = returned if isinstance(returned, list) else [directory]
    arguments = ["import", str(source), str(tmp_path / "parent" / "of" / "checkpoint"), *options]
    monkeypatch.setattr(sys, "argv", ["model", *arguments])
    with pytest.raises(SystemExit) as ended, __main__.reporting_errors():
        __main__.app()
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out == ""
    *steps, error = said.err.splitlines()
    assert error.startswith(f"error: cannot import {source}: ")
    assert all(step.startswith(("reading ", "writing ", "fetching ")) for step in steps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "temporary"]
    assert not list(temporary.iterdir())
    return error.removeprefix(f"error: cannot import {source}: ")


def edit(directory: Path, name: str = "config.json", **changes: Any) -> None:
    content = json.loads((directory / name).read_text()) | changes
    (directory / name).write_text(json.dumps({key: value for key, value in content.items() if value != "gone"}))


def edit_weights(directory: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(directory / WEIGHTS)
    change(tensors)
    save_file(tensors, directory / WEIGHTS)


def only(directory: Path, name: str, content: bytes | str = b"") -> None:
    """Leave one file in a directory."""
    shutil.rmtree(directory)
    directory.mkdir()
    (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)


def packed(directory: Path, name: str, entries: dict[str, bytes]) -> list[Path]:
    archive = directory.parent / name
    with zipfile.ZipFile(archive, "w") as file:
        for entry, content in entries.items():
            file.writestr(zipfile.ZipInfo(entry), content)
    return [archive]


def linked(directory: Path) -> list[Path]:
    with tarfile.open(directory.parent / "m.tar", "w") as file:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.SYMTYPE, "../../secret.json"
        file.addfile(link)
    return [directory.parent / "m.tar"]


def swap(directory: Path) -> None:
    source, target = ((directory / f"{side}.spm").read_bytes() for side in ("source", "target"))
    (directory / "source.spm").write_bytes(target)
    (directory / "target.spm").write_bytes(source)


def in_shards(directory: Path, lost: bool) -> None:
    tensors = load_file(directory / WEIGHTS)
    (directory / WEIGHTS).unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[8:]}
    for part, held in parts.items():
        save_file({name: tensors[name] + (part == "b.safetensors") for name in held}, directory / part)
    index = {name: part for part, held in parts.items() for name in held}
    (directory / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": index}))
    if lost:
        (directory / "b.safetensors").unlink()


class Code:
    def __reduce__(self) -> Any:
        return print, ("it ran",)


def pickled(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    torch.save({"a": Code()}, directory / "pytorch_model.bin")


def dangling(directory: Path) -> None:
    """Leave a link to nothing, as a copy of a snapshot in the cache of the hub has."""
    without(directory, WEIGHTS)
    (directory / WEIGHTS).symlink_to("../blobs/1")


def other_bin(directory: Path, content: object) -> None:
    without(directory, WEIGHTS)
    torch.save(content, directory / "pytorch_model.bin")


def page(directory: Path) -> None:
    without(directory, WEIGHTS)
    (directory / "pytorch_model.bin").write_text("<html>Not found</html>")


def without(directory: Path, name: str) -> None:
    (directory / name).unlink()


def broken_template(directory: Path) -> None:
    path = directory / "tokenizer.json"
    content = json.loads(path.read_text())
    content["post_processor"]["single"][0] = {"SpecialToken": {"id": "[GONE]", "type_id": 0}}
    path.write_text(json.dumps(content))


def without_unknown(directory: Path) -> None:
    path = directory / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"] = {"type": "WordLevel", "vocab": content["model"]["vocab"], "unk_token": "[GONE]"}
    path.write_text(json.dumps(content))


def fewer_words(directory: Path) -> None:
    path = directory / "vocab.json"
    ids = json.loads(path.read_text())
    path.write_text(json.dumps({piece: i for piece, i in ids.items() if i < 20 or piece == "<pad>"}))


def renumber(directory: Path, number: object) -> None:
    path = directory / "vocab.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"<pad>": number}))


GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
VIT = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 224}

CASES: list[tuple[str, Change, str]] = [
    # weights
    ("marian", lambda d: (d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes()[:-100]), f"{WEIGHTS} is damaged, or"),
    ("marian", lambda d: (d / WEIGHTS).write_bytes(b""), f"{WEIGHTS} is damaged, or holds no weights: "),
    (
        "marian",
        lambda d: edit_weights(d, lambda t: t.pop("model.decoder.layers.1.fc1.bias")),
        f"{WEIGHTS} has no model.decoder.layers.1.fc1.bias",
    ),
    (
        "marian",
        lambda d: edit_weights(d, lambda t: t.update({"model.decoder.layers.1.fc1.bias": torch.zeros(5)})),
        f"{WEIGHTS} does not match the configuration: decoder.layers.1.feed_forward.hidden.bias is (5,); it must be",
    ),
    (
        "bert",
        lambda d: edit_weights(d, lambda t: t.update({name: one.to(torch.int8) for name, one in t.items()})),
        f"{WEIGHTS} has int8 numbers in",
    ),
    ("marian", lambda d: without(d, WEIGHTS), "has no weights: model.safetensors or pytorch_model.bin is needed"),
    ("marian", lambda d: (d / WEIGHTS).rename(d / "tf_model.h5"), "tf_model.h5 is a model of TensorFlow: bring the"),
    ("marian", lambda d: (d / WEIGHTS).rename(d / "model.onnx"), "model.onnx is a graph (ONNX): bring the model"),
    ("marian", lambda d: in_shards(d, lost=True), f"b.safetensors is missing; {WEIGHTS}.index.json names it"),
    ("marian", lambda d: in_shards(d, lost=False), "a.safetensors and b.safetensors have "),
    (
        "bert",
        lambda d: edit_weights(d, lambda t: t.update({name: one.to(torch.complex64) for name, one in t.items()})),
        f"{WEIGHTS} has complex64 numbers in",
    ),
    (
        "marian",
        lambda d: edit_weights(d, lambda t: t.update({name: one.flatten() for name, one in t.items()})),
        f"the tensors of {WEIGHTS} do not match the configuration: not enough values",
    ),
    ("marian", dangling, f"has no weights: {WEIGHTS} or pytorch_model.bin is needed; {WEIGHTS} is a link to a file"),
    ("marian", pickled, "pytorch_model.bin is damaged, or holds no weights: it must be of PyTorch, and have nothing"),
    ("marian", page, "pytorch_model.bin is damaged, or holds no weights: it must be of PyTorch, and have nothing but"),
    ("marian", lambda d: other_bin(d, [1]), "pytorch_model.bin is damaged, or holds no weights: it must have one m"),
    # settings
    ("marian", lambda d: without(d, "config.json"), "no known model (config.json is missing or has no `model_type`)"),
    ("marian", lambda d: (d / "config.json").write_text("{"), "config.json is not JSON: "),
    ("marian", lambda d: (d / "config.json").write_bytes(b"\xff\xfe"), "config.json is not JSON: "),
    ("marian", lambda d: (d / "config.json").write_text("[1]"), "config.json is not a JSON object"),
    ("marian", lambda d: edit(d, model_type="gone"), "no known model (config.json is missing or has no `model_type`)"),
    ("marian", lambda d: edit(d, model_type="unheard"), "MarianMTModel (`model_type` unheard) is not supported; "),
    ("marian", lambda d: edit(d, model_type=["marian"]), 'config.json: `model_type` is ["marian"]; it must be a text'),
    ("marian", lambda d: edit(d, d_model=-48), "config.json: `d_model` is -48; it must be an integer, 0 or more"),
    ("marian", lambda d: edit(d, encoder_layers=0), "config.json: n_encoder_layers: Input should be greater than 0"),
    (
        "bert",
        lambda d: edit(d, num_attention_heads=5),
        "config.json: `d_model` is 24; it must be a multiple of `n_heads`, 5",
    ),
    ("marian", lambda d: edit(d, "generation_config.json", num_beams=-1), "generation_config.json: beam_size: "),
    (
        "marian",
        lambda d: edit(d, "generation_config.json", num_beams="x"),
        'generation_config.json: `num_beams` is "x"',
    ),
    (
        "marian",
        lambda d: edit(d, "generation_config.json", bad_words_ids=[[9999]]),
        "generation_config.json bars the token 9999, but the model has only ",
    ),
    ("bert", lambda d: edit(d, id2label={"0": "a", "7": "b"}), "config.json has 2 labels in `id2label`"),
    ("marian", lambda d: edit(d, **GPT2), "GPT2LMHeadModel (`model_type` gpt2) is not supported: it is a decoder"),
    ("marian", lambda d: edit(d, **VIT), "(`model_type` vit) is not supported: it reads images; supported are Mar"),
    # tokenizers
    ("marian", lambda d: without(d, "source.spm"), "source.spm is missing"),
    ("marian", swap, "source.spm"),
    ("marian", lambda d: without(d, "vocab.json"), "vocab.json is missing"),
    ("marian", fewer_words, "pieces of source.spm are unknown to the vocabulary"),
    ("marian", lambda d: renumber(d, -1), "vocab.json: the id of <pad> is -1; it must be 0 or more"),
    ("marian", lambda d: renumber(d, 9999), "the token <pad> has the id 9999, but the model has only "),
    ("roberta", lambda d: renumber(d, "x"), 'vocab.json: the id of <pad> is "x"; it must be 0 or more'),
    ("bert", lambda d: without(d, "vocab.txt"), "no tokenizer: tokenizer.json, vocab.txt, vocab.json with merges.txt"),
    ("bert", lambda d: (d / "vocab.txt").write_bytes(b"\xff\xfe"), "vocab.txt is not UTF-8: "),
    ("distilbert", lambda d: (d / "tokenizer.json").write_text('{"model": {}}'), "tokenizer.json is damaged: "),
    ("distilbert", without_unknown, "tokenizer.json cannot cut a text: WordLevel error: Missing [UNK] token"),
    ("distilbert", broken_template, "tokenizer.json: the special token [GONE] of its `post_processor` is not defined"),
    # archives, and what is no model
    ("marian", lambda d: only(d, ".gitignore"), "no known model (config.json is missing or has no `model_type`); supp"),
    ("marian", lambda d: only(d, "adapter_config.json", '{"base_model_name_or_path": "a/b"}'), "merge it into a/b"),
    ("marian", lambda d: only(d, "m.Q4_K_M.gguf"), "m.Q4_K_M.gguf is a model of llama.cpp (GGUF): bring the one that"),
    ("marian", lambda d: only(d, "inner.tar.gz"), "inner.tar.gz is an archive: unpack it first"),
    ("marian", lambda d: [d / WEIGHTS], f"{WEIGHTS} is weights alone: bring the directory with config.json"),
    ("marian", lambda d: [d / "vocab.json"], "vocab.json is no archive that can be read: it must be zip or tar"),
    ("marian", lambda d: packed(d, "m.zip", {"../x/config.json": b"{}"}), "the archive has a path outside of it: ../x"),
    ("marian", lambda d: packed(d, "m.zip", {"inner.zip": b"PK"}), "inner.zip is an archive: unpack it first"),
    ("marian", linked, "the archive m.tar is damaged or cannot be unpacked: "),
    # options
    ("bert", lambda d: [d, "--source", "en"], "`--source` has no effect on this model: BERT, a classifier of 2"),
    ("bert", lambda d: [d, "--dimensions", "8"], "`--dimensions` has no effect on this model: "),
    ("marian", lambda d: [d, "--prompt", "a=b"], "`--prompt` has no effect on this model: MarianMT, en to fr."),
    # places
    ("marian", lambda d: ["nobody/nothing"], "the hub"),
    ("marian", lambda d: [d, "--name", "a/b"], "`--name` 'a/b' must be the name of a directory"),
]


@pytest.mark.parametrize(("family", "change", "sentence"), CASES)
def test_what_cannot_be_read_is_refused(
    originals: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    family: str,
    change: Change,
    sentence: str,
) -> None:
    monkeypatch.setattr(sources, "fetch", no_hub)
    said = refusal(originals, tmp_path, monkeypatch, capsys, family, change)
    assert sentence in said
    assert "it cannot be read:" not in said, "a sentence of its own tells more"


def test_weights_that_are_no_numbers_are_read_without_a_wrong_reason(originals: Path, tmp_path: Path) -> None:
    directory = tmp_path / "m"
    shutil.copytree(originals / "marian", directory)
    edit_weights(directory, lambda t: t.update({name: one * torch.nan for name, one in t.items()}))
    assert import_directory(directory, Options("m")).notes == ()


def no_hub(*_: object) -> None:
    raise ModelImportError("the hub cannot be reached")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_place_that_cannot_be_written_is_told(
    originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, number: int
) -> None:
    def fail(directory: Path, *_: object, **__: object) -> None:
        directory.mkdir()
        (directory / "config.yaml").touch()
        raise OSError(number, "the system's words")

    monkeypatch.setattr(writing, "save_checkpoint", fail)
    said = refusal(originals, tmp_path, monkeypatch, capsys, "bert", lambda _: None)
    assert said == f"cannot write {tmp_path / 'parent' / 'of' / 'checkpoint'}: the system's words"


def test_an_archive_that_is_larger_than_the_free_space_is_not_unpacked(
    originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    bomb = bytes(1_100_000)
    said = refusal(originals, tmp_path, monkeypatch, capsys, "bert", lambda d: packed(d, "m.zip", {"a": bomb}))
    assert said.startswith("the archive needs 0.0 GB to be unpacked, and ")


def test_an_error_that_nobody_expected_is_a_sentence_too(
    originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sources, "_innermost", lambda _: 1 / 0)
    said = refusal(originals, tmp_path, monkeypatch, capsys, "bert", lambda d: packed(d, "m.zip", {"a": b""}))
    assert said == "it cannot be read: division by zero"


def places(content: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the keys that lead to each value of a JSON file, the first few of long lists and mappings."""
    items = list(
        content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    )
    return [place, *(deeper for key, value in items[:20] for deeper in places(value, (*place, key)))]


@settings(max_examples=60)
@given(st.data())
def test_a_setting_of_any_type_is_read_or_refused(originals: Path, data: st.DataObject) -> None:
    family = data.draw(st.sampled_from(["marian", "distilbert", "roberta"]))
    path = data.draw(st.sampled_from(sorted((originals / family).glob("*.json"))))
    original = path.read_text()
    content = json.loads(original)
    place = data.draw(st.sampled_from(places(content)))
    value = data.draw(st.sampled_from([None, "x", -1, 0, [], [1], {}, {"a": 1}, 1e30, True, 10**8, 1.5]))
    holder = {"root": content}
    at: Any = holder
    for key in ("root", *place)[:-1]:
        at = at[key]
    at[("root", *place)[-1]] = value
    path.write_text(json.dumps(holder["root"]))
    with suppress(ModelImportError):
        import_directory(path.parent, Options("m"))
    path.write_text(original)
