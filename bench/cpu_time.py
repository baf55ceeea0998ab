"""What programs cost that were started here."""

from __future__ import annotations

import resource


def spent_by_programs() -> float:
    """CPU seconds of all that were started, and of what they started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
