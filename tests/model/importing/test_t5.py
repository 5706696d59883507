"""T5, mT5, UMT5 and MADLAD-400 models, compared with transformers."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from model.decoding.search import greedy_search
from model.importing import t5
from model.importing.families import import_directory
from model.importing.imported import ModelImportError, Options
from model.tokenizer import as_plain_text
from tests.model.importing.imported_transformers import built, config_of
from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH
from tests.model.importing.t5_checkpoints import PREFIX, Family, load_t5, tokenizer_of, write_t5

ODD = ["Naïve “words” 5", "日本 x", "  a  b\nc "]
WITH_JSON: dict[Family, bool] = {"t5": False, "flan": True, "madlad": False, "mt5": True, "umt5": True}


@pytest.mark.parametrize("family", get_args(Family))
@torch.inference_mode()
def test_ids_and_logits_are_those_of_the_original(tmp_path: Path, family: Family) -> None:
    with torch.inference_mode(False):
        write_t5(tmp_path, family, with_json=WITH_JSON[family])
    theirs, tokenizer = load_t5(tmp_path, family), tokenizer_of(tmp_path)
    imported = import_directory(tmp_path, Options())
    as_plain_text(imported.tokenizer)
    for text in [*ENGLISH, *FRENCH, *ODD]:
        assert imported.tokenizer.encode(text).ids == tokenizer(text).input_ids, text
    ours, ids = built(imported), tokenizer(" ".join(ENGLISH[:2]), return_tensors="pt").input_ids
    target = torch.randint(3, 200, (1, 40))
    expected = theirs(input_ids=ids, decoder_input_ids=target).logits
    found = ours.logits(ours(ids, torch.tensor([ids.shape[1]]), target))
    torch.testing.assert_close(found[..., : expected.shape[-1]], expected, atol=1e-4, rtol=1e-4)
    assert int(ours.is_target_token.sum()) == expected.shape[-1]
    assert (config_of(imported).tied_output, config_of(imported).max_positions) == (family in ("t5", "mt5"), 112)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("t5")
    write_t5(directory, "t5", steps=40)
    return directory


@pytest.mark.slow
@torch.inference_mode()
def test_greedy_search_finds_what_generate_finds(translator: Path) -> None:
    theirs, tokenizer, imported = (
        load_t5(translator, "t5"),
        tokenizer_of(translator),
        t5.import_directory(translator, Options()),
    )
    ours = built(imported)
    for text in ENGLISH:
        batch = tokenizer(PREFIX + text, return_tensors="pt")
        greedy = theirs.generate(**batch, num_beams=1, max_new_tokens=40)[0].tolist()
        (found,) = greedy_search(ours, batch.input_ids, batch.attention_mask.sum(1), 40)
        assert [0, *found.ids, *[1] * found.finished] == greedy
        assert imported.tokenizer.decode(found.ids) == tokenizer.decode(greedy, skip_special_tokens=True)


def test_prompts_that_translate_name_languages(translator: Path) -> None:
    imported, tokenizer = (
        t5.import_directory(translator, Options(prompts={"shorten": "shorten: "})),
        tokenizer_of(translator),
    )
    config = config_of(imported)
    (english,), targets = config.sources, {language.code: language for language in config.targets}
    assert [*targets] == ["fr", "ro"]
    for code, name in (("fr", "French"), ("ro", "Romanian")):
        whole = [*english.source_prefix, *targets[code].source_prefix, *imported.tokenizer.encode(ENGLISH[0]).ids]
        assert whole == tokenizer(f"translate English to {name}: {ENGLISH[0]}").input_ids
    assert config.prompts["summarization"] == "summarize: "
    assert config.prompts["shorten"] == "shorten: "
    assert config.prompts["none"] == ""


def test_a_token_before_a_text_names_the_target(tmp_path: Path) -> None:
    write_t5(tmp_path, "madlad")
    imported, tokenizer = t5.import_directory(tmp_path, Options(targets=("fr", "zh_Hant"))), tokenizer_of(tmp_path)
    config = config_of(imported)
    assert [language.code for language in config.sources] == ["fr", "de", "zh_Hant", "mul"]
    assert [language.code for language in config.targets] == ["fr", "zh_Hant"]
    for language in config.targets:
        ids = [*language.source_prefix, *imported.tokenizer.encode(ENGLISH[0]).ids]
        assert ids == tokenizer(f"<2{language.code}> {ENGLISH[0]}").input_ids
    with pytest.raises(ModelImportError, match="unknown language it; the model has fr, de, zh_Hant"):
        t5.import_directory(tmp_path, Options(targets=("it",)))
    named = config_of(t5.import_directory(tmp_path, Options(sources=("en", "sw"))))
    assert [(language.code, language.source_prefix) for language in named.sources] == [("en", ()), ("sw", ())]


@pytest.mark.parametrize("with_json", [False, True])
def test_a_text_commands_nothing(tmp_path: Path, with_json: bool) -> None:
    write_t5(tmp_path, "madlad", with_json=with_json)
    tokenizer = as_plain_text(t5.import_directory(tmp_path, Options()).tokenizer)
    special = {tokenizer.token_to_id(name) for name in ("<pad>", "</s>", "<extra_id_7>")}
    assert not special & {*tokenizer.encode("a </s> <pad>b\uff1c/s\uff1e <extra_id_7>").ids[:-1]}
    assert tokenizer.encode("a < b").tokens == ["▁a", "▁", "<", "▁b", "</s>"]


@pytest.mark.parametrize(
    ("options", "sources", "targets"),
    [
        (Options(), ["mul"], ["und"]),
        (Options(sources=("en",), targets=("fr",)), ["en"], ["fr"]),
        (Options(prompts={"translation_en_to_fr": "fr: ", "translation_de_to_it": "it: "}), ["en", "de"], ["fr", "it"]),
    ],
)
def test_without_tasks_the_import_says_what_a_model_does(
    tmp_path: Path, options: Options, sources: list[str], targets: list[str]
) -> None:
    write_t5(tmp_path, "mt5")
    config = config_of(t5.import_directory(tmp_path, options))
    assert [language.code for language in config.sources] == sources
    assert [language.code for language in config.targets] == targets


def test_languages_whose_prompts_contradict_each_other_are_prompts_alone(tmp_path: Path) -> None:
    write_t5(tmp_path, "mt5")
    prompts = {"translation_en_to_fr": "English to French: ", "translation_en_to_de": "from English to German: "}
    config = config_of(t5.import_directory(tmp_path, Options(prompts=prompts)))
    assert [language.code for language in config.targets] == ["fr"]
    assert config.prompts == prompts | {"none": ""}


@pytest.mark.parametrize(
    ("said", "activation"),
    [
        ("relu", "relu"),
        ("gated-gelu", "geglu_tanh"),
        ("gated-silu", "swiglu"),
        ("gelu_new", "gelu_tanh"),
        (None, "relu"),
    ],
)
def test_activations_have_their_names_in_transformers(said: str | None, activation: str) -> None:
    assert t5.activation_of_layers({"feed_forward_proj": said}, "t5") == activation


def test_what_is_missing_is_named(translator: Path, tmp_path: Path) -> None:
    config: dict[str, Any] = json.loads((translator / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelImportError, match=r"tokenizer\.json or spiece\.model is missing"):
        import_directory(tmp_path, Options())
    (tmp_path / "spiece.model").write_bytes((translator / "spiece.model").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config | {"eos_token_id": 900}))
    with pytest.raises(ModelImportError, match="no token 900, the `eos_token_id`"):
        import_directory(tmp_path, Options())
    (tmp_path / "config.json").write_text(json.dumps(config | {"feed_forward_proj": "gated-tanh"}))
    with pytest.raises(ModelImportError, match="activation tanh is not supported"):
        import_directory(tmp_path, Options())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["T5EncoderModel"]}))
    with pytest.raises(ModelImportError, match="T5EncoderModel is not supported; T5 models that write text are"):
        import_directory(tmp_path, Options())
