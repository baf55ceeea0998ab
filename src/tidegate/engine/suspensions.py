"""Suspensions: somebody wants nothing done to a unit whose own object no cluster has.

Where a cluster serves its kind, that stands on its own object, in the words of its dialect.

    kubectl get configmap -n tidegate-system -l tidegate.dev/suspended=unit
"""

from __future__ import annotations

from tidegate.engine.stored import CONFIG_MAP, NAMESPACE, OF_UNIT, keep_word, resource_name
from tidegate.model.objects import Ref
from tidegate.world.calls import Selection, Write

SUSPENDED = "tidegate.dev/suspended"
SUSPENSIONS = Selection(CONFIG_MAP, NAMESPACE, labels=f"{SUSPENDED}={OF_UNIT}")
"""Those of all units of a cluster."""


def suspension_ref(unit: str) -> Ref:
    return Ref(CONFIG_MAP, NAMESPACE, f"{resource_name(unit)}.suspended")


def suspension(unit: str, by: str) -> Write:
    """Have nothing done to a unit, until somebody resumes it."""
    return keep_word(suspension_ref(unit), unit, SUSPENDED, {"by": by})
