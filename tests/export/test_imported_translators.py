"""Translators of transformers, imported, exported in float32 and served, translate as `generate` does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import M2M100ForConditionalGeneration, MarianMTModel

from export import artifact
from export.artifact import write
from model.checkpoint import load_checkpoint
from model.importing.families import import_model
from model.importing.imported import Options
from tests.model.importing import bart_checkpoints, m2m100_checkpoints, marian_checkpoints, t5_checkpoints
from tests.model.importing.bart_checkpoints import load_bart, write_bart
from tests.model.importing.m2m100_checkpoints import write_m2m100
from tests.model.importing.marian_checkpoints import ENGLISH, write_marian
from tests.model.importing.t5_checkpoints import load_t5, write_t5
from tests.running_service import Service, running_service

pytestmark = [pytest.mark.slow, pytest.mark.process]

MODELS = {
    "marian": {"source": "en", "target": "fr"},
    "marian-many": {"source": "en", "target": "it"},
    "nllb": {"source": "en", "target": "fr"},
    "t5": {"source": "en", "target": "fr"},
    "mbart": {"source": "en", "target": "fr"},
}
SOURCES = {"marian": "marian", "marian-many": "marian", "nllb": "nllb", "t5": "t5", "mbart": "mbart"}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with directories that transformers wrote."""
    root = tmp_path_factory.mktemp("theirs")
    write_marian(root / "marian", targets=("fra", "ita"), steps=60)
    write_m2m100(root / "nllb", "nllb", steps=60)
    write_t5(root / "t5", "t5", steps=60)
    write_bart(root / "mbart", "mbart", steps=90)
    return root


@pytest.fixture(scope="module")
def server(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Serve all models together; one of them also with only its first target language."""
    root = tmp_path_factory.mktemp("ours")
    with pytest.MonkeyPatch.context() as patched:
        whole = artifact.served_models
        patched.setattr(artifact, "served_models", lambda *given: {"cpu": whole(*given)["cpu"]})
        for name, source in SOURCES.items():
            checkpoint, exported = root / "checkpoints" / name, root / "artifacts" / name
            import_model(str(theirs / source), checkpoint, Options(name, targets=("fra",) * (name == "marian")))
            exported.mkdir(parents=True)
            write(checkpoint, load_checkpoint(checkpoint), "fp32", exported)
    settings = {"ATTEND_ARTIFACTS": str(root / "artifacts"), "ATTEND_WORKERS": "1"}
    with running_service(root / "log", settings) as client:
        yield client


def generated(theirs: Path, name: str, text: str, **options: Any) -> tuple[str, float]:
    """Return the translation of transformers and its score."""
    directory = theirs / SOURCES[name]
    if name == "nllb":
        model: Any = M2M100ForConditionalGeneration.from_pretrained(directory).eval()
        tokenizer: Any = m2m100_checkpoints.tokenizer_of(directory, "nllb")
        options["forced_bos_token_id"] = tokenizer.convert_tokens_to_ids("fra_Latn")
    elif name == "t5":
        model, tokenizer = load_t5(directory, "t5"), t5_checkpoints.tokenizer_of(directory)
        text, options = t5_checkpoints.PREFIX + text, {"max_new_tokens": 60, **options}
    elif name == "mbart":
        model, tokenizer = load_bart(directory, "mbart"), bart_checkpoints.tokenizer_of(directory, "mbart")
        options["forced_bos_token_id"] = tokenizer.convert_tokens_to_ids("fr_XX")
    else:
        model = MarianMTModel.from_pretrained(directory).eval()
        tokenizer = marian_checkpoints.tokenizer_of(directory)
        text = f">>{'ita' if name == 'marian-many' else 'fra'}<< {text}"
    batch = tokenizer(text, return_tensors="pt")
    found = model.generate(**batch, **options, output_scores=True, return_dict_in_generate=True)
    scores = found.sequences_scores[0] if options.get("num_beams", 1) > 1 else torch.nan
    return tokenizer.decode(found.sequences[0], skip_special_tokens=True), float(scores)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("name", list(MODELS))
def test_what_generate_finds_is_what_comes_back(server: Service, theirs: Path, name: str, beam_size: int) -> None:
    asked = {"model": name, "beam_size": beam_size, "split_sentences": False, **MODELS[name]}
    together = server.post("/translate", json={"text": ENGLISH, **asked}).raise_for_status().json()["translations"]
    for text, translation in list(zip(ENGLISH, together, strict=True))[:: 1 if beam_size == 1 else 3]:
        expected, score = generated(theirs, name, text, num_beams=beam_size)
        assert translation["text"] == expected
        if beam_size > 1:
            assert translation["score"] == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("name", list(MODELS))
def test_tokens_tell_what_they_cover_and_attention_has_one_row_for_each(server: Service, name: str) -> None:
    text = f"  {ENGLISH[0]} {ENGLISH[1]}"
    body = {"text": text, "model": name, "alignment": True, "attention": {"heads": "mean", "layers": "last"}}
    (translation,) = server.post("/translate", json=body | MODELS[name]).raise_for_status().json()["translations"]
    attention, shown = translation["attention"], {"source": text, "target": translation["text"]}
    for side, whole in shown.items():
        for token in attention[side]:
            covered = whole[slice(*token["span"])]
            assert covered.strip() in ("", token["token"].removeprefix("▁"))
        for word in translation["alignment"]["words"][side]:
            assert whole[slice(*word["span"])] == word["token"]
    rows = sum(matrix["shape"][0] for matrix in attention["matrices"] if matrix["kind"] == "cross")
    assert rows == len(attention["target"])
    assert len(translation["segments"]) == 2


def test_what_must_come_out_unchanged_does(server: Service) -> None:
    for name, languages in MODELS.items():
        body = {"text": "The train to {place} was late, see https://example.org/a.", "model": name, **languages}
        (translation,) = server.post("/translate", json=body).raise_for_status().json()["translations"]
        assert translation["text"].count("{place}") == translation["text"].count("https://example.org/a") == 1


def test_of_models_without_scores_the_larger_comes_first(server: Service) -> None:
    sizes = {card["name"]: card["parameters"] for card in server.get("/models").raise_for_status().json()["models"]}

    def answering(target: str) -> str:
        body = {"text": "A dog.", "source": "en", "target": target}
        return str(server.post("/translate", json=body).raise_for_status().json()["model"])

    answers = [answering(target) for target in ("fr", "it", "de")]
    assert [sizes[name] for name in answers] == sorted((sizes[name] for name in answers), reverse=True)
    assert sizes[answers[0]] > sizes["marian"]
