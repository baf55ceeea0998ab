"""Verbs: the only place where stages meet, and where a world is chosen."""

import gc

COLLECTS_AFTER = (100_000, 50, 100)
"""With Python's own thresholds, a sixth of a rollout's time goes into looking for garbage.

What outlives a first look mostly stays, and looking at it again costs the more, the more there is.
"""


def spare_collections() -> None:
    """Look for garbage less often: what a verb makes, it mostly keeps."""
    gc.set_threshold(*COLLECTS_AFTER)
