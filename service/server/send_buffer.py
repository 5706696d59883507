"""How many sent bytes still wait for the other end."""

import asyncio
import fcntl
import sys
import termios


def send_queue_bytes(transport: asyncio.WriteTransport) -> int:
    """Return how many bytes the other end has not received yet, in this process and on Linux in the system's buffer.
    For a Unix socket the latter include the system's own overhead."""
    counted = bytearray(4)
    # The socket may just have been closed.
    if sys.platform == "linux" and (descriptor := transport.get_extra_info("socket").fileno()) >= 0:
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, counted)
    return transport.get_write_buffer_size() + int.from_bytes(counted, sys.byteorder)
