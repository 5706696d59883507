"""What was sent and not yet taken."""

import asyncio
import sys

if sys.platform != "win32":
    import fcntl
    import termios


def untaken_bytes(transport: asyncio.WriteTransport) -> int:
    """Bytes that the other end has not taken: those in this process, and those in the system's buffer where the system
    tells. Of a Unix socket the latter include what the system needs for itself."""
    return transport.get_write_buffer_size() + _held_by_system(transport)


def _held_by_system(transport: asyncio.WriteTransport) -> int:
    """0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    counted = bytearray(4)
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor >= 0:  # not closed just now
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, counted)
    return int.from_bytes(counted, sys.byteorder)
