from collections.abc import Callable
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation

from manifest.schema import AlignmentChoice
from model.decoding.search import greedy_search
from model.importing.ctranslate2 import ImportedTransformer, read_transformer
from model.importing.imported import ModelImportError
from model.networks.transformer import Transformer
from model.weights import assign_weights
from tests.model.importing.ctranslate2_models import (
    OPENNMT_TOKENS,
    WORDS,
    arrays_of,
    opus_spec,
    random_spec,
    save,
    translator,
    write_model,
)

SOURCES = [[WORDS[(7 * i + j * j) % len(WORDS)] for j in range(1 + i)] for i in range(12)]
TARGETS = [[WORDS[(5 * i + 3 * j) % len(WORDS)] for j in range(12 - i)] for i in range(12)]
GERMAN = ["<unk>", "<blank>", "<s>", "</s>", *(f"▁v{i}" for i in range(70))]

Make = Callable[[], TransformerSpec]


def opennmt() -> TransformerSpec:
    return random_spec(OPENNMT_TOKENS)


MODELS: dict[str, Make] = {
    "opennmt": opennmt,
    "opus": opus_spec,
    "multilingual opus": lambda: opus_spec(settings={"add_source_bos": True, "bos_token": ">>vie<<"}),
    "normalized embeddings": lambda: random_spec(OPENNMT_TOKENS, layernorm_embedding=True),
    "separate vocabularies": lambda: random_spec(OPENNMT_TOKENS, ["<unk>", "<blank>", "</s>", "<s>", *WORDS, "▁more"]),
    "untied projection": lambda: random_spec(OPENNMT_TOKENS, tied=False),
    "unscaled": lambda: random_spec(OPENNMT_TOKENS, scale=False),
    "scaled by a number": lambda: random_spec(OPENNMT_TOKENS, scale=3.5),
    "positions of CTranslate2": lambda: random_spec(OPENNMT_TOKENS, encodings=False),
    "gelu": lambda: random_spec(OPENNMT_TOKENS, activation=Activation.GELU),
    "gelu by tanh": lambda: random_spec(OPENNMT_TOKENS, activation=Activation.GELUTanh),
    "epsilon": lambda: random_spec(OPENNMT_TOKENS, settings={"layer_norm_epsilon": 0.1}),
    "start by </s>": lambda: random_spec(OPENNMT_TOKENS, settings={"decoder_start_token": "</s>"}),
}
TYPES = ["float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"]


SAVED = [*((name, "float32") for name in MODELS), *(("opennmt", dtype) for dtype in TYPES[1:])]


@pytest.fixture(params=SAVED, ids=" ".join)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name, dtype = request.param
    return save(MODELS[name](), tmp_path / "model", dtype)


def test_log_probabilities_are_those_of_ctranslate2(directory: Path) -> None:
    _agree(read_transformer(directory, "en", "vi"), translator(directory))


@pytest.mark.parametrize("make", ["opennmt", "opus", "multilingual opus", "separate vocabularies"])
def test_greedy_translations_are_those_of_ctranslate2(tmp_path: Path, make: str) -> None:
    directory = save(MODELS[make](), tmp_path)
    read, oracle = read_transformer(directory, "en", "vi"), translator(directory)
    results = oracle.translate_batch(SOURCES, beam_size=1, max_decoding_length=30)
    assert [_greedy(read, source) for source in SOURCES] == [result.hypotheses[0] for result in results]


def test_a_target_that_must_begin_with_a_token_begins_so(tmp_path: Path) -> None:
    directory = save(opennmt(), tmp_path)
    read = read_transformer(directory, "en", "vi", target_prefix=WORDS[3])
    (expected,) = translator(directory).translate_batch(SOURCES[-1:], [[WORDS[3]]], beam_size=1, max_decoding_length=30)
    found = _greedy(read, SOURCES[-1])
    assert found == expected.hypotheses[0]
    assert found[0] == WORDS[3]


