"""Firefox's translators, compared with a forward pass in NumPy and with the same weights in .npz."""

import gzip
import hashlib
import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import yaml

from manifest.schema import AlignmentChoice
from manifest.sums import sum_of_file
from model.checkpoint import load_checkpoint
from model.config import TransformerConfig
from model.decoding.search import beam_search, greedy_search, greedy_search_uncached
from model.importing import firefox, marian_npz
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.importing.marian_bin import read_bin
from tests.model.importing.firefox_models import (
    FORK,
    MODEL,
    SHORTLIST,
    SSRU,
    UPSTREAM,
    VOCABULARY,
    bin_file,
    compressed,
    shortlist_file,
    stored,
    vocabulary_of,
    write_directory,
)
from tests.model.importing.imported_transformers import built, config_of
from tests.model.importing.marian_releases import ENGLISH, FRENCH, logits, write_npz
from tests.model.importing.test_marian_npz import source_ids


def target_ids(directory: Path, name: str, text: str) -> list[int]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / name))
    return [*processor.encode(text), 0]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("firefox") / "enfr"
    write_directory(found)
    return found


@pytest.fixture
def copied(directory: Path, tmp_path: Path) -> Path:
    return shutil.copytree(directory, tmp_path / "enfr")


@pytest.mark.parametrize("is_separate", [False, True])
@torch.inference_mode()
def test_logits_are_those_of_a_forward_pass_by_marians_names(tmp_path: Path, is_separate: bool) -> None:
    arrays = write_directory(tmp_path / "m", is_separate)
    assert firefox.recognizes(tmp_path / "m")
    imported = firefox.import_directory(tmp_path / "m", Options())
    model, tokens = built(imported), config_of(imported).special_tokens
    source_name, target_name = ("srcvocab.enfr.spm", "trgvocab.enfr.spm") if is_separate else (VOCABULARY, VOCABULARY)
    for english, french in zip(ENGLISH, FRENCH, strict=True):
        source, target = source_ids(imported, english), target_ids(tmp_path / "m", target_name, french)
        assert source == target_ids(tmp_path / "m", source_name, english)
        expected = logits(arrays, "relu", True, source, target)
        shifted = torch.tensor([[tokens.bos, *target[:-1]]])
        found = model.logits(model(torch.tensor([source]), torch.tensor([len(source)]), shifted))[0]
        written = found.isfinite().any(0).nonzero().flatten().tolist()
        assert written == [i for i in range(expected.shape[1]) if i != tokens.unk]
        assert np.abs(found[:, written].numpy() - expected[:, written]).max() < 1e-5


@pytest.mark.parametrize("kind", [None, UPSTREAM, FORK])
def test_a_bin_file_has_the_weights_of_the_npz_file(tmp_path: Path, directory: Path, kind: int | None) -> None:
    floats = read_bin(directory / MODEL).arrays
    (tmp_path / "m.bin").write_bytes(bin_file(floats, SSRU, kind))
    write_npz(tmp_path / "m.npz", {name: stored(name, array, kind) for name, array in floats.items()}, SSRU)
    shutil.copy(directory / VOCABULARY, tmp_path / "v.spm")
    weights = []
    for name in ("m.bin", "m.npz"):
        decoder = {"models": [name], "vocabs": ["v.spm", "v.spm"], "beam-size": 1, "normalize": 1}
        (tmp_path / "decoder.yml").write_text(yaml.safe_dump(decoder))
        weights.append(marian_npz.import_directory(tmp_path, Options(sources=("en",), targets=("fr",))).weights)
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=0, atol=0)


def test_searches_languages_and_licence_are_firefoxs(copied: Path) -> None:
    imported = firefox.import_directory(copied, Options())
    config = imported.config
    assert isinstance(config.model, TransformerConfig)
    assert (config.model.source, config.model.target) == ("en", "fr")
    assert (config.decoding.beam_size, config.decoding.length_penalty, config.decoding.stop) == (1, 1, "empty")
    assert imported.alignment == AlignmentChoice(layer=2, heads=(0,), next_row=False)
    assert config.provenance is not None
    assert config.provenance.licence == "mpl-2.0"
    (copied / "metadata.json").write_text(json.dumps({"sourceLanguage": "en", "targetLanguage": "zh-Hans"}))
    assert config_of(firefox.import_directory(copied, Options())).target == "zh-Hans"
    named = firefox.import_directory(copied, Options(sources=("de",), targets=("it",)))
    assert (config_of(named).source, config_of(named).target) == ("de", "it")


def test_other_projects_models_have_no_known_licence(copied: Path) -> None:
    (copied / MODEL).rename(copied / "model.intgemm.alphas.bin")
    imported = firefox.import_directory(copied, Options())
    assert imported.config.provenance is not None
    assert imported.config.provenance.licence is None
    assert config_of(imported).target == "fr"  # the vocabulary's name tells it


