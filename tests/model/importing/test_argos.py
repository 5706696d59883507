"""Packages of Argos Translate, compared with SentencePiece and CTranslate2 as it uses them."""

import json
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from manifest.schema import Language
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import TransformerConfig
from model.decoding.search import beam_search
from model.importing.argos import import_directory
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.networks.transformer import Transformer
from tests.model.importing.argos_packages import FRENCH, METADATA, SENTENCES, Argos, Kind, pack, write_package

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    torch.manual_seed(7)
    root = tmp_path_factory.mktemp("packages")
    return {kind: write_package(root / kind, kind) for kind in get_args(Kind)}


@pytest.fixture(params=get_args(Kind))
def package(request: pytest.FixtureRequest, packages: dict[str, Path]) -> Path:
    return packages[request.param]


@pytest.fixture
def copied(packages: dict[str, Path], tmp_path: Path) -> Path:
    """Return a copy of a package that a test may change."""
    return shutil.copytree(packages["opennmt"], tmp_path / "package")


@pytest.fixture
def checkpoint(package: Path, tmp_path: Path) -> Checkpoint:
    import_model(str(pack(package, tmp_path / "translate-en_pb.argosmodel")), tmp_path / "checkpoint", Options())
    return load_checkpoint(tmp_path / "checkpoint")


def test_a_package_is_a_translator_between_its_languages(checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    assert isinstance(config.model, TransformerConfig)
    assert (config.name, config.model.source, config.model.target) == ("translate-en_pb", "en", "pb")
    assert config.description == "Argos Translate, English to Portuguese (Brazil), version 1.9."
    decoding = config.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.max_target_tokens) == (4, 0.2, 256)
    assert config.max_tokens == 256


def test_texts_are_cut_as_sentencepiece_cuts_them(package: Path, checkpoint: Checkpoint) -> None:
    pieces, vocabulary, ends = Argos(package).pieces, checkpoint.vocabulary, package.name == "opus"
    assert vocabulary is not None
    for text in [*SENTENCES, *FRENCH, "Ünknown ☃ signs", " two  spaces ", "日本"]:
        expected = [vocabulary.source.get(piece, vocabulary.unk) for piece in pieces.encode(text, out_type=str)]
        (ids,) = checkpoint.encode([text])
        assert ids == expected + [vocabulary.source["</s>"]] * ends


def test_translations_are_those_of_argos_translate(package: Path, checkpoint: Checkpoint) -> None:
    """Except for some beams: CTranslate2 keeps the beam width when a hypothesis ends, and stops with the fourth."""
    model, argos, texts = checkpoint.model, Argos(package), SENTENCES + FRENCH
    assert isinstance(model, Transformer)
    decoding, same = checkpoint.config.decoding, 0
    for ids, expected in zip(checkpoint.encode(texts), argos.translate(texts), strict=True):
        (found,) = beam_search(
            model,
            torch.tensor(ids),
            60,
            decoding.beam_size,
            decoding.length_penalty,
            beam_threshold=decoding.beam_threshold,
            stop=decoding.stop,
        )
        if checkpoint.pieces(found.ids, "target") == [*expected, "</s>"]:
            assert checkpoint.decode(found.ids) == argos.pieces.decode(expected)
            same += 1
    assert same >= 0.95 * len(texts)


@pytest.mark.parametrize("quantization", ["bfloat16", "int8_bfloat16"])
def test_weights_that_only_some_processors_compute_with_are_read(tmp_path: Path, quantization: str) -> None:
    package = write_package(tmp_path / "package", "opennmt", quantization)
    import_model(str(package), tmp_path / "checkpoint", Options())
    model = load_checkpoint(tmp_path / "checkpoint").model
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}


def test_what_is_not_followed_is_told(package: Path) -> None:
    unknown, splitter = import_directory(package, Options()).notes
    assert "replace_unknowns" in unknown
    assert splitter == "the package brings a model that finds sentences (stanza); here the service finds them"


def test_a_user_may_name_model_and_languages(package: Path) -> None:
    config = import_directory(package, Options("mine", ("eng",), ("pt-BR",))).config
    assert isinstance(config.model, TransformerConfig)
    assert (config.name, config.model.source, config.model.target) == ("mine", "eng", "pt-BR")
    with pytest.raises(ModelImportError, match="`--target` must name one language, not pt, fr"):
        import_directory(package, Options(targets=("pt", "fr")))


def test_a_package_may_name_the_token_with_which_targets_begin(copied: Path) -> None:
    _describe(copied, METADATA | {"target_prefix": ","})
    imported = import_directory(copied, Options())
    assert isinstance(imported.config.model, TransformerConfig)
    assert imported.vocabulary is not None
    expected = Language(code="pb", target_prefix=(imported.vocabulary.target[","],))
    assert imported.config.model.target == (expected,)
    _describe(copied, METADATA | {"target_prefix": "__pt__"})
    with pytest.raises(ModelImportError, match=r"^the vocabulary has no __pt__$"):
        import_directory(copied, Options())


@pytest.mark.parametrize("name", ["sentencepiece.model", "model/model.bin", "model/config.json"])
def test_a_missing_file_is_named(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(ModelImportError, match=f"^{Path(name).name} is missing$"):
        import_directory(copied, Options())


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        (METADATA | {"type": "sbd"}, "`type` in metadata.json is sbd; it must be translate"),
        ({"type": "sbd"}, "`type` in metadata.json is sbd"),
        (METADATA | {"from_code": 3}, "metadata.json is damaged: from_code: Input should be a valid string"),
        ({"package_version": "1.0"}, "`--source` must name one language, not none"),
        ([], "metadata.json is damaged: Input should be an object"),
    ],
)
def test_metadata_that_are_of_something_else_are_told(copied: Path, metadata: Any, sentence: str) -> None:
    _describe(copied, metadata)
    with pytest.raises(ModelImportError, match=f"^{sentence}"):
        import_directory(copied, Options())


def test_words_that_moses_cuts_are_not_read(copied: Path) -> None:
    (copied / "sentencepiece.model").rename(copied / "bpe.model")
    with pytest.raises(ModelImportError, match=r"^the package has Moses BPE \(bpe.model\)"):
        import_directory(copied, Options())


def test_damaged_pieces_are_told(copied: Path) -> None:
    (copied / "sentencepiece.model").write_bytes(b"none")
    with pytest.raises(ModelImportError, match=r"^sentencepiece.model is no SentencePiece model"):
        import_directory(copied, Options())


def _describe(package: Path, metadata: Any) -> None:
    (package / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
