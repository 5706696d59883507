"""Memory of a service: proportional set size, which divides shared pages among processes."""

from pathlib import Path


def footprint(process_id: int) -> dict[str, float]:
    """Return number and memory of a process and its descendants."""
    processes = [process_id]
    for process in processes:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        processes += [int(child) for child in children]
    kilobytes = 0
    for process in processes:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return {"processes": len(processes), "mb": kilobytes * 1024 / 1e6}
