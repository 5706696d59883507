"""Tokenizers of encoders, chosen by the files of a directory: the type of a model does not tell its tokenizer.

Source: Wu et al. 2016 (WordPiece), Radford et al. 2019 (byte-level BPE), Kudo and Richardson 2018 (SentencePiece).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from manifest.vocabulary import Vocabulary
from model.config import SpecialTokens
from model.importing.hugging_face import CONFIG, TOKENIZER_CONFIG, read_ids, read_json_if_there
from model.importing.imported import ModelImportError, in_sentences
from model.importing.sentencepiece_files import UNKNOWN, read_model, tokenizer_of
from model.importing.yaml_files import read_text
from model.progress import step
from model.tokenizer import as_plain_text, special_around

TOKENIZER, WORD_PIECES, BYTE_PAIRS, SENTENCE_PIECES, PIECES_OF_DEBERTA = (
    "tokenizer.json",
    "vocab.txt",
    ("vocab.json", "merges.txt"),
    "sentencepiece.bpe.model",
    "spm.model",
)
SPECIAL_TOKENS_MAP, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
"""Flags of an added token: how it is found in a text."""
GENERIC_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend")
"""Classes of transformers that use a tokenizer.json as it is."""
USUAL_CLASSES = {"camembert": "CamembertTokenizer", "mpnet": "MPNetTokenizer"}
"""Classes of directories that name none, by `model_type`, where their files are those of another class, too."""
NORMALIZER_SETTINGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Settings of BERT's normalizer, by their names in transformers."""
RARE_LETTER = "\U00013000"
"""A hieroglyph: a letter that hardly any vocabulary has."""
SEGMENT_INPUT = "token_type_ids"
UNLIMITED_FROM = 100_000
"""From here a model_max_length is none: transformers writes 10^30 for no limit."""


def read_tokenizer(directory: Path, vocab_size: int) -> Tokenizer:
    """Read the tokenizer of a directory, without truncation and padding.

    Args:
        vocab_size: number of tokens of the model.

    Raises:
        ModelImportError: files are missing or damaged, the tokenizer has too many tokens or no special ones around
            texts.
    """
    step("reading the tokenizer")
    if (directory / TOKENIZER).is_file():
        tokenizer = read_tokenizer_json(directory)
        if _class_of(directory) not in GENERIC_CLASSES:
            _apply_settings(tokenizer, read_json_if_there(directory, TOKENIZER_CONFIG))
    else:
        tokenizer = _build_tokenizer(directory)
    tokenizer = as_plain_text(tokenizer)
    last = max(tokenizer.get_vocab(with_added_tokens=True).values())
    if last >= vocab_size:
        raise ModelImportError(f"the tokenizer has a token with id {last}, but the model has only {vocab_size} tokens")
    with in_sentences(f"{TOKENIZER} cannot cut a text"):
        before, after = special_around(tokenizer)
        tokenizer.encode(RARE_LETTER)
    if not before or not after:
        raise ModelImportError("the tokenizer must put special tokens around a text, as encoders are trained with them")
    return tokenizer


def special_tokens(tokenizer: Tokenizer, config: Mapping[str, Any]) -> SpecialTokens:
    """Return the ids of special tokens; the one before a text, often [CLS], is `bos`, the one after it `eos`."""
    before, after = special_around(tokenizer)
    model = json.loads(tokenizer.to_str())["model"]
    unk = model.get("unk_id", tokenizer.token_to_id(model.get("unk_token") or "<unk>"))
    pad = config.get("pad_token_id") or 0
    return SpecialTokens(pad=pad, unk=pad if unk is None else unk, bos=before[0], eos=after[-1])


def pair_reading(directory: Path, tokenizer: Tokenizer, max_tokens: int) -> Literal["separated", "segments"] | None:
    """Tell how a model reads two texts at once (ClassifierConfig.pairs), from what its tokenizer puts around them.

    Args:
        max_tokens: the most tokens that the model reads; None is returned if they leave no room for two texts.
    """
    pair = tokenizer.encode("a", "a")
    if 0 not in pair.sequence_ids:
        return None
    separator = len(pair) - pair.sequence_ids[::-1].index(0)  # the place after the first text
    _, after = special_around(tokenizer)
    if pair.ids[separator] != after[-1] or max_tokens < len(pair):
        return None
    inputs = read_json_if_there(directory, TOKENIZER_CONFIG).get("model_input_names", [SEGMENT_INPUT])
    if not any(pair.type_ids) or SEGMENT_INPUT not in inputs:
        return "separated"
    return "segments" if pair.type_ids == [int(place > separator) for place in range(len(pair))] else None


