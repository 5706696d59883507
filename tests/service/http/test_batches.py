"""Many texts in one request, calls to clients when they are done, and requests that are sent again."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from service.base.errors import InvalidFields, KeyReused
from service.jobs import store
from tests.service.access.key_tables import table
from tests.service.conftest import Client, Serve, post, problem
from tests.service.http.test_documents import TEXT, finished, posted, result, sent
from tests.waiting import until

pytestmark = pytest.mark.anyio

TEXTS = ["the dog runs on the beach", "a cat", "", "a cat"]
SECRET = "s3cret"


class Receiver:
    """A client's own server, and the calls that it got."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        """The next answers; afterwards 204."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.calls.append((headers | {"path": self.path}, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/done?of=attend"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.stop()


async def batch(client: Client, key: str | None = None, **body: Any) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    response = await client.post("/translate/batch", json={"target": "fr", **body}, headers=headers)
    assert response.status_code == 202, response.text
    card: dict[str, Any] = response.json()
    return card


async def test_a_batch_has_a_line_for_each_text_as_translate_answers_it(client: Client) -> None:
    answers = await post(client, "/translate", text=TEXTS, target="fr")
    card = await batch(client, texts=TEXTS)
    await finished(client, card)
    lines = (await result(client, card)).text.splitlines()
    assert [json.loads(line) for line in lines] == [translation["text"] for translation in answers["translations"]]


async def test_objects_of_json_lines_keep_what_they_have(client: Client) -> None:
    data = "\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS))
    card = await sent(client, "a.jsonl", data.encode())
    await finished(client, card)
    values = [json.loads(line) for line in (await result(client, card)).text.splitlines()]
    assert [value["id"] for value in values] == [0, 1, 2, 3]
    assert values[1]["translation"] == values[3]["translation"] != ""


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"texts": []}, "texts"),
        ({"texts": [1]}, "texts.0"),
        ({"texts": ["a"], "timeout_s": 1e9}, "timeout_s"),
        ({"texts": ["a"], "wait": True}, "wait"),
        ({}, "texts"),
    ],
)
async def test_a_wrong_batch_is_refused_by_name(client: Client, body: dict[str, Any], part: str) -> None:
    response = await client.post("/translate/batch", json={"target": "fr", **body})
    assert part in problem(response, InvalidFields)["detail"]


async def test_a_client_is_called_once_with_a_signature_that_it_can_check(serve: Serve, receiver: Receiver) -> None:
    async with serve(callback_hosts="127.0.0.1", callback_secret=SECRET) as client:
        card = await batch(client, texts=TEXTS, callback_url=receiver.url)
        await until(lambda: bool(receiver.calls))
        await batch(client, texts=["a"], callback_url=receiver.url)
        await until(lambda: len(receiver.calls) == 2)
        headers, body = receiver.calls[0]
        expected = {"id": card["id"], "status": "done", "source": "en", "target": "fr", "error": None, "code": None}
        assert json.loads(body) == {**expected, "characters": card["characters"]}
        assert headers["path"] == "/done?of=attend"
        signed = f"{headers['x-attend-timestamp']}.".encode() + body
        assert (
            headers["x-attend-signature"] == f"sha256={hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()}"
        )
        assert (await result(client, card)).status_code == 200


async def test_a_call_that_failed_or_was_redirected_is_made_again(
    serve: Serve, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FIRST_PAUSE_S", 0.01)
    receiver.statuses = [500, 302]
    async with serve(callback_hosts="127.0.0.1", callback_secret=SECRET) as client:
        await posted(client, "a.txt", TEXT, callback_url=receiver.url)
        await until(lambda: len(receiver.calls) == 3)
        assert {headers["path"] for headers, _ in receiver.calls} == {"/done?of=attend"}


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.example.org/",
        "http://a@127.0.0.1/",
        "file:///etc/passwd",
        "http://127.0.0.1:x/",
        "http://[::1/",
        "http://127.0.0.1/a b",
        "127.0.0.1",
        "",
        "http://127.0.0.1/" + "a" * 2000,
    ],
)
async def test_only_hosts_that_the_operator_names_are_called(serve: Serve, url: str) -> None:
    async with serve(callback_hosts="127.0.0.1", callback_secret=SECRET) as client:
        response = await client.post("/translate/batch", json={"texts": ["a"], "target": "fr", "callback_url": url})
        assert "callback_url" in problem(response, InvalidFields)["detail"]


async def test_no_host_is_called_unless_one_is_named(client: Client, receiver: Receiver) -> None:
    response = await posted(client, "a.txt", TEXT, callback_url=receiver.url)
    assert "ATTEND_CALLBACK_HOSTS" in problem(response, InvalidFields)["detail"]


async def test_a_request_that_is_sent_again_is_the_same_batch(client: Client) -> None:
    first, again, other = [await batch(client, key, texts=TEXTS) for key in ("k", "k", "other")]
    assert (again["id"], again["key"]) == (first["id"], first["key"])
    assert other["id"] != first["id"]
    changed = await client.post(
        "/translate/batch", json={"texts": ["b"], "target": "fr"}, headers={"Idempotency-Key": "k"}
    )
    problem(changed, KeyReused)
    await finished(client, first)
    await client.delete(f"/translate/document/{first['id']}", params={"key": first["key"]})
    assert (await batch(client, "k", texts=TEXTS))["id"] != first["id"]


async def test_requests_at_the_same_moment_are_one_batch_and_count_once(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(table("alice", "a"))
    async with serve(api_keys_file=file) as client:
        client.headers["authorization"] = "Bearer a"
        cards = await asyncio.gather(*(batch(client, "k", texts=TEXTS) for _ in range(4)))
        assert len({card["id"] for card in cards}) == 1
        usage = await client.get("/v2/usage", headers={"authorization": "DeepL-Auth-Key a"})
        assert usage.json()["character_count"] == sum(map(len, set(TEXTS)))


async def test_a_document_that_is_waited_for_has_no_key(client: Client) -> None:
    headers = {"Idempotency-Key": "k"}
    response = await client.post(
        "/translate/document", files={"file": ("a.txt", TEXT)}, data={"target": "fr", "wait": "true"}, headers=headers
    )
    assert "cannot be used with `wait`" in problem(response, InvalidFields)["detail"]


async def test_keys_of_other_clients_do_not_count(serve: Serve) -> None:
    async with serve(api_keys="a,b") as client:
        cards = []
        for key in ("a", "b"):
            client.headers["authorization"] = f"Bearer {key}"
            cards.append(await batch(client, "k", texts=TEXTS))
        assert cards[0]["id"] != cards[1]["id"]


async def test_a_key_that_is_no_name_is_refused(client: Client) -> None:
    response = await client.post(
        "/translate/batch", json={"texts": ["a"], "target": "fr"}, headers={"Idempotency-Key": "k" * 256}
    )
    assert "Idempotency-Key" in problem(response, InvalidFields)["detail"]
