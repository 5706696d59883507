"""`python -m service.health` asks the service that runs with the same settings whether it is ready.

Containers ask this: no proxy is used, and the port and the address are the configured ones.
"""

import http.client
import ipaddress
import sys

from service.settings import Settings

TIMEOUT_S = 4


def main() -> None:
    """Exits with one sentence if the service is not ready."""
    settings = Settings()
    connection = http.client.HTTPConnection(_address(settings.host), settings.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        said = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{connection.host} does not answer on port {connection.port}: {error}")
    if answer.status != http.HTTPStatus.OK:
        sys.exit(f"not ready: {said}")


def _address(host: str) -> str:
    """An address of this machine on which a server with this setting listens."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


if __name__ == "__main__":
    main()
