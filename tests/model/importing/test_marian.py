"""MarianMT models, compared with transformers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from model.checkpoint import Checkpoint, load_checkpoint
from model.decoding.search import beam_search, greedy_search
from model.importing import marian
from model.importing.families import import_model
from model.importing.imported import ModelImportError, Options
from model.importing.sentencepiece_files import pieces_of, read_model
from model.networks.transformer import Transformer
from model.tokenizer import ids_of
from tests.model.importing.marian_checkpoints import ENGLISH, FRENCH, tokenizer_of, train_sentencepiece, write_marian

pytestmark = pytest.mark.slow

SWAPPED = r"pieces of source\.spm are unknown|source\.spm and target\.spm are swapped"
RUSSIAN = ["Гавань была тихой, когда вернулись первые лодки.", "Учитель не знал, что звонок звенит дважды."]

KINDS: dict[str, dict[str, Any]] = {
    "bilingual": {"steps": 60},
    "many": {"targets": ("fra", "ita"), "activation_function": "relu", "steps": 60},
    "separate": {"separate": True, "activation_function": "gelu", "scale_embedding": False},
    "untied": {"separate": True, "tied": False},
    "one vocabulary": {"tied": False},
}


@pytest.fixture(scope="module", params=list(KINDS))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a directory of transformers, and the checkpoint imported from it."""
    root = tmp_path_factory.mktemp(request.param)
    write_marian(root / "opus-mt-en-fr", **KINDS[request.param])
    import_model(str(root / "opus-mt-en-fr"), root / "checkpoint", Options())
    return root / "opus-mt-en-fr", root / "checkpoint"


def loaded(pair: tuple[Path, Path]) -> tuple[MarianMTModel, Any, Checkpoint, Transformer]:
    checkpoint = load_checkpoint(pair[1])
    assert isinstance(checkpoint.model, Transformer)
    return MarianMTModel.from_pretrained(pair[0]).eval(), tokenizer_of(pair[0]), checkpoint, checkpoint.model


def texts_of(checkpoint: Checkpoint) -> list[str]:
    config: Any = checkpoint.config.model
    token = f">>{config.targets[0].code}<< " if config.targets[0].source_prefix else ""
    return [f"{token}{text}" for text in ENGLISH]


def test_texts_have_the_ids_of_the_original(pair: tuple[Path, Path]) -> None:
    _, tokenizer, checkpoint, _ = loaded(pair)
    odd = ["The “quoted” ﬁnal  word…", "Naïve café №5", "日本語 and кот", "x", " two  spaces "]
    for plain in ENGLISH + FRENCH + odd:
        (ids,) = checkpoint.encode([plain])
        config: Any = checkpoint.config.model
        token = f">>{config.targets[0].code}<<" if config.targets[0].source_prefix else ""
        assert ids == tokenizer(f"{token}{plain}").input_ids, plain


@torch.inference_mode()
def test_logits_are_those_of_the_original(pair: tuple[Path, Path]) -> None:
    theirs, tokenizer, checkpoint, ours = loaded(pair)
    ids = tokenizer(texts_of(checkpoint)[0], return_tensors="pt").input_ids
    target = torch.tensor([[ours.config.special_tokens.bos, 9, 30, 77, 12, 5]])
    expected = theirs(input_ids=ids, decoder_input_ids=target).logits
    found = ours.logits(ours(ids, torch.tensor([ids.shape[1]]), target))
    known = ours.is_target_token.nonzero().flatten()
    torch.testing.assert_close(found[..., known], expected[..., known], atol=1e-4, rtol=1e-4)


def test_only_pieces_of_targets_are_written(pair: tuple[Path, Path]) -> None:
    _, _, checkpoint, ours = loaded(pair)
    assert checkpoint.vocabulary is not None
    expected = {"</s>", *pieces_of(read_model(pair[0] / "target.spm"))} & checkpoint.vocabulary.target.keys()
    assert set(checkpoint.pieces(ours.is_target_token.nonzero().flatten().tolist(), "target")) == expected
    assert "<unk>" in expected


