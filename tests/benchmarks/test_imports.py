from pathlib import Path

from benchmarks.engines import Work
from benchmarks.engines.transformers import TransformersEngine
from tests.model.importing.marian_checkpoints import write_marian


def test_transformers_gives_the_same_alone_and_in_batches_and_in_order(tmp_path: Path) -> None:
    write_marian(tmp_path)
    engine = TransformersEngine(tmp_path, threads=1)
    works = [Work([20 + 7 * i, *range(9, 9 + i), 0], 3 + i % 4, fixed_length=True) for i in range(6)]

    alone = [engine.translate([work], beam_size=2, batch=1)[0] for work in works]
    assert [len(target) for target in alone] == [work.max_target_tokens for work in works]
    assert engine.translate(works, beam_size=2, batch=4) == alone
