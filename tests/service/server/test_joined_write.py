"""An answer's head leaves together with the beginning of its body, in one write."""

import asyncio
from unittest.mock import Mock

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.server.joined_write import MAX_JOINED_BYTES, JoinedWrite

HEAD, CONTINUE = b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"


class Answer:
    """An answer that is written part by part."""

    def __init__(self) -> None:
        self.cycle, self._transport = Mock(RequestResponseCycle), Mock(asyncio.Transport)
        self.cycle.response_started = False
        self.joined = JoinedWrite(self.cycle, self._transport)

    def write(self, *parts: bytes) -> None:
        self.cycle.response_started = True
        for part in parts:
            self.joined.write(part)

    @property
    def calls(self) -> list[object]:
        """What the transport got: the written bytes, and the names of other methods."""
        return [call.args[0] if call[0] == "write" else call[0] for call in self._transport.method_calls]


@pytest.fixture
def answer() -> Answer:
    return Answer()


def test_head_and_body_are_one_write(answer: Answer) -> None:
    answer.write(HEAD, b"body")
    assert answer.calls == [HEAD + b"body"]


def test_the_pieces_of_a_stream_are_sent_as_they_come(answer: Answer) -> None:
    answer.write(HEAD, b"first", b"second")
    assert answer.calls == [HEAD + b"first", b"second"]


def test_a_head_without_a_body_is_sent_when_the_answer_ends(answer: Answer) -> None:
    answer.write(HEAD)
    assert answer.calls == []
    answer.joined.flush()
    answer.joined.flush()
    assert answer.calls == [HEAD]


def test_a_head_is_sent_before_the_connection_is_closed(answer: Answer) -> None:
    answer.write(HEAD)
    answer.joined.close()
    assert answer.calls == [HEAD, "close"]


def test_a_client_that_waits_to_be_told_to_continue_is_told_immediately(answer: Answer) -> None:
    answer.joined.write(CONTINUE)
    assert answer.calls == [CONTINUE]
    answer.write(HEAD, b"body")
    assert answer.calls == [CONTINUE, HEAD + b"body"]


def test_a_long_body_is_not_copied(answer: Answer) -> None:
    body = bytes(MAX_JOINED_BYTES + 1)
    answer.write(HEAD, body)
    assert answer.calls == [HEAD, body]
    assert answer._transport.write.call_args.args[0] is body
