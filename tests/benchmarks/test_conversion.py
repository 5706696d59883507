"""Needs the `bench` extra."""

from pathlib import Path

import pytest
import torch

from benchmarks.texts import vocabulary
from model.batching import pad
from model.checkpoint import load_checkpoint
from model.decoding.search import greedy_search
from model.networks.transformer import Transformer
from tests.export.tiny_checkpoints import write_checkpoint

pytest.importorskip("ctranslate2")


@pytest.mark.parametrize("kind", ["translation", "translation_post_norm"])
def test_ctranslate2_translates_as_the_reference_does(kind: str, tmp_path: Path) -> None:
    from benchmarks.conversion import convert
    from benchmarks.engines import Work
    from benchmarks.engines.ctranslate2 import CTranslate2Engine

    write_checkpoint(tmp_path / "checkpoint", kind)  # type: ignore[arg-type]
    checkpoint = load_checkpoint(tmp_path / "checkpoint")
    model = checkpoint.model
    assert isinstance(model, Transformer)
    model.is_target_token.fill_(True)  # the other engine knows of no token that a translation may not have
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for precision in ("int8", "fp32"):
        convert(model, vocabulary(checkpoint.tokenizer), tmp_path / precision, precision)

    sources = [[5, 6, 7, 3], [9, 3], [100, 42, 299, 17, 8, 3]]
    engine = CTranslate2Engine(tmp_path / "fp32", "float32", inter_threads=1, intra_threads=1)
    targets = engine.translate([Work(source, 20) for source in sources], beam_size=1, batch=2)

    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())
    assert targets == [h.ids for h in greedy_search(model, *pad(sources), 20)]
    assert len({len(target) for target in targets}) > 1
