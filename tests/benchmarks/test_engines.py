import threading
from pathlib import Path

import pytest

from benchmarks.decoder import candidates
from benchmarks.engines import ATTEND, ATTEND_EXACT, Work
from benchmarks.engines.attend import AttendEngine
from service.base.errors import ArtifactRefused
from service.base.settings import Settings
from tests.service.tiny_artifacts import TinyTranslator

pytestmark = pytest.mark.process


@pytest.mark.parametrize("batch", [2, 5, 9])
def test_every_work_is_translated_once_and_in_order(batch: int, tmp_path: Path) -> None:
    tiny = TinyTranslator(seed=3)
    tiny.save(tmp_path / "tiny-en-fr")
    works = [Work([4 + i, 9, 3], 12) for i in range(7)]
    engine = AttendEngine(tmp_path, threads=1, workers=1)
    try:
        alone = [engine.translate([work], beam_size=2, batch=1)[0] for work in works]
        assert engine.translate(works, beam_size=2, batch=batch) == alone
        assert len({tuple(target) for target in alone}) > 1
    finally:
        engine.close()


def test_an_engine_that_cannot_start_leaves_no_event_loop_behind(tmp_path: Path) -> None:
    """An exception that is never caught keeps the engine alive, and the process would not end."""
    before = threading.enumerate()
    with pytest.raises(ArtifactRefused) as uncaught:
        AttendEngine(tmp_path / "nowhere", threads=1, workers=1)
    assert {*threading.enumerate()} <= {*before}  # one of these may just have ended
    del uncaught


def test_the_settings_that_are_tried_are_settings_of_the_service() -> None:
    tried = [candidate.settings for candidate in candidates(cores=2) if candidate.engine in (ATTEND, ATTEND_EXACT)]
    assert all(Settings(threads=one["threads"], workers=one["workers"]) for one in tried)
