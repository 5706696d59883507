"""Memory of a service: proportional set size, which divides shared pages among processes."""

from service.base.memory import family, proportional_bytes


def footprint(process_id: int) -> dict[str, float]:
    """Return number and memory of a process and its descendants."""
    processes = [*family(process_id)]
    return {"processes": len(processes), "mb": sum(map(proportional_bytes, processes)) / 1e6}
