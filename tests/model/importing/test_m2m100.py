"""M2M100 and NLLB-200 models, compared with transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration

from model.checkpoint import Checkpoint, build_model, load_checkpoint
from model.config import TransformerConfig
from model.decoding.search import beam_search, greedy_search
from model.importing import m2m100
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.networks.transformer import Transformer
from model.tokenizer import ids_of
from model.weights import assign_weights
from tests.model.importing.m2m100_checkpoints import Family, tokenizer_of, write_m2m100
from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH

pytestmark = pytest.mark.slow

Made = tuple[Family, Path, Path]


@pytest.fixture(scope="module", params=["m2m100", "nllb"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a directory of transformers, and the checkpoint imported from it."""
    root = tmp_path_factory.mktemp(request.param)
    write_m2m100(root / "theirs", request.param, steps=60)
    import_model(str(root / "theirs"), root / "ours", Options(name="many"))
    return request.param, root / "theirs", root / "ours"


def loaded(made: Made) -> tuple[M2M100ForConditionalGeneration, Any, Checkpoint, Transformer]:
    family, theirs, ours = made
    checkpoint = load_checkpoint(ours)
    assert isinstance(checkpoint.model, Transformer)
    return (
        M2M100ForConditionalGeneration.from_pretrained(theirs).eval(),
        tokenizer_of(theirs, family),
        checkpoint,
        checkpoint.model,
    )


def languages(checkpoint: Checkpoint, tokenizer: Any) -> dict[str, Any]:
    config = checkpoint.config.model
    assert isinstance(config, TransformerConfig)
    (source,) = (one for one in config.sources if one.code == tokenizer.src_lang)
    (target,) = (one for one in config.targets if one.code == tokenizer.tgt_lang)
    return {"source": source, "target": target}


def test_texts_have_the_ids_of_the_original(made: Made) -> None:
    _, tokenizer, checkpoint, _ = loaded(made)
    for text in [*ENGLISH, *FRENCH, "Naïve “words” 5", "日本 x"]:
        assert checkpoint.encode([text], **languages(checkpoint, tokenizer)) == [tokenizer(text).input_ids], text


@torch.inference_mode()
def test_logits_are_those_of_the_original(made: Made) -> None:
    theirs, tokenizer, _, ours = loaded(made)
    ids = tokenizer(ENGLISH[0], return_tensors="pt").input_ids
    target = torch.tensor([[2, 140, 30, 77, 12, 5]])
    expected = theirs(input_ids=ids, decoder_input_ids=target).logits
    found = ours.logits(ours(ids, torch.tensor([ids.shape[1]]), target))
    torch.testing.assert_close(found[..., : expected.shape[-1]], expected, atol=1e-4, rtol=1e-4)
    assert int(ours.is_target_token.sum()) == expected.shape[-1]


@torch.inference_mode()
def test_greedy_and_beam_search_find_what_generate_finds(made: Made) -> None:
    theirs, tokenizer, checkpoint, ours = loaded(made)
    decoding, prefix = checkpoint.config.decoding, languages(checkpoint, tokenizer)["target"].target_prefix
    assert (decoding.beam_size, decoding.max_target_tokens) == (5 if made[0] == "m2m100" else 1, 89)
    for text in ENGLISH:
        batch = tokenizer(text, return_tensors="pt")
        greedy = theirs.generate(**batch, num_beams=1, forced_bos_token_id=prefix[0])[0].tolist()
        (found,) = greedy_search(ours, batch.input_ids, batch.attention_mask.sum(1), 89, prefix)
        assert [2, *found.ids, 2][: len(greedy)] == greedy
        wide = theirs.generate(**batch, num_beams=4, forced_bos_token_id=prefix[0])[0].tolist()
        best = beam_search(ours, batch.input_ids[0], 89, 4, decoding.length_penalty, prefix=prefix)[0]
        assert [2, *best.ids] == wide
        assert checkpoint.decode(best.ids) == tokenizer.decode(wide[2:], skip_special_tokens=True)


def test_a_language_that_the_model_does_not_have_is_refused(made: Made, tmp_path: Path) -> None:
    with pytest.raises(ModelImportError, match="unknown language xx; the model has "):
        import_model(str(made[1]), tmp_path / "c", Options(targets=("xx",)))


def test_texts_are_read_whole_by_a_tokenizer_that_was_saved_while_it_cut_off_and_filled_up(tmp_path: Path) -> None:
    write_m2m100(tmp_path, "nllb")
    original = tokenizer_of(tmp_path, "nllb")
    expected = original(ENGLISH).input_ids
    original(ENGLISH, padding="max_length", truncation=True, max_length=60)
    original.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_text())["padding"] is not None
    tokenizer = m2m100.import_directory(tmp_path, Options()).tokenizer
    assert [encoding.ids for encoding in tokenizer.encode_batch(ENGLISH)] == [ids[1:] for ids in expected]


@torch.inference_mode()
def test_tables_that_are_not_tied_are_read_each(tmp_path: Path) -> None:
    theirs = write_m2m100(tmp_path, "m2m100", tie_word_embeddings=False)
    for table in (theirs.model.encoder.embed_tokens, theirs.model.decoder.embed_tokens, theirs.lm_head):
        table.weight.normal_(std=0.1)
    theirs.save_pretrained(tmp_path)
    imported = m2m100.import_directory(tmp_path, Options())
    ours = build_model(imported.config)
    assign_weights(ours, imported.weights)
    assert isinstance(ours, Transformer)
    ids, target = torch.tensor([[5, 40, 30, 2]]), torch.tensor([[2, 140, 30]])
    expected = theirs(input_ids=ids, decoder_input_ids=target).logits
    found = ours.eval().logits(ours(ids, torch.tensor([4]), target))
    torch.testing.assert_close(found[..., : expected.shape[-1]], expected, atol=1e-4, rtol=1e-4)


def test_an_embedding_is_scaled_where_the_configuration_does_not_say(tmp_path: Path) -> None:
    write_m2m100(tmp_path, "m2m100")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "scale_embedding"}))
    config: Any = m2m100.import_directory(tmp_path, Options()).config.model
    assert (config.embedding_scale is None) == M2M100Config().scale_embedding


def test_added_tokens_are_read(tmp_path: Path) -> None:
    write_m2m100(tmp_path, "m2m100")
    original = tokenizer_of(tmp_path, "m2m100")
    original.add_tokens(["harbour"])
    original.save_pretrained(tmp_path)
    imported = m2m100.import_directory(tmp_path, Options())
    expected = original(ENGLISH[0]).input_ids
    assert original.convert_tokens_to_ids("harbour") in expected
    assert ids_of(imported.tokenizer.encode(ENGLISH[0]), imported.vocabulary) == expected[1:]


def test_an_older_template_is_refused(tmp_path: Path) -> None:
    write_m2m100(tmp_path / "theirs", "nllb")
    path = tmp_path / "theirs" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"legacy_behaviour": True}))
    with pytest.raises(ModelImportError, match="legacy_behaviour"):
        import_model(str(tmp_path / "theirs"), tmp_path / "c", Options())
