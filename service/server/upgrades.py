"""Requests that offer another protocol, as Java's HttpClient sends them by default (Upgrade: h2c), are answered as if
they offered none (RFC 9110, 7.8). uvicorn loses their bodies: its parser stops where the other protocol would begin.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class WithoutUpgrades(HttpToolsProtocol):
    """Parses the head of such a request a second time, without the offer."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

    def _parse(self, data: bytes | memoryview) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self._parse_without_offer()
                data = memoryview(data)[upgrade.args[0] :]
            else:
                return

    def _parse_without_offer(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            raise httptools.HttpParserError("this is no proxy")
        head = [b"%b %b HTTP/%b\r\n" % (method, self.url, version)]
        head += [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(b"".join([*head, b"\r\n"]))

    def _should_upgrade(self) -> bool:
        """If so, uvicorn does not answer a request as long as its parser sees the offer."""
        return True