def test_vocabularies_are_filled_up_with_tokens_that_no_translation_has(directory: Path) -> None:
    read = read_transformer(directory, "en", "vi")
    config, special = read.config, read.config.special_tokens
    assert config.vocab_size % 64 == 0
    is_target = read.weights["is_target_token"]
    assert is_target.sum() == len(read.vocabulary.target)
    assert not is_target[special.pad]
    assert not read.weights["embedding.tokens.weight"][~is_target].any()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((-1, 1), None),
        ((1, 2), AlignmentChoice(layer=1, heads=(0, 1), next_row=False)),
        ((-1, 0), AlignmentChoice(layer=2, heads=(0, 1, 2), next_row=False)),
    ],
)
def test_heads_that_align_are_those_that_the_file_names(
    tmp_path: Path, chosen: tuple[int, int], expected: AlignmentChoice | None
) -> None:
    directory = save(random_spec(OPENNMT_TOKENS, alignment=chosen), tmp_path)
    assert read_transformer(directory, "en", "vi").alignment == expected


@pytest.mark.parametrize("version", [3, 4, 5, 6])
@pytest.mark.parametrize("quantization", ["float32", "int16", "int8"])
def test_older_files_hold_the_same_model(tmp_path: Path, version: int, quantization: str) -> None:
    spec = random_spec(OPENNMT_TOKENS, pre_norm=False, activation=Activation.SWISH)
    today = read_transformer(save(spec, tmp_path / "today", quantization), "en", "vi")
    directory = tmp_path / "older"
    _write_older(directory, spec, version, revision=min(version, 5))
    read = read_transformer(directory, "en", "vi")
    assert read.config == today.config
    for name, weight in read.weights.items():
        assert torch.equal(weight, today.weights[name]), name
    _agree(read, translator(directory))


@pytest.mark.parametrize(
    "settings",
    [
        {"with_source_eos": 1},
        {"with_source_bos": 1, "bos_token": ">>vie<<"},
        {"with_target_bos": 0},
        {"eos_token": "▁w1", "with_target_bos": 0},
    ],
    ids=str,
)
def test_older_files_say_themselves_which_tokens_are_special(tmp_path: Path, settings: dict[str, int | str]) -> None:
    spec = random_spec([*OPENNMT_TOKENS, ">>vie<<"])
    save(spec, tmp_path / "today")
    _write_older(tmp_path, spec, 5, 4, settings)
    read = read_transformer(tmp_path, "en", "vi")
    assert (read.source_end is not None) == ("with_source_eos" in settings)
    _agree(read, translator(tmp_path))


def test_text_files_of_vocabularies_lose_a_carriage_return_only_if_every_line_has_one(tmp_path: Path) -> None:
    tokens = [*OPENNMT_TOKENS[:-1], "a\r"]
    spec = random_spec(tokens)
    save(spec, tmp_path / "today")
    _write_older(tmp_path, spec, 5, 4)
    path = tmp_path / "shared_vocabulary.txt"
    path.write_bytes("".join(f"{token}\n" for token in tokens).encode())
    assert list(read_transformer(tmp_path, "en", "vi").vocabulary.source) == tokens
    path.write_bytes("".join(f"{token}\r\n" for token in OPENNMT_TOKENS).encode())
    assert list(read_transformer(tmp_path, "en", "vi").vocabulary.source) == OPENNMT_TOKENS