@pytest.mark.parametrize("packed", [".gz", ".zst"])
def test_an_archive_of_compressed_files_is_imported(tmp_path: Path, directory: Path, packed: str) -> None:
    write_directory(tmp_path / "enfr", packed=packed)
    with tarfile.open(tmp_path / "firefox.tar", "w") as archive:
        archive.add(tmp_path / "enfr", "models/tiny/enfr")
    imported = import_model(str(tmp_path / "firefox.tar"), tmp_path / "c", Options())
    expected = firefox.import_directory(directory, Options())
    assert all(torch.equal(tensor, expected.weights[name]) for name, tensor in imported.weights.items())
    checkpoint = load_checkpoint(tmp_path / "c")
    assert "mpl-2.0" in (tmp_path / "c" / "README.md").read_text()
    for text in (*ENGLISH, *FRENCH, "日本 and кот 🎉"):
        (ids,) = checkpoint.encode([text])
        assert ids == target_ids(directory, VOCABULARY, text)
        assert checkpoint.decode(ids) == text


def registries(directory: Path) -> dict[str, Any]:
    """Both registries, with the files of a directory as a model from English to Chinese, after another version."""
    of_firefox, of_mozilla = list[dict[str, Any]](), dict[str, dict[str, str]]()
    for path in sorted(directory.iterdir()):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        for found in ("0" * 64, sha256):
            languages = {"sourceLanguage": "en", "targetLanguage": "zh-Hans"}
            of_firefox.append({"name": path.name, "decompressedHash": found, **languages})
        of_mozilla[path.stem] = {"path": f"models/enzh/{path.name}.gz"}
        if path.name == MODEL:  # the others have no sums there
            of_mozilla[path.stem]["uncompressedHash"] = sha256
    other = {"files": {"model": {"path": f"models/other/{MODEL}.gz", "uncompressedHash": "0" * 64}}}
    return {
        "records.json": {"data": of_firefox},
        "models.json": {"models": {"en-zh-Hans": [other, {"files": of_mozilla}]}},
    }


@pytest.mark.parametrize("name", ["records.json", "models.json"])
def test_a_registry_tells_the_languages_and_the_sums_of_files(copied: Path, name: str) -> None:
    registry = registries(copied)[name]
    packed = copied / f"{MODEL}.zst"
    packed.write_bytes(compressed((copied / MODEL).read_bytes(), ".zst"))
    (copied / MODEL).unlink()
    (copied / name).write_text(json.dumps(registry))
    imported = firefox.import_directory(copied, Options())
    assert (config_of(imported).source, config_of(imported).target) == ("en", "zh-Hans")
    packed.write_bytes(compressed(bin_file(read_bin(packed).arrays, SSRU, None), ".zst"))
    with pytest.raises(
        ModelImportError, match=f"{MODEL}.zst is damaged, or of another model: its sum is none that {name}"
    ):
        firefox.import_directory(copied, Options())
    (copied / name).write_text(json.dumps(registry).replace(MODEL, "model.bin"))
    with pytest.raises(ModelImportError, match=f"{name} does not name {MODEL}"):
        firefox.import_directory(copied, Options())
    (copied / name).write_text('{"data": [7], "models": [7]}')
    with pytest.raises(ModelImportError, match=f"{name} is no registry of Firefox's models: "):
        firefox.import_directory(copied, Options())


def test_the_records_of_earlier_firefoxes_have_other_keys(copied: Path) -> None:
    data = [
        {"name": path.name, "fromLang": "de", "toLang": "it", "attachment": {"hash": sum_of_file(path).sha256}}
        for path in copied.iterdir()
    ]
    (copied / "records.json").write_text(json.dumps({"data": data}))
    assert config_of(firefox.import_directory(copied, Options())).target == "it"


@pytest.mark.parametrize("is_separate", [False, True])
@torch.inference_mode()
def test_a_shortlist_bars_what_no_token_of_the_source_lists(tmp_path: Path, is_separate: bool) -> None:
    write_directory(tmp_path / "m", is_separate)
    imported = firefox.import_directory(tmp_path / "m", Options())
    assert imported.vocabulary is not None
    n_source, n_target = len(imported.vocabulary.source), len(imported.vocabulary.target)
    lists = [[(7 * token + i) % n_target for i in range(token % 5)] for token in range(n_source)]
    (tmp_path / "m" / SHORTLIST).write_bytes(shortlist_file(lists, first=10))
    imported = firefox.import_directory(tmp_path / "m", Options())
    model, tokens = built(imported), config_of(imported).special_tokens
    source = source_ids(imported, ENGLISH[0])
    allowed = {*range(10), *(token for one in source for token in lists[one]), *(() if is_separate else source)}
    while len(allowed) % 8:
        allowed.add(next(token for token in range(n_target) if token not in allowed))
    ids, lengths = torch.tensor([[*source, tokens.pad]]), torch.tensor([len(source)])
    found = model.shortlists(ids, lengths)
    assert found is not None
    assert found[0].nonzero().flatten().tolist() == sorted(allowed)
    (hypothesis,) = greedy_search(model, ids, lengths, 20)
    assert {*hypothesis.ids} <= allowed - {tokens.unk}
    for search in (greedy_search_uncached(model, ids, lengths, 20), beam_search(model, ids[0, :-1], 20, beam_size=1)):
        assert [token for token in search[0].ids if token != tokens.eos] == hypothesis.ids


