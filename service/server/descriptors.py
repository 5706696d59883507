"""How many connections the limit of file descriptors leaves."""

import logging
import sys

if sys.platform != "win32":
    import resource

logger = logging.getLogger(__name__)

RESERVED = 64
"""Descriptors for what is no connection: files, the log, sockets of the loops."""

MOST = 10_000
"""Connections where descriptors are no limit. A sweep over so many takes some hundredths of a second."""


def most_connections(wanted: int | None) -> int:
    """As many as are wanted, or as descriptors are left for; their soft limit is raised to the hard one."""
    descriptors = _descriptors()
    most = MOST if wanted is None else wanted
    if descriptors is None:
        return most
    left = max(descriptors - RESERVED, descriptors // 2)
    if wanted is not None and wanted > left:
        logger.warning("the limit of %d descriptors leaves %d connections, not %d", descriptors, left, wanted)
    return min(left, most)


def _descriptors() -> int | None:
    """None where there is no limit."""
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):
        pass  # macOS refuses some limits that it names
    return None if soft == resource.RLIM_INFINITY else soft
