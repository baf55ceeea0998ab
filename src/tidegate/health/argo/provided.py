"""Service, Ingress and PersistentVolumeClaim: what somebody outside must provide, and has or not.

An Ingress whose controller never publishes an address stays Progressing for ever.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    Body,
    say,
)
from tidegate.model.reading import listed, mappings, text
from tidegate.model.verdict import Verdict


def judge_service(body: Body) -> Verdict:
    if text(body, "spec", "type") != "LoadBalancer":
        return say(body, HEALTHY, "NothingToWaitFor", "the Service needs no load balancer")
    return judge_address(body)


def judge_address(body: Body) -> Verdict:
    if not listed(body, "status", "loadBalancer", "ingress"):
        return say(body, PROGRESSING, "AddressPending", "no load balancer has given an address yet")
    given = mappings(body, "status", "loadBalancer", "ingress")
    addresses = [text(one, "ip") or text(one, "hostname") for one in given]
    known = ", ".join(one for one in addresses if one) or "an address"
    return say(body, HEALTHY, "AddressAssigned", f"the load balancer gave {known}")


def judge_claim(body: Body) -> Verdict:
    match text(body, "status", "phase"):
        case "Bound":
            volume = text(body, "spec", "volumeName", default="a volume")
            return say(body, HEALTHY, "Bound", f"bound to {volume}")
        case "Pending":
            return say(body, PROGRESSING, "Pending", "no volume is bound to it yet")
        case "Lost":
            volume = text(body, "spec", "volumeName", default="the volume")
            return say(body, DEGRADED, "Lost", f"{volume} that it was bound to is gone")
        case _:
            return say(body, UNKNOWN, "PhaseUnknown", "its phase is not known")
