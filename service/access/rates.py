"""Count the requests of clients in one process for several servers."""

import json
import socketserver
import threading

from service.access.limiters import RateLimiter


class Rates(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Reads a client and its rate as one line of JSON, counts the request, and answers with a line: the seconds to
    wait."""

    daemon_threads = True

    def __init__(self, path: str) -> None:
        self._limiter = RateLimiter()
        self._counting = threading.Lock()
        super().__init__(path, _Handler)

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="rates", daemon=True).start()

    def wait_s(self, client: str, rate: str) -> int:
        with self._counting:
            return self._limiter.count(client, rate)


class _Handler(socketserver.StreamRequestHandler):
    server: Rates

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(b"%d\n" % self.server.wait_s(*json.loads(line)))
