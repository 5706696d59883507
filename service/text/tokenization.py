"""Convert text to token ids and back."""

import asyncio
import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import tokenizers

from manifest.vocabulary import Vocabulary
from service.base.errors import ArtifactRefused, DeadlinePassed, EmptyText, LimitExceeded
from service.schemas.requests import CutEnd
from service.text.pairs import Pair, PairTemplate
from service.text.sentences import halves
from service.text.spans import NO_EDITS, Edits, Span
from service.text.tokens import REPLACEMENT, Token, fewest_pieces, locate_pieces, piece_reader, place_token

Item = TypeVar("Item")
Result = TypeVar("Result")
_THREADS = ThreadPoolExecutor(thread_name_prefix="texts")
"""Threads only for texts: stopping the workers must not wait for texts."""
WINDOWS_1252 = {i: bytes([i]).decode("cp1252") for i in range(0x80, 0xA0) if i not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
"""Characters that models may write because training texts were decoded wrongly."""
OTHER_SPACE = re.compile(r"[^\S ]")
"""White space other than a space, such as a no-break space: models read it as a space."""
OPERATORS = frozenset("<>|^\\")
"""ASCII signs that a vocabulary may have only as bytes."""
MAX_CHARACTERS_WITHOUT_THREAD = 500
"""This many characters take 65 us to split and tokenize, as long as the way to a thread and back."""


class Tokenizer:
    """The tokenizer of one artifact. Several threads may use it at the same time.

    Args:
        content: the content of the file, if it has been read.
        vocabulary: the ids of the model, if they differ from the tokenizer's.
        special: ids that are not part of a text, beside the tokenizer's own special tokens.
        reads_white_space: whether the tokenizer gets tabs, line breaks and no-break spaces, or spaces instead.

    Attributes:
        piece: returns the UTF-8 of a target token, or the name of a special one. Those of 256,000 tokens would take
            48 MB, so they are made when they are asked for.
        vocabulary_size: number of tokens of the target vocabulary.
        n_around: the numbers of special tokens before and after a text.
        can_write: returns whether more than bytes of the vocabulary can write a text, normalized or in small letters.
        name: returns the name of a prefix token in the vocabulary.

    Raises:
        ArtifactRefused: the file is not a tokenizer of a supported kind.
    """

    def __init__(
        self,
        path: Path,
        content: bytes | None = None,
        vocabulary: Vocabulary | None = None,
        special: Collection[int] = (),
        reads_white_space: bool = False,
    ) -> None:
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content or path.read_bytes())
        except Exception as error:  # the library raises bare Exception
            raise ArtifactRefused(f"{path}: is not a tokenizer: {error}") from error
        # "</s>" in a user's text is four characters, not a command. The file does not store this switch, but does store
        # the tokenizer's truncation and padding.
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._vocabulary = vocabulary
        self._reads_white_space = reads_white_space
        decoder = self._tokenizer.decoder
        try:
            self._piece_of = piece_reader(decoder.decode if decoder else " ".join)
            self._named = {*special, *(self._tokenizer.get_added_tokens_decoder() if vocabulary is None else ())}
            target = self.target_vocabulary()
            written = [self._piece_of(token) for token, token_id in target.items() if token_id not in self._named]
        except (KeyError, ValueError) as error:
            raise ArtifactRefused(f"{path}: {error}") from None
        self.vocabulary_size = len({*target.values()})
        self.piece = lru_cache(maxsize=10_000)(self._piece)
        is_special = self._tokenizer.encode("a").special_tokens_mask
        self.n_around = is_special.index(0), is_special[::-1].index(0)
        is_byte_level = self._piece_of("Ġ") == b" "
        merged = (piece for piece in written if len(piece) > 1 or not is_byte_level)
        self._characters = frozenset("".join(piece.decode(errors="ignore") for piece in merged))
        """The characters that the vocabulary has in more than single bytes."""
        self.can_write = lru_cache(maxsize=10_000)(self._can_write)
        self.name = lru_cache(maxsize=1_000)(self._name)

    def encode(self, texts: list[str], prefix: Sequence[int] = ()) -> list[list[int]]:
        """Return the token ids of each text, with a prefix and the special tokens around it."""
        texts = [self._with_plain_spaces(text) for text in texts]
        # The fast method returns ids without pieces.
        encode = self._tokenizer.encode_batch_fast if self._vocabulary is None else self._tokenizer.encode_batch
        return [[*prefix, *self._ids(encoding)] for encoding in encode(texts)]

    def target_ids(self, text: str) -> list[int] | None:
        """Return the target tokens of a text, without special tokens around it; None if a character has no token."""
        if not text:
            return []
        if self._vocabulary is not None:
            return fewest_pieces(f" {self._normalized(text)}".encode(), self._written)
        encoding = self._tokenizer.encode(self._with_plain_spaces(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids if all(isinstance(self.piece(token_id), bytes) for token_id in ids) else None

    @cached_property
    def _written(self) -> dict[bytes, int]:
        pieces = ((self._piece(token_id), token_id) for token_id in {*self.target_vocabulary().values()})
        return {piece: token_id for piece, token_id in pieces if isinstance(piece, bytes) and piece}

    def _normalized(self, text: str) -> str:
        text, normalizer = self._with_plain_spaces(text), self._tokenizer.normalizer
        return str(normalizer.normalize_str(text)) if normalizer else text

    def n_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens around it."""
        return len(self.encode([text])[0]) - sum(self.n_around)

    def own_ids(self, text: str, field: str) -> list[int]:
        """Return the tokens of a text without special tokens around it, to join it with another text. Raises EmptyText:
        the text of the field has no tokens."""
        [encoding] = self._tokenizer.encode_batch_fast([self._with_plain_spaces(text)], add_special_tokens=False)
        if not (ids := self._ids(encoding)):
            raise EmptyText(f"A text of `{field}` has no tokens to read: {text[:20]!r}")
        return ids

    def join_pair(self, first: list[int], second: list[int], max_tokens: int, cut_end: CutEnd) -> Pair:
        """Return two texts as one sequence of at most `max_tokens` tokens."""
        return self._pair_template.join(first, second, max_tokens, cut_end)

    @cached_property
    def _pair_template(self) -> PairTemplate:
        return PairTemplate.of(self._tokenizer)

    def prefix(self, text: str) -> list[int]:
        """Return the token ids of a text that comes before others, without special tokens around it."""
        n_before, n_after = self.n_around
        token_ids = self.encode([text])[0]
        return token_ids[n_before : len(token_ids) - n_after]

    def _with_plain_spaces(self, text: str) -> str:
        return text if self._reads_white_space else OTHER_SPACE.sub(" ", text)

    def _ids(self, encoding: tokenizers.Encoding) -> list[int]:
        """Return the model's ids. Text unknown to the tokenizer is one piece, which the vocabulary may have."""
        if self._vocabulary is None:
            ids: list[int] = encoding.ids
            return ids
        return self._vocabulary.ids(encoding.tokens)

    def target_vocabulary(self) -> Mapping[str, int]:
        """Return the ids of all tokens of targets, by their names in the vocabulary."""
        return self._vocabulary.target if self._vocabulary else self._tokenizer.get_vocab()

    def _piece(self, token_id: int) -> bytes | str:
        """A model may write ids for which there is no token: they are special tokens without a name."""
        vocabulary = self._vocabulary
        token = vocabulary.pieces["target"].get(token_id) if vocabulary else self._tokenizer.id_to_token(token_id)
        return token or "" if token is None or token_id in self._named else self._piece_of(token)

    def _can_write(self, text: str) -> bool:
        normalizer = self._tokenizer.normalizer
        signs = "".join(character for character in text if _is_sign(character))
        read = normalizer.normalize_str(text).strip() if normalizer else text
        return OPERATORS.isdisjoint({*text} - self._characters) and all(
            character.isascii() or not self._characters.isdisjoint((character, character.lower()))
            for character in signs + read
        )

    def has(self, character: str) -> bool:
        """Return whether more than bytes of the vocabulary can write a character as it is."""
        return character in self._characters

    def encode_spans(
        self, text: str, spans: list[Span], limit: int, prefix: Sequence[int] = ()
    ) -> list[tuple[Span, list[int]]]:
        """Return the token ids of parts of a text. Parts of more than `limit` tokens are halved repeatedly. Raises
        LimitExceeded: a single character has more tokens."""
        pieces = []
        for span, token_ids in zip(spans, self.encode([span.of(text) for span in spans], prefix), strict=True):
            if len(token_ids) <= limit:
                pieces.append((span, token_ids))
            elif (parts := halves(text, span)) is not None:
                pieces += self.encode_spans(text, list(parts), limit, prefix)
            else:
                raise LimitExceeded(f"One character has {len(token_ids)} tokens; the model reads at most {limit}")
        return pieces

    def decode(self, token_ids: list[list[int]]) -> list[str]:
        """Return the text of each sequence, without special tokens and invalid UTF-8."""
        if self._vocabulary is None:
            texts = self._tokenizer.decode_batch(token_ids, skip_special_tokens=True)
        else:
            texts = [locate_pieces([self.piece(i) for i in ids])[0].rstrip() for ids in token_ids]
        return [text.translate(WINDOWS_1252).replace(REPLACEMENT, "") for text in texts]

    def source_tokens(self, text: str, prefix: Sequence[int] = ()) -> list[Token]:
        """Return the tokens of a source, with the characters that they cover. Tokens of a prefix cover nothing."""
        encoding = self._tokenizer.encode(self._with_plain_spaces(text))
        offsets, of_special = encoding.offsets, encoding.special_tokens_mask
        starts = [*(start for start, _ in offsets[1:]), len(text)]
        tokens = [Token(self.name(i), 0, 0) for i in prefix]
        n_before, _ = self.n_around
        for n, (token, (start, end), following) in enumerate(zip(encoding.tokens, offsets, starts, strict=True)):
            if of_special[n]:
                place = 0 if n < n_before else len(text)
                tokens.append(Token(token, place, place))
                continue
            while end < following and unicodedata.combining(text[end]):  # an accent that is read with its letter
                end += 1
            tokens.append(place_token(self._piece_of(token), Span(start, end), text))
        return tokens

    def _name(self, token_id: int) -> str:
        if self._vocabulary is None:
            return str(self._tokenizer.id_to_token(token_id))
        return next(piece for piece, i in self._vocabulary.source.items() if i == token_id)

    def target_tokens(self, token_ids: list[int], edits: Edits = NO_EDITS) -> list[Token]:
        """Return the tokens of a target, each with the characters that it covers in the decoded text, or in what edits
        made of that."""
        tokens = locate_pieces([self.piece(token_id) for token_id in token_ids])[1]
        return [token.of(edits.after(token.span)) for token in tokens] if edits.old else tokens


def _is_sign(character: str) -> bool:
    """A sign must not be normalized: m² is not "m2", but a wide "=" is "="."""
    is_wide = unicodedata.decomposition(character).startswith(("<wide>", "<narrow>"))
    return unicodedata.category(character)[0] in "NS" and not is_wide


def refuse_white_space(texts: list[str], verb: str, field: str | None = None) -> None:
    """Raise EmptyText if a text has only white space. `field` names the texts if there are several fields."""
    for i, text in enumerate(texts):
        if text.isspace():
            all_texts = f"`{field}`" if field else len(texts)
            which = "The text" if field is None and len(texts) == 1 else f"Text {i} of {all_texts}"
            raise EmptyText(f"{which} is white space only; there is nothing to {verb}")


async def run_on_each(
    items: Iterable[Item], work: Callable[[Item], Result], n_characters: int, timeout_s: float
) -> list[Result]:
    """Return the result of work on each item, for many characters in a thread, beside the event loop (the tokenizer
    releases Python's lock). It stops if the request was cancelled. Raises DeadlinePassed after `timeout_s`."""
    if n_characters <= MAX_CHARACTERS_WITHOUT_THREAD:
        return [work(item) for item in items]
    given_up = threading.Event()

    def work_on_all() -> list[Result]:
        return [work(item) for item in items if not given_up.is_set()]

    try:
        async with asyncio.timeout(timeout_s):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, work_on_all)
    except TimeoutError:
        raise DeadlinePassed("The deadline passed while texts were tokenized or put together") from None
    finally:
        given_up.set()
