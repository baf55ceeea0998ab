"""Everything that a caller heard in a few seeded runs, as text; run as a module."""

from __future__ import annotations

import asyncio
import sys

from tests.support.faulty_world import run

if __name__ == "__main__":
    for seed in range(5):
        caller, _ = asyncio.run(run(seed))
        for message in caller.messages:
            sys.stdout.write(f"{message!r}\n")
