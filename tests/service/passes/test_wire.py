"""Messages between processes are found in whatever pieces a socket receives them."""

from dataclasses import fields

import pytest

from service.engine.scheduler import Sequence
from service.engine.search import Hypothesis, Search
from service.passes.wire import Unpacker, fields_of, output_of, packed, plain

CONTENTS: list[tuple[object, ...]] = [("submit", 1, [5, 6], 2.5), (None,), ("x" * 1000, {"a": b"\0" * 300})]


@pytest.mark.parametrize("piece", [1, 7, 8, 9, 100, 10_000])
def test_messages_are_found_in_pieces_of_any_size(piece: int) -> None:
    sent = b"".join(packed(*content) for content in CONTENTS)
    unpacker = Unpacker()
    received = [
        message for start in range(0, len(sent), piece) for message in unpacker.feed(sent[start : start + piece])
    ]
    assert received == CONTENTS


def test_an_unread_message_is_there_the_next_time() -> None:
    unpacker = Unpacker()
    for message in unpacker.feed(b"".join(packed(*content) for content in CONTENTS)):
        assert message == CONTENTS[0]
        break
    assert list(unpacker.feed(b"")) == CONTENTS[1:]


def test_a_worker_makes_the_sequence_that_a_server_has() -> None:
    sent = Sequence([5, 6], "output", n_rows=4, n_target=3, background=True, accepted=True, client="a")
    source_ids, *others = fields_of(sent)
    made = Sequence(source_ids, output_of(plain(sent.output)), *others)
    assert vars(made) == vars(sent)
    differing = {field.name for field in fields(Sequence) if getattr(sent, field.name) != field.default}
    assert differing == {field.name for field in fields(Sequence)} - {"finished", "failure", "turn", "state"}


def test_a_search_is_sent_without_classes() -> None:
    """pickle would find each by its name, which takes longer than all the rest."""
    search = Search(9, 4, finished=[Hypothesis([5, 1], -1.0, "eos")])
    message = packed(plain(search))
    assert b"service" not in message
    assert [output_of(*content) for content in Unpacker().feed(message)] == [search]
