"""A translation model, as requests see it; leg.py takes texts through it."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from service.base.artifact import Manifest
from service.base.errors import UnprocessableRequest
from service.engine.beam_search import Search
from service.schemas.requests import TranslateRequest
from service.segments.slots import Slot
from service.tasks.attention import Seen
from service.tasks.reading import NewSearch
from service.text.languages import Direction, Languages
from service.text.tokenization import Tokenizer
from service.workers.pool import Pool


@dataclass(frozen=True, eq=False)
class Translator:
    """One model, its engines, and what answers may have at most.

    Args:
        max_attention_weights: most numbers in the attention matrices of one answer.
        max_shown_tokens: most source tokens that one answer aligns.
    """

    manifest: Manifest
    provider: Literal["cpu", "cuda"]
    tokenizer: Tokenizer
    greedy: Pool[Search]
    beam: Pool[Search]
    attention_pool: Pool[Seen]
    max_attention_weights: int
    max_shown_tokens: int
    slots: tuple[Slot, ...] = ()

    @cached_property
    def languages(self) -> Languages:
        return Languages(self.manifest.sources, self.manifest.targets)

    def new_search(self, request: TranslateRequest, direction: Direction) -> NewSearch:
        """How every sentence of a request is searched.

        Raises:
            UnprocessableRequest: max_target_tokens is above the limit, there are more alternatives than the beam
                holds, or the format has not what is asked for.
        """
        if request.format != "text" and (request.attention or request.alignment or request.alternatives):
            raise UnprocessableRequest(
                f"attention, alignment and alternatives are of plain text, the format is {request.format}"
            )
        if request.tags is not None and request.format not in ("html", "xml"):
            raise UnprocessableRequest(f"tags are of html and xml, the format is {request.format}")
        decoding = self.manifest.decoding
        assert decoding is not None, "a translator's manifest has one"
        limit = self.manifest.limits.max_target_tokens
        max_target_tokens = request.max_target_tokens or limit
        if max_target_tokens > limit:
            raise UnprocessableRequest(
                f"max_target_tokens is {max_target_tokens}, {self.manifest.name} writes at most {limit}"
            )
        n_first = len(direction.target_prefix)
        if max_target_tokens <= n_first:
            raise UnprocessableRequest(
                f"max_target_tokens is {max_target_tokens}, and {n_first} name the target's language"
            )
        beam_size = request.beam_size or decoding.beam_size
        if request.alternatives >= beam_size:
            raise UnprocessableRequest(
                f"alternatives is {request.alternatives}, a beam of {beam_size} has {beam_size - 1}"
            )
        length_penalty = decoding.length_penalty if request.length_penalty is None else request.length_penalty
        beam_threshold = decoding.beam_threshold if request.beam_threshold is None else request.beam_threshold
        return partial(
            Search,
            max_target_tokens,
            beam_size,
            length_penalty,
            1 + request.alternatives,
            beam_threshold,
            decoding.stop,
            direction.target_prefix,
        )