def other_type(directory: Path, kind: int) -> None:
    (directory / MODEL).write_bytes(
        (directory / MODEL).read_bytes().replace((0x4101).to_bytes(8, "little"), kind.to_bytes(8, "little"))
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda d: other_type(d, 0x4102),
            r"is stored as intgemm16 \(0x4102\), which is not supported; float32 and int8",
        ),
        (lambda d: other_type(d, 0x2801), "is stored as packed8avx512"),
        (lambda d: other_type(d, 0x77), r"is stored as a type of its own \(0x77\)"),
        (
            lambda d: (d / MODEL).write_bytes((d / MODEL).read_bytes()[:5000]),
            f"{MODEL} is damaged, or is no file of Mar",
        ),
        (
            lambda d: (d / MODEL).write_bytes(b"\1" + bytes(7) + b"\xff" * 40),
            f"{MODEL} is damaged, or is no file of Mar",
        ),
        (lambda d: (d / VOCABULARY).unlink(), r"vocab\*.spm \(the vocabulary\) is missing"),
        (lambda d: (d / VOCABULARY).rename(d / "srcvocab.enfr.spm"), r"trgvocab\*.spm \(the target vocabulary\) is"),
        (
            lambda d: (d / "vocab.b.spm").write_bytes(b""),
            "vocab.b.spm and vocab.enfr.spm: only one file may be the voc",
        ),
        (lambda d: (d / SHORTLIST).write_bytes(b"lex"), f"{SHORTLIST} is damaged, or is no shortlist of Marian's"),
        (lambda d: (d / SHORTLIST).write_bytes(shortlist_file([[1]], 5)), "has lists for 1 tokens, but the vocabulary"),
        (lambda d: other_lists(d, 380), f"{SHORTLIST} is damaged: its lists do not fit the vocabulary"),
        (lambda d: rename_all(d), "name it with `--source`"),
        (
            lambda d: (d / "metadata.json").write_text('{"sourceLanguage": ["en"]}'),
            r'metadata.json: `sourceLanguage` is \["en"\]; it must be a text',
        ),
        (
            lambda d: (d / VOCABULARY).write_bytes(vocabulary_of(ENGLISH)),
            rf"{MODEL}: Wemb has \d+ rows, but the vocabulary has \d+ pieces",
        ),
        (
            lambda d: (d / VOCABULARY).write_bytes(gzip.compress(bytes(20_000_000))),
            f"{VOCABULARY} unpacks to more than 10000000 bytes, 100 times its size",
        ),
        (
            lambda d: (d / VOCABULARY).write_bytes(compressed(bytes(20_000_000), ".zst")),
            f"{VOCABULARY} unpacks to more than 10000000 bytes, 100 times its size",
        ),
        (
            lambda d: (d / MODEL).write_bytes(compressed((d / MODEL).read_bytes(), ".zst")[:2000]),
            f"{MODEL} is missing or damaged",
        ),
        (
            lambda d: (d / MODEL).write_bytes(b"\x28\xb5\x2f\xfdno frame"),
            f"{MODEL} is missing or damaged",
        ),
    ],
)
def test_incomplete_and_damaged_directories_are_refused_in_a_sentence(copied: Path, damage: Any, sentence: str) -> None:
    damage(copied)
    with pytest.raises(ModelImportError, match=sentence) as told:
        firefox.import_directory(copied, Options())
    assert "\n" not in str(told.value)


def other_lists(directory: Path, token: int) -> None:
    n = len(firefox.import_directory(directory, Options()).vocabulary.source)  # type: ignore[union-attr]
    (directory / SHORTLIST).write_bytes(shortlist_file([[token]] * n, 5))


def rename_all(directory: Path) -> None:
    for path in [*directory.iterdir()]:
        path.rename(directory / re.sub(r"\.enfr", "", path.name))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x1f\x8b\x08half"])
def test_weights_of_other_programs_are_not_recognized(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    assert not firefox.recognizes(tmp_path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"dec-cell": "gru"}, "`dec-cell` is gru; it must be ssru"),
        ({"transformer-rnn-projection": True}, "`transformer-rnn-projection` or `layer-normalization`"),
        ({"layer-normalization": True}, "`transformer-rnn-projection` or `layer-normalization`"),
    ],
)
def test_other_recurrent_units_are_refused(copied: Path, changed: dict[str, Any], sentence: str) -> None:
    (copied / MODEL).write_bytes(bin_file(read_bin(copied / MODEL).arrays, SSRU | changed, None))
    with pytest.raises(ModelImportError, match=sentence):
        firefox.import_directory(copied, Options())
