"""What the last forward pass showed. Readiness follows it: neither a live process nor a live thread is proof enough."""


class Health:
    """Written by one thread, read by any.

    Args:
        max_age_s: a success that is older proves nothing any more.
    """

    def __init__(self, max_age_s: float) -> None:
        self._max_age_s = max_age_s
        self._succeeded_at: float | None = None
        self._failure: str | None = None

    def succeeded(self, now: float) -> None:
        self._succeeded_at, self._failure = now, None

    def failed(self, error: Exception) -> None:
        self._failure = type(error).__name__

    def unready_reason(self, now: float) -> str | None:
        """None if the last forward pass succeeded and is recent."""
        succeeded_at, failure = self._succeeded_at, self._failure
        if failure is not None:
            return f"the last forward pass failed ({failure})"
        if succeeded_at is None:
            return "starting"
        if now - succeeded_at > self._max_age_s:
            return f"the last forward pass ended {now - succeeded_at:.0f} s ago"
        return None
