"""Run Tidegate with a clock that is wrong: `python -m tests.adversary.wrong_clock SECONDS sync …`.

Only what Python reads as the time of day is wrong, as on a machine whose clock was never set.
"""

from __future__ import annotations

import sys
import time

from tidegate.cli.main import main


def set_clock_ahead(seconds: int) -> None:
    """Set the time of day of this process ahead, or back."""
    right_time, right_time_ns = time.time, time.time_ns
    time.time = lambda: right_time() + seconds
    time.time_ns = lambda: right_time_ns() + seconds * 1_000_000_000


if __name__ == "__main__":
    set_clock_ahead(int(sys.argv.pop(1)))
    main()
