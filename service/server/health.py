"""`python -m service.server.health` asks the service that runs with the same settings whether it is ready.

Containers ask this: no proxy is used, and the port and the address are the configured ones.
"""

import http.client
import sys
from collections.abc import Sequence

from service.base.configuration import read_settings
from service.base.errors import StartRefused

TIMEOUT_S = 4
ANY_ADDRESS = {"0.0.0.0": ["127.0.0.1"], "::": ["::1"], "*": ["127.0.0.1", "::1"]}  # noqa: S104  asked at, not listened on


def main() -> None:
    """Exits with one sentence if the service is not ready."""
    try:
        settings = read_settings()
        status, said = _answer(ANY_ADDRESS.get(settings.host, [settings.host]), settings.port)
    except (StartRefused, ConnectionError) as error:
        sys.exit(str(error))
    if status != http.HTTPStatus.OK:
        sys.exit(f"not ready: {said}")


def _answer(hosts: Sequence[str], port: int) -> tuple[int, str]:
    """Of the first that answers.

    Raises:
        ConnectionError: none does.
    """
    silent = []
    for host in hosts:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/health/ready")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            silent.append(f"{host} does not answer on port {port}: {error}")
    raise ConnectionError("; ".join(silent))


if __name__ == "__main__":
    main()
