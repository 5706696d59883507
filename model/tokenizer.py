"""Byte-level BPE tokenizers: lossless for any Unicode text, with character offsets; case is kept by default.

Every byte has a token, so no text becomes <unk> or is lost (Radford et al. 2019, section 2.2). A space is put before
the text, so that a word has the same token at the start of a sentence and inside it, and is removed by decoding.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Encoding, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from manifest.vocabulary import Vocabulary

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)
"""Special tokens; their ids are their places in this tuple."""
PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(len(SPECIAL_TOKENS))

_WORDS = Regex(r" ?\p{L}[\p{L}\p{M}]*['’]?| ?\p{N}|\s+(?=\s)| ?[^\s\p{L}\p{N}]+|\s+")  # noqa: RUF001 (the typographic apostrophe is meant)
"""Words with their leading space and elision (" l'", "homme"), single digits, punctuation, white space."""
_INVISIBLE = Regex(
    r"[\x00-\x08\x0e-\x1b\x7f\x{ad}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}\x{2066}-\x{2069}"
    r"\x{fe00}-\x{fe0f}\x{feff}\x{e0100}-\x{e01ef}]"
)
"""Control characters, soft hyphens, zero-width spaces, marks of direction and variants."""
_ONE_FORM = (
    normalizers.Replace(_INVISIBLE, ""),
    normalizers.Replace(Regex(r"(?<=[аеиоуыэюяАЕИОУЫЭЮЯ])[\x{300}\x{301}]"), ""),
    normalizers.Replace(Regex(r"[`\x{b4}\x{2bc}\x{2018}-\x{201b}\x{2032}\x{2039}\x{203a}]"), "'"),
    normalizers.Replace(Regex(r"[«»\x{201c}-\x{201f}\x{2033}]"), '"'),
    normalizers.Replace(Regex(r"[\x{2010}-\x{2015}\x{2212}]"), "-"),
    normalizers.NFKC(),
    normalizers.Lowercase(),
)
"""Normalizers for one form: marks as on a keyboard, one of several Unicode forms, small letters."""


def ids_of(encoding: Encoding, vocabulary: Vocabulary | None) -> list[int]:
    """Return the ids that a model reads of an encoded text."""
    if vocabulary is None:
        ids: list[int] = encoding.ids
        return ids
    return vocabulary.ids(encoding.tokens)


def train_tokenizer(texts: Iterable[str], vocab_size: int, end_of_sequence: bool, one_form: bool = False) -> Tokenizer:
    """Learn a vocabulary of `vocab_size` tokens from texts.

    Args:
        end_of_sequence: append </s> to every encoded text, as in a translation source.
        one_form: ignore differences of form (`in_one_form`).
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_WORDS, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = in_one_form(tokenizer) if one_form else tokenizer
    tokenizer.train_from_iterator(texts, trainer)
    if end_of_sequence:
        end_with(tokenizer, EOS, EOS_ID)
    return as_plain_text(tokenizer)


def in_one_form(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that ignores differences of form: capitals, full-width forms, typographic marks."""
    one_form = Tokenizer.from_str(tokenizer.to_str())
    first_normalizers = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
    one_form.normalizer = normalizers.Sequence([*_ONE_FORM, *first_normalizers])
    return as_plain_text(one_form)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer.json. Raises FileNotFoundError: the file is missing."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such tokenizer file")
    return as_plain_text(Tokenizer.from_file(str(path)))


def as_plain_text(tokenizer: Tokenizer) -> Tokenizer:
    """Make a tokenizer read "</s>" in a text as four characters, never as a command, and all texts whole.

    Files also store settings of truncation and padding, which are switched off.
    """
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def end_with(tokenizer: Tokenizer, token: str, token_id: int) -> None:
    """Append a special token, and no other, to every encoded text."""
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {token}", special_tokens=[(token, token_id)])


def with_dropout(tokenizer: Tokenizer, probability: float) -> Tokenizer:
    """Return a copy that leaves out this share of merges in each text (Provilkov et al. 2020).

    The library draws them without a seed.
    """
    dropping = Tokenizer.from_str(tokenizer.to_str())
    dropping.model.dropout = probability
    return as_plain_text(dropping)


def special_around(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer puts before and after a text."""
    alone, whole = (tokenizer.encode("a", add_special_tokens=with_them).ids for with_them in (False, True))
    n_before = next(n for n in range(len(whole)) if whole[n : n + len(alone)] == alone)
    return whole[:n_before], whole[n_before + len(alone) :]


def n_special_around(tokenizer: Tokenizer) -> tuple[int, int]:
    """Return the numbers of special tokens that a tokenizer puts before and after a text."""
    before, after = special_around(tokenizer)
    return len(before), len(after)


def windows_of(ids: list[int], limit: int, around: tuple[list[int], list[int]]) -> list[list[int]]:
    """Split a text into windows of at most `limit` tokens that do not overlap, each with special tokens around it."""
    before, after = around
    text, size = ids[len(before) : len(ids) - len(after)], limit - len(before) - len(after)
    return [[*before, *text[start : start + size], *after] for start in range(0, len(text), size)]


def byte_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of single bytes, which can spell every text."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary[character] for character in pre_tokenizers.ByteLevel.alphabet()]


def cut_source(ids: list[int], limit: int) -> list[int]:
    """Cut a source longer than `limit` tokens to its first ones and its </s>."""
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
