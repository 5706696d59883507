"""What service/server/ relies on in uvicorn and httptools beyond their documentation.

If a test fails after an upgrade, its message names the code to look at. The behaviour itself is tested in
test_connections.py, test_upgrades.py and test_life.py.
"""

import asyncio
import inspect
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import httptools
import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

pytestmark = pytest.mark.anyio

HEAD = b"GET / HTTP/1.1\r\nHost: attend\r\n\r\n"
KEEP_ALIVE_S = 75


def look_at(code: str) -> str:
    return f"uvicorn {uvicorn.__version__} has changed: look at {code}"


class Started(HttpToolsProtocol):
    """uvicorn's protocol, which notes the requests that it starts."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.started: list[RequestResponseCycle] = []

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.started.append(cycle)
        super()._start_asgi_task(cycle, app)


class Offering(Started):
    """As `Connection` has it: every offer of another protocol counts as accepted."""

    def _should_upgrade(self) -> bool:
        return True


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


async def connected(protocol: type[Started] = Started) -> Started:
    config = uvicorn.Config(answer, ws="none", lifespan="off", log_config=None, timeout_keep_alive=KEEP_ALIVE_S)
    made = protocol(config=config, server_state=ServerState(), app_state={})
    transport = Mock(asyncio.Transport)
    transport.get_extra_info.return_value, transport.is_closing.return_value = None, False
    made.connection_made(transport)
    return made


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (HttpToolsProtocol.__init__, ["self", "config", "server_state", "app_state", "_loop"]),
        (HttpToolsProtocol.connection_made, ["self", "transport"]),
        (HttpToolsProtocol.connection_lost, ["self", "exc"]),
        (HttpToolsProtocol.data_received, ["self", "data"]),
        (HttpToolsProtocol._start_asgi_task, ["self", "cycle", "app"]),
        (HttpToolsProtocol._unset_keepalive_if_required, ["self"]),
        (HttpToolsProtocol._should_upgrade, ["self"]),
        (HttpToolsProtocol.on_response_complete, ["self"]),
        (HttpToolsProtocol.send_400_response, ["self", "msg"]),
        (uvicorn.Server.handle_exit, ["self", "sig", "frame"]),
        (uvicorn.Server.startup, ["self", "sockets"]),
        (uvicorn.Server.shutdown, ["self", "sockets"]),
        (uvicorn.Server.on_tick, ["self", "counter"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_methods_that_are_overridden_or_called_have_these_parameters(
    function: Callable[..., Any], parameters: list[str]
) -> None:
    code = "service/server/server.py" if "Server." in function.__qualname__ else "service/server/connections.py"
    assert list(inspect.signature(function).parameters) == parameters, look_at(f"{code}, {function.__name__}")


async def test_a_protocol_has_these_attributes() -> None:
    protocol = await connected()
    protocol.data_received(HEAD)
    names = (
        "loop transport logger parser connections scope cycle url headers timeout_keep_alive timeout_keep_alive_task"
    )
    missing = [name for name in names.split() if not hasattr(protocol, name)]
    assert not missing, look_at(f"service/server/connections.py, class Connection: {missing} of the protocol")
    names = "scope more_body response_complete disconnected message_event"
    missing = [name for name in names.split() if not hasattr(protocol.cycle, name)]
    assert not missing, look_at(f"service/server/connections.py, class Connection: {missing} of a request")
    assert protocol.timeout_keep_alive == KEEP_ALIVE_S, look_at("service/server/connections.py, idle_since")
    assert protocol in protocol.connections, look_at("service/server/connections.py, refuse")


async def test_a_head_has_a_new_scope_that_gets_a_cycle_when_it_is_complete() -> None:
    code = look_at("service/server/connections.py, _has_begun_a_head and _limit_size")
    protocol = await connected()
    assert (protocol.scope, protocol.cycle) == (None, None), code
    protocol.data_received(HEAD[:-2])
    assert protocol.scope is not None, code
    assert protocol.cycle is None, code
    protocol.data_received(HEAD[-2:])
    assert protocol.cycle.scope is protocol.scope, code
    before = protocol.cycle
    protocol.data_received(HEAD[:-2])
    assert protocol.cycle is before, code
    assert protocol.scope is not before.scope, code


async def test_every_request_is_started_by_the_same_method_in_turn() -> None:
    code = look_at("service/server/connections.py, _start_asgi_task and connection_lost")
    protocol = await connected()
    protocol.data_received(2 * HEAD)
    first, last = protocol.started[0], protocol.cycle
    assert protocol.started == [first], code
    assert first is not last, code
    await asyncio.wait(protocol.tasks)
    assert protocol.started == [first, last], code


async def test_an_answer_is_sent_by_these_methods_of_its_transport() -> None:
    code = look_at("service/server/joined_write.py, class JoinedWrite")
    protocol = await connected()
    protocol.data_received(HEAD.replace(b"Host", b"Connection: close\r\nHost"))
    protocol.cycle.transport = transport = Mock(spec=["write", "close", "is_closing"])
    begun = []
    transport.write.side_effect = lambda _: begun.append(protocol.cycle.response_started)
    await asyncio.wait(protocol.tasks)
    assert [call[0] for call in transport.method_calls] == ["write", "write", "close"], code
    assert begun == [True, True], code
    head, body = (call.args[0] for call in transport.write.call_args_list)
    assert head.endswith(b"\r\n\r\n"), code
    assert body == b"", code


async def test_the_timer_of_an_idle_connection_tells_since_when_it_is_idle() -> None:
    code = look_at("service/server/connections.py, idle_since and _check_head")
    protocol = await connected()
    assert protocol.timeout_keep_alive_task is None, code
    protocol.data_received(HEAD)
    before = protocol.loop.time()
    await asyncio.wait(protocol.tasks)
    timer: TimerHandle | None = protocol.timeout_keep_alive_task
    assert timer is not None, code
    assert before <= timer.when() - KEEP_ALIVE_S <= protocol.loop.time(), code
    protocol.data_received(HEAD[:-2])
    assert protocol.timeout_keep_alive_task is None, code


async def test_an_offer_of_another_protocol_stops_the_parser_behind_the_head_and_starts_nothing() -> None:
    code = look_at("service/server/connections.py, _parse and _parse_without_offer")
    protocol = await connected(Offering)
    offer = HEAD[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with pytest.raises(httptools.HttpParserUpgrade) as stopped:
        protocol.parser.feed_data(offer + b"rest")
    assert stopped.value.args[0] == len(offer), code
    assert protocol.started == [], code
    assert (protocol.url, protocol.parser.get_method(), protocol.parser.get_http_version()) == (b"/", b"GET", "1.1")
    assert (b"upgrade", b"h2c") in protocol.headers, code


async def test_a_connection_that_is_lost_has_no_parser() -> None:
    protocol = await connected()
    protocol.connection_lost(None)
    assert protocol.parser is None, look_at("service/server/connections.py, refuse")
    assert protocol not in protocol.connections, look_at("service/server/connections.py, refuse")


async def test_any_callable_makes_protocols() -> None:
    config = uvicorn.Config(answer, http=connected, lifespan="off", log_config=None)  # type: ignore[arg-type]
    config.load()
    assert config.http_protocol_class is connected, look_at("service/server/server.py, http=connections.protocol")


def test_a_server_has_these_attributes() -> None:
    server = uvicorn.Server(uvicorn.Config(answer, log_config=None))
    names = "config server_state should_exit force_exit"
    missing = [name for name in names.split() if not hasattr(server, name)]
    assert not missing, look_at(f"service/server/server.py, class Server: {missing}")
    assert server.server_state.tasks == set(), look_at("service/server/server.py, _listen_while_answering")
    assert hasattr(server.config, "timeout_graceful_shutdown"), look_at("service/server/server.py")
