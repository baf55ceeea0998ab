"""Suspensions: somebody wants nothing done to a unit whose own object no cluster has.

Where a cluster serves its kind, that stands on its own object, in the words of its dialect.

    kubectl get configmap -n tidegate-system -l tidegate.dev/suspended=unit
"""

from __future__ import annotations

import msgspec

from tidegate.engine.stored import MANAGER, NAMESPACE, UNIT, label_value, resource_name
from tidegate.model.objects import Json, Kind, Ref
from tidegate.world.calls import Selection, Verb, Write

CONFIG_MAP = Kind("", "v1", "ConfigMap")
SUSPENDED, OF_UNIT = "tidegate.dev/suspended", "unit"
SUSPENSIONS = Selection(CONFIG_MAP, NAMESPACE, labels=f"{SUSPENDED}={OF_UNIT}")
"""Those of all units of a cluster."""


def suspension_ref(unit: str) -> Ref:
    return Ref(CONFIG_MAP, NAMESPACE, f"{resource_name(unit)}.suspended")


def suspension(unit: str, by: str) -> Write:
    """Have nothing done to a unit, until somebody resumes it."""
    ref = suspension_ref(unit)
    metadata: Json = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {SUSPENDED: OF_UNIT, UNIT: label_value(unit)},
    }
    body: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"unit": unit, "by": by},
    }
    return Write(
        verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager=MANAGER, force=True
    )
