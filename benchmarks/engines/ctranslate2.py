"""CTranslate2 as in its own benchmark: the whole test set in one call, which it sorts and cuts into batches."""

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Literal

from benchmarks.engines import Work

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
import ctranslate2  # noqa: E402  (it would import torch where there is one, which would count as its memory)


class CTranslate2Engine:
    """A `Translator` of CTranslate2.

    Args:
        directory: directory of a CTranslate2 model.
        compute_type: "int8" or "float32", or "float16" on a GPU.
        inter_threads: batches in parallel.
        intra_threads: threads of one batch.
        share: whether parallel batches share the sentences in flight, or have that many each, which favours them.
        batch_type: unit of the batch size; "tokens" for as many as that number of sentences has on average.
    """

    def __init__(
        self,
        directory: Path,
        compute_type: str,
        inter_threads: int,
        intra_threads: int,
        share: bool = True,
        batch_type: Literal["examples", "tokens"] = "examples",
        device: Literal["cpu", "cuda"] = "cpu",
    ) -> None:
        self._translator = ctranslate2.Translator(
            str(directory), device, compute_type=compute_type, inter_threads=inter_threads, intra_threads=intra_threads
        )
        self._tokens: list[str] = json.loads((directory / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        self._shares = inter_threads if share else 1
        self._batch_type = batch_type

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """Translate works in batches of similar length; a batch of one is awaited before the next."""
        if batch == 1:
            return [self._targets(self._submit([work], beam_size, 1))[0] for work in works]
        size = max(1, batch // self._shares)
        if self._batch_type == "tokens":
            size *= sum(len(work.source_ids) for work in works) // len(works)
        # A call has one limit. Works with a free end all have the same, so they are one call.
        order = sorted(range(len(works)), key=lambda i: works[i].max_target_tokens)
        results: list[ctranslate2.AsyncTranslationResult] = []
        for _, indices in groupby(order, key=lambda i: works[i].max_target_tokens):
            results += self._submit([works[i] for i in indices], beam_size, size)
        targets = dict(zip(order, self._targets(results), strict=True))
        return [targets[i] for i in range(len(works))]

    def close(self) -> None:
        self._translator.unload_model()

    def _submit(self, works: list[Work], beam_size: int, size: int) -> list[ctranslate2.AsyncTranslationResult]:
        limit = works[0].max_target_tokens
        results: list[ctranslate2.AsyncTranslationResult] = self._translator.translate_batch(
            [[self._tokens[i] for i in work.source_ids] for work in works],
            beam_size=beam_size,
            max_batch_size=size,
            batch_type=self._batch_type,
            max_input_length=0,  # otherwise it cuts sources
            max_decoding_length=limit,
            min_decoding_length=limit if works[0].fixed_length else 1,
            asynchronous=True,
        )
        return results

    def _targets(self, results: list[ctranslate2.AsyncTranslationResult]) -> list[list[int]]:
        return [[self._ids[token] for token in result.result().hypotheses[0]] for result in results]
