"""The limit of connections that the limit of file descriptors allows."""

import logging
import sys

if sys.platform != "win32":
    import resource

logger = logging.getLogger(__name__)

RESERVED_DESCRIPTORS = 64
"""Descriptors for files, the log and the sockets of workers."""

DEFAULT_MAX_CONNECTIONS = 10_000
"""A sweep over this many connections takes some hundredths of a second."""


def max_connections(wanted: int | None) -> int:
    """Return the limit of connections: the wanted one, or less if there are too few descriptors.

    The soft limit of descriptors is raised to the hard one.
    """
    descriptors = _max_descriptors()
    limit = DEFAULT_MAX_CONNECTIONS if wanted is None else wanted
    if descriptors is None:
        return limit
    left = max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2)
    if wanted is not None and wanted > left:
        logger.warning("the limit of %d descriptors leaves %d connections, not %d", descriptors, left, wanted)
    return min(left, limit)


def _max_descriptors() -> int | None:
    """Return the limit of descriptors, or None if there is none."""
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):
        pass  # macOS refuses some limits that it names
    return None if soft == resource.RLIM_INFINITY else soft
