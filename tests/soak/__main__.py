"""`python -m tests.soak --minutes 5`."""

import argparse
import logging
import sys
from pathlib import Path

from tests.soak import small_disks
from tests.soak.report import table, write
from tests.soak.result import Options
from tests.soak.run import run

MOST_GROWTH = 0.1
"""By which share memory may be larger in the second half, in a soak that is long enough for a plateau."""
PLATEAU_MINUTES = 3.0


def main() -> int:
    """Run a soak, print its table, and return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--requests", type=int, help="stop after so many requests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--artifacts", type=Path, help="serve the models of this folder, the shipped ones")
    parser.add_argument("--postgresql", action="store_true", help="keep glossaries and documents in a PostgreSQL")
    parser.add_argument("--short", action="store_true", help="short faults, few texts: for less than a minute")
    parser.add_argument("--log", type=Path, help="copy the log of the service to this file")
    parser.add_argument("--write", type=Path, help="write the table into this page")
    given = parser.parse_args()
    logging.getLogger("httpx").setLevel("WARNING")
    logging.getLogger("asyncio").setLevel("CRITICAL")  # connections that are lost are counted
    logging.basicConfig(level="INFO", format="%(asctime)s %(message)s")
    small_disks.enter(sys.argv[1:])
    short = {"fault_s": 1.0, "pause_s": 0.2, "n_different": 120, "warm_up_s": 1.0, "documents_kept_s": 8.0}
    options = Options(
        given.minutes,
        given.requests,
        given.seed,
        given.artifacts,
        postgresql=given.postgresql,
        log=given.log,
        **(short if given.short else {}),  # type: ignore[arg-type]
    )
    result = run(options)
    print(table(result))
    most_growth = MOST_GROWTH if given.minutes >= PLATEAU_MINUTES else float("inf")
    complaints = result.complaints(most_growth)
    if given.write is not None and not complaints:
        write(given.write, result)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return min(1, len(complaints))


if __name__ == "__main__":
    sys.exit(main())
