"""Texts and tokens that models read in calibration."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import export.__main__
from export.calibration import (
    MAX_TARGET_TOKENS,
    ROWS_PER_LAYER,
    CalibrationSources,
    calibration_inputs,
    calibration_sources,
    directions,
    record_activations,
)
from export.texts import TEXTS, texts_in
from manifest.schema import Language
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import TransformerConfig
from model.decoding.search import greedy_search_uncached
from model.networks.transformer import Transformer
from tests.export.tiny_checkpoints import TRANSLATION, MakeCheckpoint


@pytest.fixture
def loaded(checkpoint: MakeCheckpoint) -> Checkpoint:
    return load_checkpoint(checkpoint("translation"))


def test_a_translator_reads_our_texts_in_its_language_and_its_own_translations(loaded: Checkpoint) -> None:
    model = loaded.model
    assert isinstance(model, Transformer)
    (read,) = calibration_sources(loaded)
    few = CalibrationSources([ids for ids in read.ids if len(ids) < 30][:3])
    assert few.ids == [ids for ids in loaded.encode(TEXTS["en"]) if len(ids) < 30][:3]
    seen: list[Tensor] = []
    layer = model.decoder.get_submodule("layers.1.feed_forward.hidden")
    expected = []
    for ids in few.ids:
        source, lengths = torch.tensor([ids]), torch.tensor([len(ids)])
        (target,) = greedy_search_uncached(model, source, lengths, MAX_TARGET_TOKENS)
        handle = layer.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0][0]))
        hidden = model(
            source, lengths, torch.tensor([[model.config.special_tokens.bos, *target.ids[: MAX_TARGET_TOKENS - 1]]])
        )
        handle.remove()
        expected.append(hidden[0])
    found = record_activations(model, calibration_inputs(model, [few]))
    torch.testing.assert_close(found["decoder.layers.1.feed_forward.hidden"], torch.cat(seen))
    torch.testing.assert_close(found["embedding.tokens"], torch.cat(expected))
    assert len(found["decoder.memory"]) == sum(map(len, few.ids))


def test_of_a_users_texts_some_are_read_instead(loaded: Checkpoint) -> None:
    (read,) = calibration_sources(loaded, ["A dog runs.", "No."])
    assert read.ids == loaded.encode(["A dog runs.", "No."])
    (read,) = calibration_sources(loaded, [f"{i}." for i in range(1000)])
    assert read.ids[0] == loaded.encode(["0."])[0]
    assert 50 < len(read.ids) < 70
    (read,) = calibration_sources(loaded, ["no " * 500])
    assert all(len(ids) <= 60 for ids in read.ids), "longer than the model reads"


def test_many_texts_leave_no_more_rows_than_fit_in_memory(loaded: Checkpoint) -> None:
    assert isinstance(loaded.model, Transformer)
    many = calibration_inputs(loaded.model, [CalibrationSources([[9] * 59 + [3]] * 40)])
    found = record_activations(loaded.model, many)
    assert ROWS_PER_LAYER / 2 < len(found["encoder.layers.0.feed_forward.hidden"]) < 1.5 * ROWS_PER_LAYER


def test_a_model_of_languages_that_have_no_texts_here_reads_random_tokens(loaded: Checkpoint) -> None:
    model = loaded.model
    assert isinstance(model, Transformer)
    found = record_activations(model, calibration_inputs(model, []))
    assert len(found["embedding.tokens"]) > 500
    again = record_activations(model, calibration_inputs(model, []))
    assert all(torch.equal(*pair) for pair in zip(found.values(), again.values(), strict=True))


def test_a_model_of_many_languages_reads_each_that_has_texts_into_another() -> None:
    codes = ["eng_Latn", "tsn_Latn", "rus_Cyrl", "fra_Latn"]
    languages = [Language(code=code, source_prefix=(i,)) for i, code in enumerate(codes)]
    config = TransformerConfig.model_validate(TRANSLATION | {"source": languages, "target": languages})
    found = [(source.code, target.code) for source, target in directions(config)]
    assert found == [("eng_Latn", "rus_Cyrl"), ("rus_Cyrl", "fra_Latn"), ("fra_Latn", "eng_Latn")]
    into_unknown = TransformerConfig.model_validate(TRANSLATION | {"target": "tsn"})
    assert [(source.code, target.code) for source, target in directions(into_unknown)] == [("en", "tsn")]
    assert directions(TransformerConfig.model_validate(TRANSLATION | {"source": "ROMANCE"})) == []


@pytest.mark.parametrize("code", ["fr", "fra", "fra_Latn", "fr_XX"])
def test_texts_are_found_by_a_models_own_code(code: str) -> None:
    assert texts_in(code) == TEXTS["fr"]


def test_the_command_reads_the_lines_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lines").write_text("One.\n\nTwo.\n")
    (tmp_path / "out").mkdir()
    given: list[object] = []
    monkeypatch.setattr(export.__main__, "export", lambda *arguments: given.extend(arguments) or [])
    for name in ("read_manifest", "next_steps"):
        monkeypatch.setattr(export.__main__, name, lambda *_given: "")
    arguments = [str(tmp_path), str(tmp_path / "out"), "--calibrate"]
    result = CliRunner().invoke(export.__main__.app, [*arguments, str(tmp_path / "lines")])
    assert result.exit_code == 0, result.output
    assert given[3:] == [["One.", "Two."], False, None, False]
    assert CliRunner().invoke(export.__main__.app, [*arguments, str(tmp_path / "nothing")]).exit_code == 2