def test_without_its_pieces_all_tokens_but_pad_are_written(tmp_path: Path) -> None:
    write_marian(tmp_path / "m")
    (tmp_path / "m" / "target.spm").unlink()
    imported = import_model(str(tmp_path / "m"), tmp_path / "c", Options())
    assert imported.vocabulary is not None
    assert imported.weights["is_target_token"].sum() == len(imported.vocabulary.target) - 1


def test_pieces_that_were_swapped_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    directory = tmp_path / "swapped"
    shutil.copytree(pair[0], directory)
    for name, other in (("source.spm", "target.spm"), ("target.spm", "source.spm")):
        shutil.copy(pair[0] / other, directory / name)
    with pytest.raises(ModelImportError, match=SWAPPED):
        marian.import_directory(directory, Options())


def test_pieces_of_another_model_are_refused(tmp_path: Path) -> None:
    write_marian(tmp_path)
    train_sentencepiece(tmp_path / "source.spm", RUSSIAN, vocab_size=60)
    with pytest.raises(ModelImportError, match=r"\d\d% of the \d+ pieces of source\.spm are unknown to the vocab"):
        marian.import_directory(tmp_path, Options())


@torch.inference_mode()
def test_greedy_and_beam_search_find_what_generate_finds(pair: tuple[Path, Path]) -> None:
    theirs, tokenizer, checkpoint, ours = loaded(pair)
    decoding, limit, ended = checkpoint.config.decoding, 63, 0
    assert (decoding.beam_size, decoding.max_target_tokens, decoding.stop) == (4, limit, "full_no_better")
    is_trained = "steps" in KINDS[pair[0].parent.name[:-1]]  # others write up to their limits
    for text in texts_of(checkpoint)[:: 1 if is_trained else 4]:
        batch = tokenizer(text, return_tensors="pt")
        greedy = theirs.generate(**batch, num_beams=1)[0].tolist()
        (found,) = greedy_search(ours, batch.input_ids, batch.attention_mask.sum(1), limit)
        n = limit - 1  # transformers ends a target at its limit
        assert found.ids[:n] == [i for i in greedy[1 : n + 1] if i != 0]
        # transformers' tokenizer leaves out a space at the end.
        assert checkpoint.decode(greedy[1:]).rstrip() == tokenizer.decode(greedy, skip_special_tokens=True)
        wide = theirs.generate(**batch)[0].tolist()
        best = beam_search(
            ours, batch.input_ids[0], limit, decoding.beam_size, decoding.length_penalty, stop=decoding.stop
        )[0]
        if best.finish_reason == "eos":
            assert [0, *best.ids] == [0, *wide[1 : len(best.ids) + 1]]
            ended += 1
    assert ended > 6 or not is_trained


def test_weights_keep_their_precision(pair: tuple[Path, Path]) -> None:
    theirs, _, _, ours = loaded(pair)
    expected = theirs.get_decoder().embed_tokens.weight
    assert torch.equal(ours.embedding.tokens.weight[: len(expected)], expected)


def test_what_a_configuration_leaves_out_is_as_in_transformers(tmp_path: Path) -> None:
    write_marian(tmp_path)
    path, usual = tmp_path / "config.json", MarianConfig()
    config = json.loads(path.read_text())
    path.write_text(
        json.dumps({key: config[key] for key in config.keys() - {"activation_function", "scale_embedding"}})
    )
    found: Any = marian.import_directory(tmp_path, Options()).config.model
    assert found.activation == usual.activation_function
    assert (found.embedding_scale is None) == usual.scale_embedding


def test_added_tokens_are_read_and_written(tmp_path: Path) -> None:
    model = write_marian(tmp_path)
    original = tokenizer_of(tmp_path)
    original.add_tokens(["harbour", "XYZ"])
    original.save_pretrained(tmp_path)
    with pytest.raises(ModelImportError, match=r"the added token harbour has the id \d+, but the model has only \d+"):
        marian.import_directory(tmp_path, Options())
    model.resize_token_embeddings(len(original))
    model.save_pretrained(tmp_path)
    imported = marian.import_directory(tmp_path, Options())
    assert imported.vocabulary is not None
    for text in [*ENGLISH, "The harbour XYZ was quiet.", "harbour", "XYZharbour, XYZ"]:
        expected = original(text).input_ids
        assert ids_of(imported.tokenizer.encode(text), imported.vocabulary) == expected, text
    added = original.convert_tokens_to_ids(["harbour", "XYZ"])
    assert imported.weights["is_target_token"][added].all()