@pytest.mark.parametrize(
    "name",
    [
        "encoder/layer_0/self_attention/relative_position_keys",
        "decoder/layer_1/ffn/linear_0_noact/weight",
        "decoder/scale_outputs",
        "encoder/embeddings_1/weight",
        "decoder/layer_0/layer_scalar",
        "encoder/layer_0/self_attention/linear_0/weight_zero",
    ],
)
def test_a_name_that_is_not_known_is_a_variant_which_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelImportError, match=f"variant that is not supported: it has {name}$"):
        _with(tmp_path, {name: np.zeros((24, 24), np.float32)})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"decoder/alibi": np.int8(1)}, "decoder/alibi is on"),
        ({"encoder/activation": np.int8(4), "decoder/activation": np.int8(4)}, "activation 4 is not supported"),
        ({"encoder/num_heads": np.int16(2)}, "num_heads must be equal in encoder and decoder, not 2 and 3"),
        ({"encoder/num_heads": np.int16(5), "decoder/num_heads": np.int16(5)}, "it must be a multiple of `n_heads`, 5"),
        ({"encoder/scale_embeddings": np.int8(0)}, "embeddings have different scales: 1 and 4.89898"),
        ({"decoder/layer_norm/beta": None}, "it has no decoder/layer_norm/beta"),
        ({"encoder/num_heads": None}, "it has no encoder/num_heads"),
        ({"decoder/alignment_layer": np.int16(9)}, "it aligns by 1 heads of layer 9"),
        (
            {"encoder/layer_0/ffn/linear_0/weight": np.zeros((40, 24), np.int8)},
            "encoder/layer_0/ffn/linear_0/weight has integers without a scale for each row",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_computed_otherwise_is_refused(
    tmp_path: Path, changes: dict[str, np.ndarray | None], sentence: str
) -> None:
    with pytest.raises(ModelImportError, match=sentence):
        _with(tmp_path, changes)


@pytest.mark.parametrize(
    ("spec", "version", "revision", "sentence"),
    [
        ("TransformerDecoderSpec", 6, 8, "model.bin holds TransformerDecoderSpec, revision 8; it must be Transformer"),
        ("TransformerSpec", 5, 2, "holds TransformerSpec, revision 2; it must be TransformerSpec, revision 3 or"),
        ("", 1, 1, "model.bin holds a model without a name, revision 1"),
        ("TransformerSpec", 7, 7, "model.bin is no CTranslate2 model, or its version is later than 6"),
    ],
)
def test_other_models_are_named_and_refused(
    tmp_path: Path, spec: str, version: int, revision: int, sentence: str
) -> None:
    save(opennmt(), tmp_path)
    write_model(tmp_path / "model.bin", {}, version, revision, spec)
    with pytest.raises(ModelImportError, match=sentence):
        read_transformer(tmp_path, "en", "vi")


def test_a_file_that_was_cut_anywhere_is_damaged(tmp_path: Path) -> None:
    path = save(opennmt(), tmp_path) / "model.bin"
    content = path.read_bytes()
    for length in [0, 3, 5, 20, *range(30, len(content), len(content) // 50), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ModelImportError, match=r"^model.bin is damaged: it ends after"):
            read_transformer(tmp_path, "en", "vi")
    path.write_bytes(content + b"more")
    with pytest.raises(ModelImportError, match=r"^model.bin is damaged: 4 bytes come after its end$"):
        read_transformer(tmp_path, "en", "vi")


def test_a_wrong_byte_is_told_in_a_sentence_or_is_a_number_of_another_model(tmp_path: Path) -> None:
    path = save(opennmt(), tmp_path) / "model.bin"
    content, refused = path.read_bytes(), 0
    for place in range(0, 1500, 15):
        wrong = bytearray(content)
        wrong[place] ^= 0xFF
        path.write_bytes(wrong)
        try:
            read_transformer(tmp_path, "en", "vi")
        except ModelImportError:
            refused += 1
    assert 10 < refused < 100


@pytest.mark.parametrize("name", ["model.bin", "config.json", "shared_vocabulary.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    save(opennmt(), tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ModelImportError, match=rf"^{name} is missing"):
        read_transformer(tmp_path, "en", "vi")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.json", "{", "config.json is damaged: Invalid JSON"),
        ("config.json", '{"eos_token": 3}', "config.json is damaged: eos_token: Input should be a valid string"),
        ("config.json", '{"eos_token": "<end>"}', "the vocabulary has no <end>"),
        ("config.json", '{"decoder_start_token": null}', "`decoder_start_token` is null"),
        ("shared_vocabulary.json", "{}", "shared_vocabulary.json is damaged: Input should be a valid array"),
    ],
)
def test_settings_that_make_no_sense_are_told(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    save(opennmt(), tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(ModelImportError, match=sentence):
        read_transformer(tmp_path, "en", "vi")


def _model(read: ImportedTransformer) -> Transformer:
    model = Transformer(read.config)
    assign_weights(model, read.weights)
    return model.eval()


def _source_ids(read: ImportedTransformer, pieces: list[str]) -> list[int]:
    (language,) = read.config.targets
    ends = [read.source_end] if read.source_end else []
    return [*language.source_prefix, *(read.vocabulary.source[piece] for piece in [*pieces, *ends])]


def _greedy(read: ImportedTransformer, source: list[str]) -> list[str]:
    ids, (language,) = torch.tensor([_source_ids(read, source)]), read.config.targets
    (found,) = greedy_search(_model(read), ids, torch.tensor([ids.shape[1]]), 30, language.target_prefix)
    names = list(read.vocabulary.target)
    return [names[i] for i in found.ids]


@torch.inference_mode()
def _agree(read: ImportedTransformer, oracle: ctranslate2.Translator) -> None:
    model, special = _model(read), read.config.special_tokens
    for source, target, scored in zip(SOURCES, TARGETS, oracle.score_batch(SOURCES, TARGETS), strict=True):
        ids, ends = _source_ids(read, source), [*(read.vocabulary.target[piece] for piece in target), special.eos]
        hidden = model(torch.tensor([ids]), torch.tensor([len(ids)]), torch.tensor([[special.bos, *ends[:-1]]]))
        log_probs = model.logits(hidden)[0].log_softmax(-1)[torch.arange(len(ends)), torch.tensor(ends)]
        assert torch.allclose(log_probs, torch.tensor(scored.log_probs), atol=1e-4, rtol=0)


def _with(directory: Path, changes: dict[str, np.ndarray | None]) -> ImportedTransformer:
    """Read a model with changed variables in its file."""
    spec = opennmt()
    save(spec, directory)
    variables, aliases = arrays_of(spec)
    for name, array in changes.items():
        if array is None:
            del variables[name]
        else:
            variables[name] = np.asarray(array)
    write_model(directory / "model.bin", variables, 6, 7, aliases=aliases)
    return read_transformer(directory, "en", "vi")


def _write_older(
    directory: Path, spec: TransformerSpec, version: int, revision: int, settings: dict[str, int | str] | None = None
) -> None:
    """Write the same model like older releases of CTranslate2."""
    directory.mkdir(exist_ok=True)
    variables, aliases = arrays_of(spec)
    if revision < 5:
        for name in ("num_heads", "pre_norm", "activation", "alignment_layer", "alignment_heads"):
            of_sides = [variables.pop(f"{side}/{name}", None) for side in ("encoder", "decoder")]
            variables[name] = of_sides[1]
    if revision < 4:
        renamed = {name: name.replace("/embeddings_0/", "/embeddings/") for name in [*variables, *aliases]}
        variables = {renamed[name]: array for name, array in variables.items()}
        aliases = {renamed[alias]: renamed[name] for alias, name in aliases.items()}
        for side in ("encoder", "decoder"):
            variables[f"{side}/embeddings/multiply_by_sqrt_depth"] = variables.pop(f"{side}/scale_embeddings")
    for name, value in (settings or {}).items():
        variables[name] = np.int8(value) if isinstance(value, int) else np.frombuffer(value.encode(), np.int8)
    variables = {name: np.asarray(array) for name, array in variables.items()}
    write_model(directory / "model.bin", variables, version, revision, aliases=aliases)
    tokens = "".join(f"{token}\n" for token in spec._vocabularies["source"][0])
    (directory / "shared_vocabulary.txt").write_text(tokens, encoding="utf-8")
    if version >= 6:
        spec.config.save_as_json(directory / "config.json")