def length_limits(directory: Path) -> list[int]:
    """Return the most tokens of a text, special ones included, if the tokenizer has a limit."""
    said = read_json_if_there(directory, TOKENIZER_CONFIG).get("model_max_length")
    return [int(said)] if isinstance(said, int | float) and 0 < said < UNLIMITED_FROM else []


def read_tokenizer_json(directory: Path) -> Tokenizer:
    """Read a tokenizer.json, without truncation and padding. Raises ModelImportError: the file is damaged."""
    try:
        tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
    except Exception as error:  # the library raises bare Exception
        raise ModelImportError(f"{TOKENIZER} is damaged: {error}") from error
    _refuse_unknown_special(tokenizer)
    if tokenizer.decoder is None:  # only needed to show tokens
        is_byte_level, is_word_piece = (isinstance(tokenizer.model, kind) for kind in (models.BPE, models.WordPiece))
        tokenizer.decoder = (
            decoders.WordPiece() if is_word_piece else decoders.ByteLevel() if is_byte_level else decoders.Metaspace()
        )
    return as_plain_text(tokenizer)


def _refuse_unknown_special(tokenizer: Tokenizer) -> None:
    """Refuse a template with special tokens that it does not define: the library would end the process."""
    state = json.loads(tokenizer.post_processor.__getstate__()) if tokenizer.post_processor else {}
    for part in state.get("processors", [state]):
        pieces = [*part.get("single", []), *part.get("pair", [])] if part.get("type") == "TemplateProcessing" else []
        named = {piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece}
        for name in sorted(named - part.get("special_tokens", {}).keys()):
            raise ModelImportError(f"{TOKENIZER}: the special token {name} of its `post_processor` is not defined")


def with_added_tokens(tokenizer: Tokenizer, vocabulary: Vocabulary, directory: Path, n_tokens: int) -> Vocabulary:
    """Return the ids of pieces with those of tokens that were added to the published ones; a text keeps them whole.

    Args:
        tokenizer: gets the added tokens that are not special.
        n_tokens: number of tokens of the model.

    Raises:
        ModelImportError: the model has no such token, or no token of the published ones.
    """
    piece, last = max(vocabulary.source.items(), key=lambda item: item[1])
    if last >= n_tokens:
        raise ModelImportError(f"the token {piece} has the id {last}, but the model has only {n_tokens} tokens")
    added = [(i, token) for i, token in _added_tokens(directory) if token.content not in vocabulary.source]
    for i, token in added:
        if i >= n_tokens:
            raise ModelImportError(
                f"the added token {token.content} has the id {i}, but the model has only {n_tokens} tokens"
            )
    tokenizer.add_tokens([AddedToken(token.content, normalized=False) for _, token in added if not token.special])
    ids = {token.content: i for i, token in added}
    return Vocabulary({**vocabulary.source, **ids}, {**vocabulary.target, **ids}, vocabulary.unk)


def _added_tokens(directory: Path) -> list[tuple[int, AddedToken]]:
    """Return the added tokens by id: from tokenizer_config.json, or else from added_tokens.json.

    Tokens that are not special are found in normalized text.
    """
    settings = read_json_if_there(directory, TOKENIZER_CONFIG)
    said = {**settings, **read_json_if_there(directory, SPECIAL_TOKENS_MAP)}
    listed = [said.get(key) or [] for key in ("additional_special_tokens", "extra_special_tokens")]
    special = [
        *(said[key] for key in said if key.endswith("_token")),
        *(token for tokens in listed for token in tokens),
    ]
    names = {token["content"] if isinstance(token, dict) else token for token in special}
    decoder = settings.get("added_tokens_decoder") or {
        i: {"content": token, "special": token in names, "normalized": token not in names}
        for token, i in read_json_if_there(directory, ADDED_TOKENS).items()
    }
    try:
        return sorted(((int(i), AddedToken(**token)) for i, token in decoder.items()), key=lambda pair: pair[0])
    except (TypeError, ValueError) as error:
        raise ModelImportError(f"the added tokens of the tokenizer are damaged: {error}") from error


def _class_of(directory: Path) -> str | None:
    config = read_json_if_there(directory, CONFIG)
    said = read_json_if_there(directory, TOKENIZER_CONFIG).get("tokenizer_class") or config.get("tokenizer_class")
    kind = said or USUAL_CLASSES.get(str(config.get("model_type")))
    return str(kind).removesuffix("Fast") if kind else None


def _apply_settings(tokenizer: Tokenizer, settings: Mapping[str, Any]) -> None:
    """Apply the settings of a tokenizer_config.json, which override those of tokenizer.json, as in transformers."""
    if isinstance(normalizer := tokenizer.normalizer, normalizers.BertNormalizer):
        for theirs, ours in NORMALIZER_SETTINGS.items():
            if theirs in settings:
                setattr(normalizer, ours, settings[theirs])
    if isinstance(splitter := tokenizer.pre_tokenizer, pre_tokenizers.ByteLevel) and "add_prefix_space" in settings:
        splitter.add_prefix_space = bool(settings["add_prefix_space"])


