"""Whether the metrics of the service add up to what was sent."""

import re
from collections import Counter
from collections.abc import Mapping

from tests.soak.ledger import Ledger

REQUESTS = re.compile(r'attend_requests_total\{dialect="(\w+)",route="([^"]*)",status="(\d+)"\}')
OF_THE_HARNESS = ("/health/ready", "/metrics", "/models/reload")
"""Routes that the harness itself asks, uncounted."""
Series = Mapping[str, float]


def requests_in(series: Series) -> Counter[tuple[str, str, int]]:
    """Return the counted requests by dialect, route and status."""
    found: Counter[tuple[str, str, int]] = Counter()
    for name, value in series.items():
        if (match := REQUESTS.fullmatch(name)) is not None and match[2] not in OF_THE_HARNESS:
            found[match[1], match[2], int(match[3])] = int(value)
    return found


def differences(before: Series, after: Series, ledger: Ledger, n_dead_servers: int) -> list[str]:
    """Return where metrics and ledger do not agree.

    Every whole answer is counted once, under its status. What has no whole answer is counted at most once.

    Args:
        n_dead_servers: servers that were killed. Each may have sent one answer and not counted it yet.
    """
    counted = requests_in(after)
    counted.subtract(requests_in(before))
    found = []
    n_missing = 0
    surplus: Counter[tuple[str, str]] = Counter()
    for key in counted.keys() | ledger.answered.keys():
        dialect, route, status = key
        n, n_answered = counted[key], ledger.answered[key]
        if n < n_answered:
            n_missing += n_answered - n
            found.append(f"{dialect} {route} {status}: {n_answered} answers, {n} counted")
        surplus[dialect, route] += n - n_answered
    if n_missing <= n_dead_servers:
        found.clear()
    for (dialect, route), n in surplus.items():
        if n > (n_unanswered := ledger.unanswered[dialect, route]):
            found.append(f"{dialect} {route}: {n} counted beyond the answers, {n_unanswered} without an answer")
    return found
