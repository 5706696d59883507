"""Prompts over HTTP, and a model that writes no language: texts are read whole, and nothing in them is kept."""

from pathlib import Path
from typing import Any

import pytest

from service.base.errors import InvalidFields, UnknownModel, UnsupportedLanguagePair, UnsupportedOption
from service.text.tokenization import Tokenizer
from tests.service.conftest import Serve, post, problem
from tests.service.tiny_artifacts import MAX_TARGET_TOKENS, TinyTranslator, language

pytestmark = pytest.mark.anyio

PROMPTS = {"summarization": "the old man: ", "none": ""}
TEXT = "the man sees {x}. a red horse, 1,250 of them.\nthe  dog. *see* https://example.org/a"


@pytest.fixture(scope="module")
def translator() -> TinyTranslator:
    return TinyTranslator(seed=11)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory, translator: TinyTranslator) -> Path:
    root = tmp_path_factory.mktemp("prompts")
    translator.save(root / "french", "french", prompts=PROMPTS)
    no_language = {"sources": [language("mul")], "targets": [language("und")]}
    translator.save(root / "any", "any", **no_language, prompts={"shorten": "a dog: "})
    return root


@pytest.mark.parametrize(
    ("asked", "model", "prompt"),
    [
        ({"prompt": "summarization"}, "french", PROMPTS["summarization"]),
        ({"prompt": "none"}, "french", ""),
        ({"prompt": "none", "model": "french"}, "french", ""),
        ({"prompt": "shorten"}, "any", "a dog: "),
        ({"model": "any"}, "any", ""),
        ({"model": "any", "target": "und", "source": "fr"}, "any", ""),
    ],
)
async def test_the_model_reads_the_prompt_and_the_whole_text(
    serve: Serve, translator: TinyTranslator, artifacts: Path, asked: dict[str, Any], model: str, prompt: str
) -> None:
    tokenizer = Tokenizer(artifacts / model / "tokenizer.json", reads_white_space=model == "any")
    source_ids = [*tokenizer.prefix(prompt), *tokenizer.encode([TEXT])[0]] if prompt else tokenizer.encode([TEXT])[0]
    target, _ = translator.translate(source_ids, MAX_TARGET_TOKENS)
    async with serve() as client:
        answer = await post(client, "/translate", text=f" {TEXT}\n", beam_size=1, **asked)
    (translation,) = answer["translations"]
    assert answer["model"] == model
    assert answer["target"] == "und"
    assert translation["source_tokens"] == len(source_ids)
    assert translation["text"].strip() == tokenizer.decode([target])[0].strip()


async def test_a_model_that_writes_no_language_answers_only_when_it_is_asked_for(serve: Serve) -> None:
    async with serve() as client:
        assert (await post(client, "/translate", text="the old man."))["model"] == "french"
        languages = (await client.get("/languages")).json()["languages"]
        models = {model["name"]: model for model in (await client.get("/models")).json()["models"]}
    assert [one["language"] for one in languages] == ["en", "fr"]
    assert models["french"]["prompts"] == PROMPTS
    assert (models["any"]["sources"], models["any"]["targets"]) == (["mul"], ["und"])


@pytest.mark.parametrize(
    ("asked", "error", "detail"),
    [
        (
            {"prompt": "x"},
            InvalidFields,
            "`prompt` must be a prompt of a model, not 'x'; available: none, shorten, summ",
        ),
        ({"prompt": "x", "model": "any"}, InvalidFields, "must be a prompt of any, not 'x'; available: shorten"),
        ({"prompt": "none", "target": "fr"}, InvalidFields, "`target` must be left out, as `prompt` says what to do"),
        ({"prompt": "none", "source": "en"}, InvalidFields, "`source` must be left out"),
        ({"prompt": "none", "model": "nobody"}, UnknownModel, "nobody"),
        ({"prompt": "none", "keep": ["a"]}, UnsupportedOption, "`keep` can only be used for translations"),
        ({"prompt": "none", "checks": True}, UnsupportedOption, "`checks` can only be used for translations"),
        ({"prompt": "none", "format": "html"}, UnsupportedOption, "`format` can only be used for translations"),
        ({"model": "any", "glossary": {"a": "b"}}, UnsupportedOption, "`glossary` can only be used for translations"),
        ({"model": "any", "target": "fr"}, UnsupportedLanguagePair, "available: mul-und"),
    ],
)
async def test_options_that_a_prompt_cannot_have_are_refused(
    serve: Serve, asked: dict[str, Any], error: type[Exception], detail: str
) -> None:
    async with serve() as client:
        response = await client.post("/translate", json={"text": "the old man."} | asked)
        found = problem(response, error)
    assert detail in found["detail"]