def test_what_is_not_followed_is_named(tmp_path: Path) -> None:
    write_marian(tmp_path / "m")
    path = tmp_path / "m" / "generation_config.json"
    settings = json.loads(path.read_text()) | {"no_repeat_ngram_size": 3, "repetition_penalty": 1.0, "do_sample": False}
    path.write_text(json.dumps(settings))
    (tmp_path / "m" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# theirs\n")
    notes = import_model(str(tmp_path / "m"), tmp_path / "c", Options()).notes
    card = (tmp_path / "c" / "README.md").read_text()
    assert "license: cc-by-4.0" in card
    assert f"- {notes[0]}." in card
    assert notes == ("generation_config.json asks for no_repeat_ngram_size 3, which is not followed here",)


def test_a_search_that_is_wider_than_any_that_is_served_is_made_as_wide_as_that(tmp_path: Path) -> None:
    write_marian(tmp_path)
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_beams": 12, "length_penalty": None}))
    imported = marian.import_directory(tmp_path, Options())
    assert (imported.config.decoding.beam_size, imported.config.decoding.length_penalty) == (8, 1.0)
    assert imported.notes == ("generation_config.json asks for a beam of 12: the widest that is served is 8",)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: (d / "source.spm").unlink(), "source.spm is missing"),
        (lambda d: (d / "vocab.json").write_text("{"), "vocab.json is not JSON"),
        (lambda d: (d / "source.spm").write_bytes(b"\x0a\xff"), "source.spm is no SentencePiece model"),
        (lambda d: (d / "tokenizer_config.json").unlink(), "name it with `--source`"),
        (lambda d: edit(d, activation_function="laplace"), "activation laplace is not supported"),
        (lambda d: edit(d, normalize_before=True), "normalize_before"),
        (lambda d: edit(d, decoder_ffn_dim=40), "`encoder_ffn_dim` is 80 and `decoder_ffn_dim` is 40"),
        (lambda d: edit(d, encoder_ffn_dim=40, decoder_ffn_dim=40), "hidden.weight is .80, 48.; it must be .40, 48."),
        (lambda d: edit(d, encoder_attention_heads=5, decoder_attention_heads=5), "48; .* a multiple of `n_heads`, 5"),
        (lambda d: edit(d, d_model="wide"), 'config.json: `d_model` is "wide"; it must be an integer'),
        (lambda d: edit(d, dropout="some"), 'config.json: `dropout` is "some"; it must be a number'),
        (
            lambda d: (d / "generation_config.json").write_text('{"decoder_start_token_id": [5]}'),
            r"generation_config.json: `decoder_start_token_id` is \[5\]; it must be an integer",
        ),
        (
            lambda d: (d / "generation_config.json").write_text('{"decoder_start_token_id": 5, "max_length": "all"}'),
            'generation_config.json: `max_length` is "all"; it must be an integer',
        ),
        (lambda d: edit(d, encoder_layers=9), "model.safetensors has no model.encoder.layers.3"),
        (lambda d: edit(d, model_type="pegasus"), r"`model_type` pegasus\) is not supported; supported are"),
        (lambda d: (d / "config.json").unlink(), "no known model"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence_and_nothing_is_left(
    tmp_path: Path, change: Any, sentence: str
) -> None:
    write_marian(tmp_path / "m")
    change(tmp_path / "m")
    with pytest.raises(ModelImportError, match=sentence):
        import_model(str(tmp_path / "m"), tmp_path / "out" / "c", Options())
    assert not list((tmp_path / "out").iterdir() if (tmp_path / "out").exists() else [])


def edit(directory: Path, **changes: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
