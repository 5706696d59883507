"""mBART-50 and BART models, compared with transformers."""

import json
from pathlib import Path
from typing import get_args

import pytest
import torch

from model.decoding.search import greedy_search
from model.importing import bart
from model.importing.families import import_directory
from model.importing.imported import ModelImportError, Options
from model.tokenizer import as_plain_text
from tests.model.importing.bart_checkpoints import FRENCH_TOKEN, Family, load_bart, tokenizer_of, write_bart
from tests.model.importing.imported_transformers import built, config_of
from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH

ODD = ["Naïve “words” 5", "日本 x", "a  b"]


@pytest.mark.parametrize("family", get_args(Family))
@pytest.mark.parametrize("with_json", [False, True])
def test_ids_and_logits_are_those_of_the_original(tmp_path: Path, family: Family, with_json: bool) -> None:
    write_bart(tmp_path, family, with_json=with_json, tie_word_embeddings=True)
    theirs, tokenizer = load_bart(tmp_path, family), tokenizer_of(tmp_path, family)
    imported = import_directory(tmp_path, Options(sources=("en_XX",) if family == "mbart" else ()))
    as_plain_text(imported.tokenizer)
    prefix = config_of(imported).sources[0].source_prefix
    for text in [*ENGLISH, *FRENCH, *ODD]:
        assert [*prefix, *imported.tokenizer.encode(text).ids] == tokenizer(text).input_ids, text
    ours, ids = built(imported), tokenizer(ENGLISH[0], return_tensors="pt").input_ids
    target = torch.randint(4, 200, (1, 20))
    with torch.inference_mode():
        expected = theirs(input_ids=ids, decoder_input_ids=target).logits
        found = ours.logits(ours(ids, torch.tensor([ids.shape[1]]), target))
    torch.testing.assert_close(found[..., : expected.shape[-1]], expected, atol=1e-4, rtol=1e-4)
    assert int(ours.is_target_token.sum()) == expected.shape[-1]
    assert ours.output_bias is None or family == "mbart"


@pytest.mark.slow
@pytest.mark.parametrize("family", get_args(Family))
@torch.inference_mode()
def test_greedy_search_finds_what_generate_finds(tmp_path: Path, family: Family) -> None:
    with torch.inference_mode(False):
        write_bart(tmp_path, family, steps=40)
    theirs, tokenizer = load_bart(tmp_path, family), tokenizer_of(tmp_path, family)
    imported = bart.import_directory(tmp_path, Options(targets=("fr_XX",) if family == "mbart" else ()))
    ours, decoding = built(imported), imported.config.decoding
    (target,) = config_of(imported).targets
    first = tokenizer.convert_tokens_to_ids(FRENCH_TOKEN) if family == "mbart" else 0
    assert target.target_prefix == (first,)
    assert (decoding.beam_size, decoding.stop, decoding.max_target_tokens) == (5, "full", 89)
    for text in ENGLISH[::4]:
        batch = tokenizer(text, return_tensors="pt")
        greedy = theirs.generate(**batch, num_beams=1, forced_bos_token_id=first)[0].tolist()
        (found,) = greedy_search(ours, batch.input_ids, batch.attention_mask.sum(1), 89, target.target_prefix)
        assert [2, *found.ids, 2][: len(greedy)] == greedy
        assert imported.tokenizer.decode(found.ids) == tokenizer.decode(greedy, skip_special_tokens=True)


def test_languages_are_those_of_tokens(tmp_path: Path) -> None:
    write_bart(tmp_path, "mbart")
    config = config_of(bart.import_directory(tmp_path, Options()))
    assert len(config.sources) == len(config.targets) == 52
    tokens = {language.code: language.source_prefix for language in config.sources}
    tokenizer = tokenizer_of(tmp_path, "mbart")
    assert tokens == {code: (i,) for code, i in tokenizer.lang_code_to_id.items()}
    settings = json.loads((tmp_path / "generation_config.json").read_text())
    english = {"forced_bos_token_id": tokenizer.lang_code_to_id["en_XX"]}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings | english))
    only = bart.import_directory(tmp_path, Options(sources=("de_DE", "fr_XX")))
    assert [language.code for language in config_of(only).targets] == ["en_XX"]
    assert [language.code for language in config_of(only).sources] == ["de_DE", "fr_XX"]
    with pytest.raises(ModelImportError, match="unknown language it_IT; the model has en_XX"):
        bart.import_directory(tmp_path, Options(targets=("it_IT",)))


def test_other_models_of_the_family_are_refused(tmp_path: Path) -> None:
    write_bart(tmp_path, "mbart")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MBartTokenizer"}')
    with pytest.raises(ModelImportError, match="only mBART-50"):
        bart.import_directory(tmp_path, Options())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BartForSequenceClassification"]}))
    with pytest.raises(ModelImportError, match="BartForSequenceClassification is not supported"):
        bart.import_directory(tmp_path, Options())
