"""So many steps that do nothing, in one DBOS workflow on SQLite: ``noop.py FOLDER STEPS``.

Prints how many seconds the workflow took, without the start of the program and of DBOS.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from dbos import DBOS, DBOSConfig

FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])

config: DBOSConfig = {
    "name": "noop",
    "system_database_url": f"sqlite:///{FOLDER.resolve() / 'dbos.sqlite'}",
    "log_level": "ERROR",
}
DBOS(config=config)


@DBOS.step()
def nothing(number: int) -> int:
    """Do nothing."""
    return number


@DBOS.workflow()
def many(steps: int) -> float:
    """Take the steps; how long that took."""
    began = time.perf_counter()
    for number in range(steps):
        nothing(number)
    return time.perf_counter() - began


def main() -> None:
    """Run the workflow once."""
    DBOS.launch()
    seconds = many(STEPS)
    DBOS.destroy()
    print(seconds)


if __name__ == "__main__":
    main()
