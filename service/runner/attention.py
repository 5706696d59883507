"""The graph that returns what was attended to, on ONNX Runtime."""

import numpy as np
from numpy.typing import NDArray

from service.artifact import Artifact
from service.contract import AttentionKinds, Matrices
from service.runner.arrays import padded
from service.runner.provider import Provider


class AttentionRunner:
    """The attention graph of one artifact: a translator's, or a classifier's, which has no targets."""

    def __init__(self, artifact: Artifact, provider: Provider) -> None:
        self._pad = artifact.manifest.special_tokens.pad
        self._of_classifier = artifact.manifest.task == "classification"
        self._session = provider.session(artifact.path("attention.onnx"))

    def attend(self, sources: list[list[int]], targets: list[list[int]], kinds: AttentionKinds) -> list[Matrices]:
        """What each source and target attended to, by kind: (layers, heads, rows, columns), without padding.

        Args:
            targets: what the decoder reads, as long as what it writes; as many as sources, and empty for a classifier.
        """
        input_ids, source_lengths = padded(sources, self._pad)  # (B, S), (B)
        feeds = {"input_ids": input_ids}
        if self._of_classifier:
            feeds["lengths"] = source_lengths
        else:
            feeds["source_lengths"] = source_lengths
            feeds["target_ids"], _ = padded(targets, self._pad)
        names = sorted(kinds)
        found = dict(zip(names, self._session.run(names, feeds), strict=True))
        sizes = [(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        return [
            {kind: _without_padding(found[kind][row], kind, *size) for kind in names} for row, size in enumerate(sizes)
        ]


def _without_padding(matrices: NDArray[np.float32], kind: str, n_source: int, n_target: int) -> NDArray[np.float32]:
    rows = n_source if kind == "encoder" else n_target
    columns = n_target if kind == "decoder" else n_source
    return matrices[:, :, :rows, :columns]
