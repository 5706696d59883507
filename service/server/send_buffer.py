"""How many sent bytes still wait for the other end."""

import asyncio
import fcntl
import sys
import termios


class SendProgress:
    """Tells for how long the other end has taken nothing of what is sent."""

    def __init__(self) -> None:
        self._queue = 0
        self._progress_at = 0.0

    def stuck_s(self, transport: asyncio.WriteTransport, now: float) -> float:
        """Return the seconds without progress at the time `now`; 0 if nothing waits in this process."""
        queue = send_queue_bytes(transport) if transport.get_write_buffer_size() else 0
        if self._queue == 0 or queue < self._queue:
            self._progress_at = now
        self._queue = queue
        return now - self._progress_at


def send_queue_bytes(transport: asyncio.WriteTransport) -> int:
    """Return how many bytes the other end has not received yet, in this process and on Linux in the system's buffer.
    For a Unix socket the latter include the system's own overhead."""
    counted = bytearray(4)
    # The socket may just have been closed.
    if sys.platform == "linux" and (descriptor := transport.get_extra_info("socket").fileno()) >= 0:
        fcntl.ioctl(descriptor, termios.TIOCOUTQ, counted)
    return transport.get_write_buffer_size() + int.from_bytes(counted, sys.byteorder)
