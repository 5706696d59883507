"""`python -m service.server.health` asks the service with the same settings whether it is ready.

It is the health check of containers: it uses the configured host and port, and no proxy.
"""

import http.client
import sys
from collections.abc import Sequence

from service.base.configuration import read_settings
from service.base.errors import StartRefused

TIMEOUT_S = 4
LOOPBACK = {"0.0.0.0": ["127.0.0.1"], "::": ["::1"], "*": ["127.0.0.1", "::1"]}  # noqa: S104  not bound here
"""Addresses to ask where the service listens on all."""


def main() -> None:
    """Exit with one sentence if the service is not ready."""
    try:
        settings = read_settings()
        status, body = _ask(LOOPBACK.get(settings.host, [settings.host]), settings.port)
    except (StartRefused, ConnectionError) as error:
        sys.exit(str(error))
    if status != http.HTTPStatus.OK:
        sys.exit(f"not ready: {body}")


def _ask(hosts: Sequence[str], port: int) -> tuple[int, str]:
    """Raises ConnectionError: no host answers."""
    failures = []
    for host in hosts:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/health/ready")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{host} does not answer on port {port}: {error}")
    raise ConnectionError("; ".join(failures))


if __name__ == "__main__":
    main()
