"""Which pods go last when a node is short of room: the class that a server gives a new pod."""

from __future__ import annotations

from fractions import Fraction

from tidegate.model.quantity import quantity_of
from tidegate.model.reading import mapping, mappings
from tidegate.sandbox.server.store import Body

COUNTED = ("cpu", "memory")

Amounts = dict[str, Fraction]


def service_class(pod: Body) -> str:
    """`BestEffort` where nothing is asked for, `Guaranteed` where all of it is a limit as well.

    What a pod asks for as a whole counts more than what its containers do.
    """
    spec = mapping(pod, "spec")
    whole = mapping(spec, "resources")
    containers = [*mappings(spec, "containers"), *mappings(spec, "initContainers")]
    shares = [whole] if whole else [mapping(one, "resources") for one in containers]
    if not any(shares):
        return "BestEffort"
    read = [(_requests(share), _amounts(share, "limits")) for share in shares]
    if not any(requests or limits for requests, limits in read):
        return "BestEffort"
    is_guaranteed = all(
        len(limits) == len(COUNTED) and requests == limits for requests, limits in read
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _amounts(share: Body, name: str) -> Amounts:
    given = mapping(share, name)
    amounts = {key: quantity_of(given[key]) for key in COUNTED if key in given}
    return {key: amount for key, amount in amounts.items() if amount is not None and amount > 0}


def _requests(share: Body) -> Amounts:
    """What has a limit and no request requests its limit."""
    requested = mapping(share, "requests")
    limits = _amounts(share, "limits")
    unsaid = {key: amount for key, amount in limits.items() if key not in requested}
    return {**unsaid, **_amounts(share, "requests")}