def _build_tokenizer(directory: Path) -> Tokenizer:
    """Build the tokenizer from the files of older directories, as its class in transformers does."""
    kind = _class_of(directory)
    layouts = [layout for layout in LAYOUTS if all((directory / name).is_file() for name in layout[0])]
    for _, classes, read in layouts:
        if kind is None or kind in classes:
            return read(directory)
    if layouts:
        files = " with ".join(layouts[0][0])
        raise ModelImportError(f"the tokenizer is a {kind}, which cannot be built from {files}: add its {TOKENIZER}")
    raise ModelImportError(
        f"no tokenizer: {TOKENIZER}, {WORD_PIECES}, {' with '.join(BYTE_PAIRS)}, {SENTENCE_PIECES} or "
        f"{PIECES_OF_DEBERTA} is needed"
    )


def _word_pieces_of_bert(directory: Path) -> Tokenizer:
    tokenizer, cls, sep = _word_pieces(directory, {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"})
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    return _with_added_tokens(tokenizer, directory)


def _word_pieces_of_mpnet(directory: Path) -> Tokenizer:
    tokenizer, cls, sep = _word_pieces(directory, {"pad": "<pad>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"})
    tokenizer.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=False)
    return _with_added_tokens(tokenizer, directory)


Special = tuple[str, int]
"""Name and id of a special token."""


def _word_pieces(directory: Path, usual: Mapping[str, str]) -> tuple[Tokenizer, Special, Special]:
    """Build a tokenizer from vocab.txt; return it and the special tokens before and after a text. `usual` has the usual
    names of special tokens by kind."""
    settings = read_json_if_there(directory, TOKENIZER_CONFIG)
    name = _names(directory)
    words = read_text(directory / WORD_PIECES).rstrip("\n").split("\n")
    ids = {word: i for i, word in enumerate(words)}
    unk, cls, sep = name("unk", "[UNK]"), name("cls", usual["cls"]), name("sep", usual["sep"])
    special = [name("pad", usual["pad"]), unk, cls, sep, name("mask", usual["mask"])]
    _refuse_without((unk, cls, sep), ids, WORD_PIECES)
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=unk, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens([token for token in special if token in ids])
    return tokenizer, (cls, ids[cls]), (sep, ids[sep])


def _byte_pairs(directory: Path) -> Tokenizer:
    space_before = bool(read_json_if_there(directory, TOKENIZER_CONFIG).get("add_prefix_space", False))
    name = _names(directory)
    cls, sep = name("cls", "<s>"), name("sep", "</s>")
    ids = read_ids(directory, BYTE_PAIRS[0], needed=(cls, sep))
    special = [cls, name("pad", "<pad>"), sep, name("unk", "<unk>")]
    try:
        merges = models.BPE.read_file(*(str(directory / file) for file in BYTE_PAIRS))[1]
        tokenizer = Tokenizer(models.BPE(ids, merges, unk_token=name("unk", "<unk>")))
    except Exception as error:  # the library raises bare Exception
        raise ModelImportError(f"{' or '.join(BYTE_PAIRS)} is damaged: {error}") from error
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space_before)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for token in special if token in ids])
    if (mask := name("mask", "<mask>")) in ids:
        tokenizer.add_special_tokens([AddedToken(mask, lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(
        (sep, ids[sep]), (cls, ids[cls]), trim_offsets=True, add_prefix_space=space_before
    )
    return _with_added_tokens(tokenizer, directory)


def _pieces_of_xlm_roberta(directory: Path) -> Tokenizer:
    """Build a tokenizer with the ids of fairseq: four special tokens, the pieces, and a mask."""
    name = _names(directory)
    special = [name("bos", "<s>"), name("pad", "<pad>"), name("eos", "</s>"), name("unk", "<unk>")]
    return _sentence_pieces(directory, SENTENCE_PIECES, special, n_left_out=3)


def mbart_pieces(directory: Path, codes: list[str]) -> Tokenizer:
    """Build the tokenizer of mBART-50: that of XLM-R with the tokens of languages before the mask. Raises
    ModelImportError: the file is missing or damaged."""
    if not (directory / SENTENCE_PIECES).is_file():
        raise ModelImportError(f"{TOKENIZER} or {SENTENCE_PIECES} is missing")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    return _sentence_pieces(directory, SENTENCE_PIECES, special, n_left_out=3, last=codes)


def _pieces_of_camembert(directory: Path) -> Tokenizer:
    """Build a tokenizer with ids of fairseq before the pieces, which have <s> and </s> again; only these are used."""
    name = _names(directory)
    special = ["<s>NOTUSED", name("pad", "<pad>"), "</s>NOTUSED", name("unk", "<unk>"), "<unk>NOTUSED"]
    return _sentence_pieces(directory, SENTENCE_PIECES, special, n_left_out=1)


def _pieces_of_deberta(directory: Path) -> Tokenizer:
    """Build a tokenizer with the ids of the pieces, among which are all special tokens but the mask."""
    names = (("cls", "[CLS]"), ("sep", "[SEP]"), ("mask", "[MASK]"))
    return _sentence_pieces(directory, PIECES_OF_DEBERTA, [], 0, names)


def _sentence_pieces(
    directory: Path,
    file: str,
    special: list[str],
    n_left_out: int,
    names: tuple[tuple[str, str], ...] = (("bos", "<s>"), ("eos", "</s>"), ("mask", "<mask>")),
    last: Sequence[str] = (),
) -> Tokenizer:
    """Build a tokenizer with special tokens, the pieces after the first ones, and a mask.

    Args:
        names: kind and usual name of the tokens before and after a text, and of the mask.
        last: special tokens between the pieces and the mask.
    """
    model = read_model(directory / file)
    tokenizer = tokenizer_of(model)
    if not isinstance(tokenizer.model, models.Unigram):
        raise ModelImportError(f"{file} is a BPE model; it must be a unigram model")
    pieces = [(piece.piece, float(piece.score)) for piece in model.pieces[n_left_out:]]
    bos, eos, mask = (_names(directory)(*name) for name in names)
    listed = [*((token, 0.0) for token in special), *pieces, *((token, 0.0) for token in last)]
    unk = 3 if special else next(i for i, piece in enumerate(model.pieces) if piece.type == UNKNOWN)
    tokenizer.model = models.Unigram([*listed, (mask, 0.0)], unk_id=unk)
    around = [(token, tokenizer.token_to_id(token)) for token in (bos, eos)]
    tokenizer.add_special_tokens([*special, *last, bos, eos, AddedToken(mask, lstrip=True, normalized=False)])
    template = f"{bos} $A {eos}", f"{bos} $A {eos} {eos} $B {eos}"
    tokenizer.post_processor = processors.TemplateProcessing(*template, special_tokens=around)
    return _with_added_tokens(tokenizer, directory)


Layout = tuple[tuple[str, ...], tuple[str, ...], Callable[[Path], Tokenizer]]
LAYOUTS: tuple[Layout, ...] = (
    ((WORD_PIECES,), ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), _word_pieces_of_bert),
    ((WORD_PIECES,), ("MPNetTokenizer",), _word_pieces_of_mpnet),
    (BYTE_PAIRS, ("RobertaTokenizer", "BartTokenizer"), _byte_pairs),
    ((SENTENCE_PIECES,), ("XLMRobertaTokenizer",), _pieces_of_xlm_roberta),
    ((SENTENCE_PIECES,), ("CamembertTokenizer",), _pieces_of_camembert),
    ((PIECES_OF_DEBERTA,), ("DebertaV2Tokenizer",), _pieces_of_deberta),
)
"""Files, the classes of transformers that read them, and the function here; the first if no class is named."""


def _names(directory: Path) -> Callable[[str, str], str]:
    """Return a function that names a special token by its kind, or else by its usual name."""
    said = {**read_json_if_there(directory, TOKENIZER_CONFIG), **read_json_if_there(directory, SPECIAL_TOKENS_MAP)}

    def name(kind: str, usual: str) -> str:
        token = said.get(f"{kind}_token") or usual
        return str(token["content"] if isinstance(token, dict) else token)

    return name


def _refuse_without(tokens: tuple[str, ...], ids: Mapping[str, int], file: str) -> None:
    for token in tokens:
        if token not in ids:
            raise ModelImportError(f"{file} has no {token}")


def _with_added_tokens(tokenizer: Tokenizer, directory: Path) -> Tokenizer:
    """Add the tokens that were added to the published ones, whose ids must come next."""
    for token_id, token in _added_tokens(directory):
        if token.special and tokenizer.token_to_id(token.content) == token_id:
            continue
        # Special tokens are found in a text, too: they were added for that.
        flags = {flag: getattr(token, flag) for flag in FLAGS}
        if not isinstance(tokenizer.normalizer, normalizers.BertNormalizer):
            flags["normalized"] = False  # others keep case, and strip spaces around what is left of a text
        tokenizer.add_tokens([AddedToken(token.content, **flags)])
        if tokenizer.token_to_id(token.content) != token_id:
            raise ModelImportError(f"the added token {token.content} has the id {token_id}, which is not the next one")
    return tokenizer
