"""Memory of a service: proportional set size, which shares out pages that several processes map."""

from pathlib import Path


def footprint(process_id: int) -> dict[str, float]:
    """Number and memory of a process and all that come from it."""
    processes = [process_id]
    for process in processes:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        processes += [int(child) for child in children]
    kilobytes = 0
    for process in processes:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return {"processes": len(processes), "mb": kilobytes * 1024 / 1e6}
