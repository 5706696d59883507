"""OPUS-MT releases in Marian's own format, compared with a forward pass in NumPy and, where it is installed, Marian."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import yaml

from manifest.schema import AlignmentChoice, Language
from model.checkpoint import Checkpoint, load_checkpoint
from model.config import TransformerConfig
from model.importing.families import import_model
from model.importing.imported import ImportedModel, ModelImportError, Options
from model.importing.marian_npz import import_directory, recognizes
from model.importing.marian_pieces import read_pieces
from tests.model.importing.imported_transformers import built, config_of
from tests.model.importing.marian_releases import (
    ENGLISH,
    FRENCH,
    KINDS,
    MODEL,
    OPTIONS,
    logits,
    pieces_of,
    write_npz,
    write_release,
)
from tests.model.importing.sentencepieces import sentencepiece_model


def change(path: Path, **settings: Any) -> None:
    """Change settings of a YAML file; None removes one."""
    content = yaml.safe_load(path.read_text()) | {key.replace("_", "-"): value for key, value in settings.items()}
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))


def target_ids(directory: Path, imported: ImportedModel, text: str) -> list[int]:
    assert imported.vocabulary is not None
    processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / "target.spm"))
    vocabulary = imported.vocabulary
    return [vocabulary.target.get(piece, vocabulary.unk) for piece in [*processor.encode(text, out_type=str), "</s>"]]


def source_ids(imported: ImportedModel, text: str) -> list[int]:
    assert imported.vocabulary is not None
    return imported.vocabulary.ids(imported.tokenizer.encode(text).tokens)


def written_ids(directory: Path, imported: ImportedModel) -> list[int]:
    """Return the ids of target pieces, except <unk>."""
    assert imported.vocabulary is not None
    vocabulary = imported.vocabulary
    return sorted({vocabulary.target[piece] for piece in pieces_of(directory / "target.spm")} - {vocabulary.unk})


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_logits_are_those_of_a_forward_pass_by_marians_names(tmp_path: Path, kind: str) -> None:
    arrays = write_release(tmp_path / "m", kind)
    imported = import_directory(tmp_path / "m", Options())
    model, tokens = built(imported), config_of(imported).special_tokens
    options = OPTIONS | KINDS[kind]
    tied = options["tied-embeddings"] or options["tied-embeddings-all"]
    for english, french in zip(ENGLISH, FRENCH, strict=True):
        source, target = source_ids(imported, english), target_ids(tmp_path / "m", imported, french)
        expected = logits(arrays, options["transformer-ffn-activation"], tied, source, target)
        shifted = torch.tensor([[tokens.bos, *target[:-1]]])
        found = model.logits(model(torch.tensor([source]), torch.tensor([len(source)]), shifted))[0]
        written = written_ids(tmp_path / "m", imported)
        assert np.abs(found[:, written].numpy() - expected[:, written]).max() < 1e-5
        assert found.isfinite().any(0).nonzero().flatten().tolist() == written


def test_a_checkpoint_reads_and_writes_the_pieces_of_the_release(tmp_path: Path) -> None:
    write_release(tmp_path / "opus-mt", labels=("fra", "ita"))
    import_model(str(tmp_path / "opus-mt"), tmp_path / "c", Options())
    checkpoint: Checkpoint = load_checkpoint(tmp_path / "c")
    vocabulary = read_pieces(tmp_path / "opus-mt" / "opus.spm-spm.vocab.yml")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "opus-mt" / "source.spm"))
    assert isinstance(checkpoint.config.model, TransformerConfig)
    italian = checkpoint.config.model.targets[1]
    for text in (*ENGLISH, "The “quoted”  ﬁnal №5", "кот and 日本", ">>fra<< home", "rivière"):
        pieces = [">>ita<<", *processor.encode(text, out_type=str), "</s>"]
        (ids,) = checkpoint.encode([text], target=italian)
        assert ids == [vocabulary.get(piece, vocabulary["<unk>"]) for piece in pieces], text
    for text in FRENCH:
        imported = import_directory(tmp_path / "opus-mt", Options())
        assert checkpoint.decode(target_ids(tmp_path / "opus-mt", imported, text)) == text
    assert checkpoint.config.provenance is not None
    assert checkpoint.config.provenance.source == "opus-mt"
    assert checkpoint.config.provenance.licence == "Attribution 4.0 International"


SWAPPED = r"pieces of source\.spm are unknown|source\.spm and target\.spm are swapped"
TABLES = ["encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt"]


@pytest.mark.parametrize(("kind", "name", "others"), [("tied", "Wemb", TABLES), ("shared source", "Wemb", TABLES[:2])])
def test_a_table_is_found_under_each_of_its_tied_names(tmp_path: Path, kind: str, name: str, others: list[str]) -> None:
    arrays = write_release(tmp_path / "m", kind)
    expected = import_directory(tmp_path / "m", Options()).weights
    table = arrays.pop(name)
    for other in others:
        write_npz(tmp_path / "m" / MODEL, arrays | {other: table}, OPTIONS | KINDS[kind])
        found = import_directory(tmp_path / "m", Options()).weights
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[ours], expected[ours]) for ours in expected)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_that_were_swapped_are_refused(tmp_path: Path, kind: str) -> None:
    directory = tmp_path / "m"
    arrays = write_release(directory, kind)
    ids = import_directory(directory, Options()).vocabulary
    assert ids is not None
    never = pieces_of_source_alone(directory)
    arrays["decoder_ff_logit_out_b"][0, [ids.target[piece] for piece in never if piece in ids.target]] -= 3
    write_npz(directory / MODEL, arrays, OPTIONS | KINDS[kind])
    import_directory(directory, Options())
    source, target = ((directory / name).read_bytes() for name in ("source.spm", "target.spm"))
    (directory / "source.spm").write_bytes(target)
    (directory / "target.spm").write_bytes(source)
    with pytest.raises(ModelImportError, match=SWAPPED):
        import_directory(directory, Options())


def pieces_of_source_alone(directory: Path) -> set[str]:
    source, target = (pieces_of(directory / name) for name in ("source.spm", "target.spm"))
    return {*source} - {*target}


def test_searches_are_as_decoder_yml_has_them(tmp_path: Path) -> None:
    write_release(tmp_path / "m")
    decoding = import_directory(tmp_path / "m", Options()).config.decoding
    assert (decoding.beam_size, decoding.length_penalty, decoding.stop) == (6, 1.0, "empty")
    change(tmp_path / "m" / "decoder.yml", beam_size=2, normalize=0.6)
    decoding = import_directory(tmp_path / "m", Options()).config.decoding
    assert (decoding.beam_size, decoding.length_penalty) == (2, 0.6)
    change(tmp_path / "m" / "decoder.yml", beam_size=None, normalize=None)
    imported = import_directory(tmp_path / "m", Options())
    assert (imported.config.decoding.beam_size, imported.config.decoding.length_penalty) == (8, 0.0)
    assert imported.notes == ("decoder.yml asks for a beam of 12: the widest that is served is 8",)


def test_what_is_not_followed_is_named(tmp_path: Path) -> None:
    write_release(tmp_path / "m")
    assert not import_directory(tmp_path / "m", Options()).notes
    change(tmp_path / "m" / "decoder.yml", allow_unk=False, max_length_factor=3, output_sampling=[], shortlist=[])
    assert not import_directory(tmp_path / "m", Options()).notes
    change(tmp_path / "m" / "decoder.yml", word_penalty=0.5, allow_unk=True, max_length_factor=3)
    (tmp_path / "m" / "preprocess.sh").write_text("sed -e 's/，/,/g' | spm_encode\n")
    assert import_directory(tmp_path / "m", Options()).notes == (
        "decoder.yml asks for allow-unk true, which is not followed here",
        "decoder.yml asks for word-penalty 0.5, which is not followed here",
        "preprocess.sh replaces signs, as typographic quotes by straight ones, which is not followed here",
    )
    (tmp_path / "m" / "preprocess.sh").write_text("spm_encode\n")
    assert len(import_directory(tmp_path / "m", Options()).notes) == 2


def test_languages_are_those_of_the_card_or_of_the_file_about_the_release_or_those_that_a_user_names(
    tmp_path: Path,
) -> None:
    write_release(tmp_path / "m", labels=("fra", "ita", "ron"))
    vocabulary = read_pieces(tmp_path / "m" / "opus.spm-spm.vocab.yml")

    def labelled(*codes: str) -> tuple[Language, ...]:
        return tuple(Language(code=code, source_prefix=(vocabulary[f">>{code}<<"],)) for code in codes)

    def languages(**options: Any) -> tuple[Any, Any]:
        transformer = config_of(import_directory(tmp_path / "m", Options(**options)))
        return transformer.source, transformer.target

    assert languages() == ("en", labelled("fra", "ita", "ron"))
    release = tmp_path / "m" / "opus-2021.yml"
    release.write_text("source-languages:\n  - no\n  - dan\ntarget-languages: ita fra\nuse-target-labels:\n")
    assert languages(targets=("fra",)) == ((Language(code="no"), Language(code="dan")), "fra")
    change(release, use_target_labels=[">>ron<<", ">>fra<<"])
    assert languages(sources=("en",)) == ("en", labelled("ron", "fra"))
    assert languages(sources=("en", "de"), targets=("ita",)) == (
        (Language(code="en"), Language(code="de")),
        labelled("ita"),
    )
    release.write_text("a: [")
    assert languages() == ("en", labelled("fra", "ita", "ron"))


@pytest.mark.parametrize(("said", "layer"), [("last", 2), (1, 0), ("2", 1)])
def test_the_first_head_of_a_layer_aligns_where_it_was_trained_to(tmp_path: Path, said: object, layer: int) -> None:
    write_release(tmp_path / "m", transformer_guided_alignment_layer=said)
    alignment = AlignmentChoice(layer=layer, heads=(0,), next_row=False)
    assert import_directory(tmp_path / "m", Options()).alignment == alignment
    (tmp_path / "m" / MODEL).rename(tmp_path / "m" / "model.npz")
    change(tmp_path / "m" / "decoder.yml", models=["/elsewhere/model.npz"])
    assert import_directory(tmp_path / "m", Options()).alignment is None
    (tmp_path / "m" / "a.yml").write_text("modeltype: transformer-align\nsource-languages: en\ntarget-languages: fr")
    assert import_directory(tmp_path / "m", Options()).alignment == alignment


ODD = ["</s>", "<unk>", "yes", "no", "~", "null", "1", "1.0", "<<", "=", "|", ">", "'", '"', "\\", ":", "a:b", "#", "?",
       "- ", "!", "&a", "*a", "[", "{", "%", "@", "`", ",", "\x84", "\ufeff", "👍", "▁"]  # fmt: skip
AS_MARIAN_WRITES = (
    '</s>: 0\n<unk>: 1\nyes: 2\nno: 3\n"~": 4\nnull: 5\n1: 6\n1.0: 7\n<<: 8\n=: 9\n"|": 10\n">": 11\n"\'": 12\n'
    '"\\"": 13\n'
    '\\: 14\n":": 15\na:b: 16\n"#": 17\n? "?"\n: 18\n"- ": 19\n"!": 20\n"&a": 21\n"*a": 22\n"[": 23\n"{": 24\n"%": 25\n'
    '"@": 26\n"`": 27\n",": 28\n"\\x84": 29\n"\\ufeff": 30\n👍: 31\n▁: 32\n'
)


def test_odd_pieces_are_read_from_every_kind_of_vocabulary(tmp_path: Path) -> None:
    expected = {piece: i for i, piece in enumerate(ODD)}
    (tmp_path / "v.yml").write_text(AS_MARIAN_WRITES, encoding="utf-8")
    assert read_pieces(tmp_path / "v.yml") == expected
    (tmp_path / "v.yml").write_text(yaml.safe_dump(expected, allow_unicode=True), encoding="utf-8")
    assert read_pieces(tmp_path / "v.yml") == expected
    lines = [*ODD, "\u2028", "\x85", "\xa0"]
    for end in ("\n", "\r\n"):
        (tmp_path / "v.vocab").write_bytes("".join(f"{piece}{end}" for piece in lines).encode())
        assert list(read_pieces(tmp_path / "v.vocab")) == lines
    (tmp_path / "v.spm").write_bytes(sentencepiece_model(ENGLISH * 8, 90))
    pieces = read_pieces(tmp_path / "v.spm")
    assert set(pieces) == {"<s>", *pieces_of(tmp_path / "v.spm")}
    assert pieces["</s>"] == 2


def test_a_vocabulary_may_be_the_sentencepiece_model_itself(tmp_path: Path) -> None:
    write_release(tmp_path / "m")
    (tmp_path / "m" / "v.spm").write_bytes((tmp_path / "m" / "source.spm").read_bytes())
    (tmp_path / "m" / "source.spm").unlink()
    n = len(read_pieces(tmp_path / "m" / "v.spm"))
    arrays = {name: array for name, array in np.load(tmp_path / "m" / MODEL).items() if name != "special:model.yml"}
    arrays["Wemb"], arrays["decoder_ff_logit_out_b"] = arrays["Wemb"][:n], arrays["decoder_ff_logit_out_b"][:, :n]
    write_npz(tmp_path / "m" / MODEL, arrays, OPTIONS | KINDS["tied"])
    change(tmp_path / "m" / "decoder.yml", vocabs=["v.spm", "v.spm"])
    imported = import_directory(tmp_path / "m", Options())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m" / "v.spm"))
    assert source_ids(imported, ENGLISH[0]) == [*processor.encode(ENGLISH[0]), processor.eos_id()]


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("type", "s2s", r"a model of another type \(`type` s2s\) is not supported"),
        ("transformer-preprocess", "n", r"norms before the layers \(pre-norm\) \(`transformer-preprocess` n\)"),
        ("transformer-postprocess", "da", "`transformer-postprocess` da"),
        ("transformer-postprocess-emb", "nd", "normalized embeddings"),
        ("transformer-postprocess-top", "n", "`transformer-postprocess-top` n"),
        ("transformer-decoder-autoreg", "rnn", "`dec-cell` is gru; it must be ssru"),
        ("transformer-decoder-autoreg", "average-attention", r"a decoder with average attention \(AAN\)"),
        ("transformer-ffn-depth", 3, "`transformer-ffn-depth` 3"),
        ("transformer-decoder-ffn-depth", 1, "`transformer-decoder-ffn-depth` 1"),
        ("transformer-tied-layers", [1, 1], r"tied layers\) \(`transformer-tied-layers` \[1, 1\]\)"),
        ("transformer-no-projection", True, "attention without output projection"),
        ("transformer-pool", True, "pooling in place of attention"),
        ("transformer-train-position-embeddings", True, "learned positions"),
        ("transformer-disable-position-embeddings", True, "no positions"),
        ("transformer-attention-mask", "alibi", "a bias by distance"),
        ("output-omit-bias", True, "logits without a bias"),
        ("right-left", True, "targets written from right to left"),
        ("lemma-dim-emb", 16, "factors"),
        ("ulr", True, r"universal embeddings \(ULR\)"),
        ("transformer-decoder-dim-ffn", 48, "`transformer-decoder-dim-ffn` is 48; they must be equal"),
        ("transformer-ffn-activation", "prelu", "transformer-ffn-activation: Input should be 'swish', "),
        ("transformer-heads", 5, "`dim-emb` is 24; it must be a multiple of `transformer-heads`, 5"),
        ("dim-emb", "wide", "dim-emb: Input should be a valid integer"),
        ("enc-depth", 3, "the weights have no encoder_l3_self_Wq"),
        ("enc-depth", 1, "the weights have an unknown array: encoder_l2_ffn_W1"),
        ("transformer-dim-ffn", 41, r"W1 is float32 \(24, 40\); it must be floats \(24, 41\)"),
        (
            "transformer-guided-alignment-layer",
            4,
            "`transformer-guided-alignment-layer` must be at most `dec-depth`, 3",
        ),
    ],
)
def test_models_that_are_not_read_are_refused_by_what_they_have(
    tmp_path: Path, option: str, value: object, sentence: str
) -> None:
    arrays = write_release(tmp_path / "m")
    write_npz(tmp_path / "m" / MODEL, arrays, OPTIONS | KINDS["tied"] | {option: value})
    with pytest.raises(ModelImportError, match=sentence) as told:
        import_directory(tmp_path / "m", Options())
    assert "\n" not in str(told.value)


VOCABULARY = "opus.spm-spm.vocab.yml"
ALIASES = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 30)) + "models: [*a29]\n"
"""Half a billion values in thirty lines."""


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda d: (d / "decoder.yml").unlink(), "decoder.yml is missing"),
        (lambda d: (d / "decoder.yml").write_text("a: ["), "decoder.yml is not YAML"),
        (lambda d: (d / "decoder.yml").write_text("- a"), "decoder.yml must be a mapping"),
        (lambda d: (d / "decoder.yml").write_text(ALIASES), "decoder.yml is not YAML: its aliases stand for much more"),
        (lambda d: (d / "decoder.yml").write_text("- " * 5_000), "decoder.yml is not YAML"),
        (lambda d: change(d / "decoder.yml", models=None), "decoder.yml: `models` must be a list"),
        (
            lambda d: change(d / "decoder.yml", models=["a.npz", "b.npz"]),
            "`models` has 2 files; ensembles are not supported",
        ),
        (lambda d: change(d / "decoder.yml", models=["a.npz"]), "a.npz is missing; decoder.yml names it"),
        (
            lambda d: change(d / "decoder.yml", models=["source.spm"]),
            "source.spm is not supported; .* .npz and .bin are",
        ),
        (lambda d: change(d / "decoder.yml", vocabs=[VOCABULARY]), "decoder.yml: `vocabs` must be a list"),
        (lambda d: change(d / "decoder.yml", beam_size=0), "decoder.yml: `beam-size` 0 or `normalize` 1 is not"),
        (lambda d: (d / MODEL).write_bytes(b"PK\x03\x04 half"), "is damaged, or is no .npz file"),
        (lambda d: write_npz(d / MODEL, {}, {}), "dim-emb: Field required"),
        (lambda d: np.savez(d / MODEL, a=np.zeros(2)), "has no special:model.yml"),
        (
            lambda d: np.savez_compressed(d / MODEL, a=np.zeros(20_000_000, np.int8)),
            f"{MODEL} unpacks to more than 10000000 bytes, 100 times its size",
        ),
        (lambda d: (d / VOCABULARY).unlink(), f"{VOCABULARY} is missing"),
        (lambda d: (d / VOCABULARY).write_bytes(b"\xff: 0"), f"{VOCABULARY} is not UTF-8"),
        (lambda d: (d / VOCABULARY).write_text("</s>: 0\n<unk>: 0"), f"{VOCABULARY} is no vocabulary"),
        (lambda d: (d / VOCABULARY).write_text("</s>: 0\n<unk>: x"), f"{VOCABULARY} is no vocabulary"),
        (lambda d: (d / VOCABULARY).write_text("a: 0\n<unk>: 1"), f"{VOCABULARY} has no </s>"),
        (lambda d: (d / VOCABULARY).write_text("</s>: 0\n<unk>: 1"), r"Wemb has \d+ rows, but the vocabulary has 2"),
        (lambda d: other_target(d, "</s>\n<unk>\na\n"), "share an embedding, but not a vocabulary"),
        (lambda d: other_target(d, "<unk>\n</s>\na\n"), "have different ids for <unk>"),
        (lambda d: rename(d / VOCABULARY, "a.fsv"), "a.fsv has factors, which are not supported"),
        (lambda d: (d / "source.spm").unlink(), "source.spm is missing"),
        (lambda d: (d / "source.spm").write_bytes(b"\x0a\xff"), "source.spm is no SentencePiece model"),
        (lambda d: (d / "source.spm").rename(d / "source.bpe"), r"from BPE \(source.bpe\), which is not supported"),
        (lambda d: (d / "README.md").unlink(), "name it with `--source`"),
        (lambda d: (d / "README.md").write_text("* source language(s): en"), "name it with `--target`"),
        (lambda d: (d / "README.md").write_text("* source language(s): en\n* target language(s): fr it"), "fr, it"),
    ],
)
def test_incomplete_and_damaged_releases_are_refused_in_a_sentence(tmp_path: Path, damage: Any, sentence: str) -> None:
    write_release(tmp_path / "m")
    damage(tmp_path / "m")
    assert recognizes(tmp_path / "m")
    with pytest.raises(ModelImportError, match=sentence) as told:
        import_directory(tmp_path / "m", Options())
    assert "\n" not in str(told.value)


def rename(vocabulary: Path, name: str) -> None:
    vocabulary.rename(vocabulary.with_name(name))
    change(vocabulary.with_name("decoder.yml"), vocabs=[name, name])


def other_target(directory: Path, pieces: str) -> None:
    (directory / "other.vocab").write_text(pieces)
    change(directory / "decoder.yml", vocabs=[VOCABULARY, "other.vocab"])


def test_a_language_that_a_model_does_not_write_is_refused(tmp_path: Path) -> None:
    write_release(tmp_path / "m", labels=("fra", "ita"))
    with pytest.raises(ModelImportError, match="unknown `--target` deu; the model has fra, ita"):
        import_directory(tmp_path / "m", Options(targets=("deu",)))


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_scores_are_marians(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pymarian", reason="Marian's own package is large, and no dependency")
    write_release(tmp_path / "m", kind)
    imported = import_directory(tmp_path / "m", Options())
    vocabularies = yaml.safe_load((tmp_path / "m" / "decoder.yml").read_text())["vocabs"]
    for name, side, texts in (("source", "s", ENGLISH), ("target", "t", FRENCH)):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m" / f"{name}.spm"))
        lines = (" ".join(processor.encode(text, out_type=str)) for text in texts)
        (tmp_path / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pymarian", "score", "--quiet", "--cpu-threads", "1", "--workspace", "100"]
    command += ["-m", str(tmp_path / "m" / MODEL), "-t", str(tmp_path / "s"), str(tmp_path / "t")]
    command += ["-v", *(str(tmp_path / "m" / name) for name in vocabularies)]
    scores = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    model, tokens = built(imported), config_of(imported).special_tokens
    assert imported.vocabulary is not None
    model.is_target_token[list(imported.vocabulary.target.values())] = True  # in sums of probabilities all count
    for english, french, score in zip(ENGLISH, FRENCH, scores, strict=True):
        source, target = source_ids(imported, english), target_ids(tmp_path / "m", imported, french)
        shifted = torch.tensor([[tokens.bos, *target[:-1]]])
        hidden = model(torch.tensor([source]), torch.tensor([len(source)]), shifted)
        log_probs = model.logits(hidden)[0].log_softmax(-1)
        assert log_probs[range(len(target)), target].sum().item() == pytest.approx(float(score), abs=1e-3)
