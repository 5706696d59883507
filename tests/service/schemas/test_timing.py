from service.base.contract import Answer
from service.schemas.timing import Timing


def test_all_work_of_a_request_for_its_engine_is_counted() -> None:
    timing = Timing()
    for _ in range(2):
        timing.ran(Answer([], queue_s=0.5, encode_s=1.0, decode_s=2.0))
    assert timing == Timing(queue_s=1.0, encode_s=2.0, decode_s=4.0)
