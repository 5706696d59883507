"""`python -m service.health` asks the service that runs with the same settings whether it is ready.

Containers ask this: no proxy is used, and the port and the address are the configured ones.
"""

import http.client
import sys

from service.configuration import read_settings
from service.errors import StartRefused

TIMEOUT_S = 4
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  asked at, not listened on


def main() -> None:
    """Exits with one sentence if the service is not ready."""
    try:
        settings = read_settings()
    except StartRefused as error:
        sys.exit(str(error))
    host = ANY_ADDRESS.get(settings.host, settings.host)
    connection = http.client.HTTPConnection(host, settings.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        said = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{connection.host} does not answer on port {connection.port}: {error}")
    if answer.status != http.HTTPStatus.OK:
        sys.exit(f"not ready: {said}")


if __name__ == "__main__":
    main()
