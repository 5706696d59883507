"""PyTorch in eager mode: the naive baseline, batch after batch in the order of the sentences."""

from pathlib import Path

import torch

from benchmarks.engines import Work
from model.batching import pad
from model.checkpoint import load_checkpoint
from model.decoding.search import greedy_search
from model.networks.transformer import Transformer


class PyTorchEngine:
    """The reference decoder of `model/`, with cached keys and values, in float32.

    Args:
        checkpoint: checkpoint directory.
        threads: threads of one operator.
    """

    def __init__(self, checkpoint: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        model = load_checkpoint(checkpoint).model
        assert isinstance(model, Transformer)
        self._model = model

    def translate(self, works: list[Work], beam_size: int, batch: int) -> list[list[int]]:
        """Translate batches, each until its last sentence ends."""
        if beam_size != 1:
            raise NotImplementedError("the PyTorch baseline supports only greedy search")
        targets: list[list[int]] = []
        for start in range(0, len(works), batch):
            part = works[start : start + batch]
            source, lengths = pad([work.source_ids for work in part])
            limit = max(work.max_target_tokens for work in part)
            hypotheses = greedy_search(self._model, source, lengths, limit)
            targets += [h.ids[: work.max_target_tokens] for h, work in zip(hypotheses, part, strict=True)]
        return targets

    def close(self) -> None:
        pass
