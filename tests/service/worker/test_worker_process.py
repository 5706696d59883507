"""A worker's side of its connections to servers."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from service.base.contract import Answer, EngineState, ForwardPass
from service.base.counts import EngineCounts
from service.base.errors import QueueFull
from service.engine.loop import Loop
from service.passes.wire import READ_BYTES, Unpacker
from service.worker.worker_process import SharedStatus, _SocketServer

STATES = {"m/greedy": EngineState(None, 0, 0, 8)}


class IdleLoop:
    full: frozenset[str] = frozenset()
    """Engines that are full."""

    def states(self) -> dict[str, EngineState]:
        return STATES

    def is_full(self, engine: str) -> bool:
        return engine in self.full


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_SocketServer]:
    monkeypatch.setattr("service.worker.worker_process.REPORT_INTERVAL_S", 10)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "0.sock"))
        listener.listen()
        lifeline, life = os.pipe()
        server = _SocketServer(0, SharedStatus(1, ["m"]), listener, lifeline)
        server.loop = cast(Loop, IdleLoop())
        yield server
        for connection in server._connections.values():
            connection.socket.close()
        os.close(lifeline)
        os.close(life)


class Client:
    def __init__(self, server: _SocketServer, path: Path) -> None:
        self._server = server
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path / "0.sock"))
        self._socket.setblocking(False)
        self._unpacker = Unpacker()
        server.listen(0.0)

    def receive(self) -> list[tuple[Any, ...]]:
        """Let the worker listen once, and return the messages that are complete then."""
        self._server.listen(0.0)
        try:
            return list(self._unpacker.feed(self._socket.recv(READ_BYTES)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        self._socket.close()


def test_the_first_server_that_is_reported_to_gets_the_sums_of_all_events(
    server: _SocketServer, tmp_path: Path
) -> None:
    for _ in range(3):
        server.record_event("m/greedy", ForwardPass("decode", 0.001, sequences=2, rows=5))
    first = Client(server, tmp_path)
    [(kind, states, counts)] = first.receive()
    decoded: EngineCounts = counts["m/greedy"]
    assert (kind, states) == ("report", STATES)
    assert (decoded.decode_steps, decoded.target_tokens, decoded.rows.total) == (3, 6, 15)
    second = Client(server, tmp_path)
    assert second.receive() == [("report", STATES, {})]
    first.close()
    second.close()


def test_an_answer_that_no_socket_holds_is_sent_while_the_server_reads(server: _SocketServer, tmp_path: Path) -> None:
    client = Client(server, tmp_path)
    [_report] = client.receive()
    [connection] = server._connections.values()
    matrices = bytes(4_000_000)
    server._queue(connection, "answer", 1, matrices)
    received = []
    for _ in range(1000):
        received += client.receive()
        if received:
            break
        assert connection.is_full
    assert received == [("answer", 1, matrices)]
    server._queue(connection, "answer", 2, None)
    assert client.receive() == [("answer", 2, None)]
    assert not connection.is_full
    client.close()


def test_a_server_that_has_ended_is_forgotten_with_what_was_not_sent(server: _SocketServer, tmp_path: Path) -> None:
    client = Client(server, tmp_path)
    [connection] = server._connections.values()
    server._queue(connection, "answer", 1, bytes(4_000_000))
    server.listen(0.0)
    client.close()
    server.listen(0.0)
    assert not server._connections
    assert not server._sending


def test_a_server_that_was_refused_learns_when_the_state_is_the_former_one_again(
    server: _SocketServer, tmp_path: Path
) -> None:
    """A server takes the state that a refusal has. If that was the last one for it, it refused requests for ever."""
    client = Client(server, tmp_path)
    assert client.receive() == [("report", STATES, {})]
    [connection] = server._connections.values()
    future: Future[Answer[Any]] = Future()
    connection.futures[1] = future
    future.set_exception(QueueFull("full", retry_after_s=1))
    server._answer(connection, 1, "m/greedy", future)
    assert [message[:2] for message in client.receive()] == [("answer", 1)]
    server._report()
    assert client.receive() == [("report", STATES, {})]
    client.close()


def test_an_answer_is_held_for_a_part_of_its_time_while_others_wait_for_a_place(
    server: _SocketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("service.worker.worker_process.time.monotonic", lambda: now)
    client = Client(server, tmp_path)
    [_report] = client.receive()
    [connection] = server._connections.values()

    def answer(number: int, engine: str, seconds: float) -> None:
        future: Future[Answer[Any]] = Future()
        connection.futures[number] = future
        future.set_result(Answer([], 0.0, 0.0, seconds))
        server._answer(connection, number, engine, future)

    answer(1, "m/greedy", 0.08)
    assert [number for _, number, _ in client.receive()] == [1]

    monkeypatch.setattr(server.loop, "full", frozenset({"m/greedy"}))
    answer(2, "m/greedy", 0.08)
    now += 0.004
    assert client.receive() == []
    answer(3, "m/greedy", 0.08)
    now += 0.004
    assert [number for _, number, _ in client.receive()] == [2, 3]

    answer(4, "m/greedy", 60.0)
    now += 0.009
    assert client.receive() == []
    now += 0.009
    assert [number for _, number, _ in client.receive()] == [4]  # the next step would end after the 20 ms

    answer(5, "m/greedy", 60.0)
    assert client.receive() == []
    answer(6, "m/beam", 60.0)
    assert [number for _, number, _ in client.receive()] == [5, 6]
    client.close()
