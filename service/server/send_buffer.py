"""How much of what a process has sent still waits for the other end."""

import asyncio
import sys

if sys.platform != "win32":
    import fcntl
    import termios


def send_queue_bytes(transport: asyncio.WriteTransport) -> int:
    """Return how many bytes the other end has not received yet: those in this process, and on Linux those in the
    system's buffer. For a Unix socket the latter include the system's own overhead."""
    return transport.get_write_buffer_size() + _system_queue_bytes(transport)


def _system_queue_bytes(transport: asyncio.WriteTransport) -> int:
    if sys.platform != "linux":
        return 0
    counted = bytearray(4)
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor >= 0:  # the socket may just have been closed
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, counted)
    return int.from_bytes(counted, sys.byteorder)
