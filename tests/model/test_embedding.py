"""Vectors of texts equal those of the model, text by text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from typer.testing import CliRunner

from model import __main__
from model.checkpoint import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from model.embedding import cross_attention_outputs, encoder_states
from model.importing.families import import_model
from model.importing.imported import Options
from model.networks.matrices import translation_matrices
from model.networks.transformer import Transformer, TransformerClassifier
from model.pooling import normalized
from model.tokenizer import BOS_ID, EOS_ID
from tests.model.importing.encoder_checkpoints import (
    MODES,
    N_POSITIONS,
    original_ids,
    original_states,
    pooled,
    write_encoder,
    write_modules,
)
from tests.model.tiny_configs import configured

TEXTS = ["A dog runs on the beach.", "I", "Two men are playing chess in the park, and it rains."]
E = 24


def checkpoint(model: Transformer | TransformerClassifier, tokenizer: Tokenizer, max_tokens: int) -> Checkpoint:
    return Checkpoint(configured(model.config.model_dump(), max_tokens=max_tokens), model, tokenizer, {})


@pytest.fixture
def translator(transformer: Transformer, tokenizer: Tokenizer) -> Checkpoint:
    model = Transformer(transformer.config.model_copy(update={"vocab_size": 320, "max_positions": 128})).eval()
    return checkpoint(model, tokenizer, max_tokens=60)


@pytest.fixture
def labeller(classifier: TransformerClassifier, tokenizer: Tokenizer) -> Checkpoint:
    model = TransformerClassifier(classifier.config.model_copy(update={"vocab_size": 320})).eval()
    return checkpoint(model, tokenizer, max_tokens=7)


@pytest.fixture
def saved(translator: Checkpoint, tmp_path: Path) -> Path:
    directory = tmp_path / "checkpoint"
    save_checkpoint(directory, translator.config, translator.model.state_dict(), translator.tokenizer)
    return directory


@torch.inference_mode()
def test_states_are_the_encoders_of_each_text_alone(translator: Checkpoint) -> None:
    model = translator.model
    assert isinstance(model, Transformer)
    for text, found in zip(TEXTS, encoder_states(translator, TEXTS), strict=True):
        ids = torch.tensor([translator.tokenizer.encode(text).ids])
        expected = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))[0]
        torch.testing.assert_close(found.vectors, expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found.mean(), expected.mean(dim=0), atol=1e-5, rtol=1e-4)
        assert found.tokens == translator.tokenizer.encode(text).tokens


@torch.inference_mode()
def test_a_long_text_is_read_in_windows_and_none_of_its_tokens_is_lost(labeller: Checkpoint) -> None:
    model = labeller.model
    assert isinstance(model, TransformerClassifier)
    (found,) = encoder_states(labeller, [TEXTS[2]])
    ids = labeller.tokenizer.encode(TEXTS[2], add_special_tokens=False).ids
    windows = [torch.tensor([[*ids[start : start + 6], EOS_ID]]) for start in range(0, len(ids), 6)]
    assert len(windows) > 2
    expected = torch.cat([model.encode(window, torch.tensor([window.shape[1]]))[0] for window in windows])
    torch.testing.assert_close(found.vectors, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layer", [0, 1, -1])
@torch.inference_mode()
def test_cross_attention_gives_each_written_token_its_row_of_the_matrix_times_the_values(
    translator: Checkpoint, layer: int
) -> None:
    model = translator.model
    assert isinstance(model, Transformer)
    for text, found in zip(TEXTS, cross_attention_outputs(translator, TEXTS, layer), strict=True):
        ids = [token_id for token_id in map(translator.tokenizer.token_to_id, found.tokens) if token_id is not None]
        assert found.text == translator.tokenizer.decode(ids)
        source = torch.tensor([translator.tokenizer.encode(text).ids])
        read = torch.tensor([[BOS_ID, *ids[:-1]]])
        lengths = torch.tensor([source.shape[1]])
        matrix = translation_matrices(model, source, lengths, read).cross[:, layer]  # (1, H, T, S)
        attention = list(model.decoder.decoder_layers())[layer].cross_attention
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        _, values = attention.project_memory(memory, memory)
        expected = attention.output(attention.merge_heads(matrix @ values))[0]
        assert expected.shape == (len(ids), E)
        torch.testing.assert_close(found.vectors, expected, atol=1e-5, rtol=1e-4)
        assert EOS_ID not in ids[:-1]


def test_what_the_model_has_not_is_named(translator: Checkpoint, labeller: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="`layer` is 2, but tiny has 2 decoder layers"):
        cross_attention_outputs(translator, TEXTS, layer=2)
    with pytest.raises(CheckpointError, match="tiny does not translate"):
        cross_attention_outputs(labeller, TEXTS)


def test_the_command_writes_a_line_for_each_text(saved: Path) -> None:
    loaded = load_checkpoint(saved)

    def lines(*options: str) -> list[Any]:
        result = CliRunner().invoke(__main__.app, ["embed", str(saved), *TEXTS, *options])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    states = encoder_states(loaded, TEXTS)
    for line, text, state in zip(lines(), TEXTS, states, strict=True):
        assert line["text"] == text
        mean = state.mean()
        assert line["embedding"] == pytest.approx((mean / mean.norm()).tolist(), abs=1e-5)
    for line, state in zip(lines("--pooling", "none", "--no-normalize"), states, strict=True):
        assert line["tokens"] == state.tokens
        np.testing.assert_allclose(line["embeddings"], state.vectors.numpy(), atol=1e-5)
    given = cross_attention_outputs(loaded, TEXTS, layer=0)
    for line, one in zip(lines("--of", "cross-attention", "--layer", "0", "--no-normalize"), given, strict=True):
        assert line["translation"] == one.text
        assert line["embedding"] == pytest.approx(one.mean().tolist(), abs=1e-5)


PROMPTS = {"query": "find: ", "document": ""}
LONG = "The ending was the best of it, and the rest was dull, " * 9


@pytest.mark.parametrize("includes_prompt", [True, False])
@pytest.mark.parametrize(("options", "prompt"), [([], "find: "), (["--prompt", "document"], "")])
@torch.inference_mode()
def test_an_encoder_of_texts_embeds_them_in_its_own_way(
    tmp_path: Path, options: list[str], prompt: str, includes_prompt: bool
) -> None:
    theirs = tmp_path / "theirs"
    model = write_encoder(theirs, "bert", "Model")
    (layer,) = write_modules(
        theirs, {"pooling_mode": MODES, "include_prompt": includes_prompt}, [(20, "Tanh", True)], normalize=False
    )
    said = {"prompts": PROMPTS, "default_prompt_name": "query"}
    (theirs / "config_sentence_transformers.json").write_text(json.dumps(said))
    import_model(str(theirs), tmp_path / "ours", Options())
    n_prompt = len(original_ids(theirs, prompt)) - 2
    n_left_out = 1 + n_prompt if prompt and not includes_prompt else 0

    def expected(text: str) -> torch.Tensor:
        ids = original_ids(theirs, prompt + text)
        before, rest = ids[: 1 + n_prompt], ids[1 + n_prompt : -1]
        size = N_POSITIONS - len(before) - 1
        windows = [[*before, *rest[i : i + size], ids[-1]] for i in range(0, len(rest), size)]
        vectors = [layer(pooled(original_states(model, window), n_left_out)).tanh() for window in windows]
        weights = torch.tensor([len(window) - n_left_out for window in windows])[:, None]
        return (torch.stack(vectors) * weights).sum(dim=0) / weights.sum()

    for text in ("A masterpiece", "x", LONG):
        for more, vector in (([], expected(text)), (["--normalize"], normalized(expected(text)))):
            result = CliRunner().invoke(__main__.app, ["embed", str(tmp_path / "ours"), text, *options, *more])
            assert result.exit_code == 0, result.output
            assert json.loads(result.stdout)["embedding"] == pytest.approx(vector.tolist(), abs=1e-4)


def test_a_prompt_that_the_model_does_not_have_is_named(saved: Path, tmp_path: Path) -> None:
    write_encoder(tmp_path / "theirs", "bert", "Model")
    import_model(str(tmp_path / "theirs"), tmp_path / "ours", Options(prompts=PROMPTS))
    for directory, message in (
        (tmp_path / "ours", "unknown `prompt` 'passage'; the model has query, document"),
        (saved, "tiny is no encoder of texts"),
    ):
        result = CliRunner().invoke(__main__.app, ["embed", str(directory), "x", "--prompt", "passage"])
        assert isinstance(result.exception, CheckpointError)
        assert message in str(result.exception)
