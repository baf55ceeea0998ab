"""All stamps: the kind, how long it takes, and what is written. The times are assumed."""

from __future__ import annotations

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Kind
from tidegate.sandbox.controllers.selectors.endpoints import SERVICE, SLICE
from tidegate.sandbox.controllers.stamps.api_services import API_SERVICE, available, behind
from tidegate.sandbox.controllers.stamps.autoscalers import (
    AUTOSCALER,
    SCALED,
    aiming_at,
    unmeasured,
)
from tidegate.sandbox.controllers.stamps.network import balanced, routed
from tidegate.sandbox.controllers.stamps.stamp import Stamp, stamping

INGRESS = Kind("networking.k8s.io", "v1", "Ingress")

STAMPS = (
    Stamp(SERVICE, Ms(5 * SECOND), balanced),
    Stamp(INGRESS, Ms(5 * SECOND), routed),
    Stamp(API_SERVICE, Ms(SECOND), available, behind, touched_by=(SERVICE, SLICE)),
    Stamp(AUTOSCALER, Ms(15 * SECOND), unmeasured, aiming_at, touched_by=SCALED),
)

STAMPED = tuple(stamping(stamp) for stamp in STAMPS)
