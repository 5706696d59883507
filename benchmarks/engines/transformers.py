"""`generate` of transformers, in eager mode and float32: batches of sources of similar length, one after another."""

from pathlib import Path
from typing import Any

import torch
from transformers import MarianMTModel

from benchmarks.engines import Work
from model.batching import pad


class TransformersEngine:
    """A MarianMT model.

    Args:
        directory: directory written by `save_pretrained`.
        threads: threads of one operator.
    """

    def __init__(self, directory: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        self._model: Any = MarianMTModel.from_pretrained(directory)
        settings = self._model.generation_config
        settings.max_length = settings.forced_eos_token_id = None  # each work has a limit of its own
        self._start, self._end = self._model.config.decoder_start_token_id, self._model.config.eos_token_id

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """Translate batches with one limit each, until the last sentence of each ends."""
        order = sorted(range(len(works)), key=lambda i: (works[i].max_target_tokens, len(works[i].source_ids)))
        targets: dict[int, list[int]] = {}
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            targets |= dict(zip(chosen, self._translate([works[i] for i in chosen], beam_size), strict=True))
        return [targets[i] for i in range(len(works))]

    def close(self) -> None:
        pass

    @torch.inference_mode()
    def _translate(self, works: list[Work], beam_size: int) -> list[list[int]]:
        source, lengths = pad([work.source_ids for work in works])  # padding is masked
        limits = [work.max_target_tokens for work in works]
        rows = self._model.generate(
            source,
            attention_mask=torch.arange(source.shape[1]) < lengths.unsqueeze(1),
            num_beams=beam_size,
            max_new_tokens=max(limits),
            min_new_tokens=max(limits) if works[0].fixed_length else None,
        ).tolist()
        translations = []
        for ids, limit in zip(rows, limits, strict=True):
            written = ids[1 : limit + 1]
            translations.append(written[: written.index(self._end)] if self._end in written else written)
        return translations
