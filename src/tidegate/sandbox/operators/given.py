"""What a cluster begins with when an operator is there already, and how that comes up.

Its namespace, its CRDs, its workloads and their Services. The CRDs take any spec and any status:
what an operator's own would refuse is taken here. The workloads come up before time begins to run:
the cluster's own controllers do it, all at one moment. So nothing is left to do when a simulation
begins, and nobody sees it happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.settings import SIMULATED_MARK
from tidegate.model.given import GivenKind
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.operators import Operator, Row, ServiceProduct, Workload
from tidegate.sandbox.controllers.reaction import Controller, Visible
from tidegate.sandbox.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from tidegate.sandbox.physics.profile import CourseRule, Fit
from tidegate.sandbox.server.store import Body, ref_of
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome, is_refusal

NAME_LABEL = "app.kubernetes.io/name"
OPEN: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA: Body = {"openAPIV3Schema": {**OPEN, "properties": {"spec": OPEN, "status": OPEN}}}
HISSING = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"
MARKED: Body = {"annotations": {SIMULATED_MARK: "true"}}
AT_WORK = {
    "namespaces": NAMESPACE,
    "deployments": DEPLOYMENT,
    "stateful-sets": STATEFUL_SET,
    "daemon-sets": DAEMON_SET,
    "replica-sets": REPLICA_SET,
    "kubelet": POD,
    "endpoints": NAMESPACE,
}
"""The controllers that bring up a workload, by name, and what each looks at."""
MOST_ROUNDS = 20

Give = Callable[[Write], Outcome]


class Seat(NamedTuple):
    """An operator, the namespace that it lives in, and whether it brings its CRDs."""

    operator: Operator
    namespace: str
    defines: bool = True


def bodies_of(seats: Iterable[Seat], rows: Iterable[Row]) -> list[Body]:
    """All objects of these operators."""
    known = tuple(rows)
    return [body for seat in seats for body in _bodies(seat, known)]


def _bodies(seat: Seat, rows: tuple[Row, ...]) -> Iterator[Body]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": seat.namespace, **MARKED}}
    for row in rows:
        if seat.defines and row.operator == seat.operator.name:
            yield from definitions_of(row)
    for workload in seat.operator.workloads:
        yield workload_of(workload, seat.namespace)
    for service in seat.operator.services:
        yield _service_of(service, seat.namespace)


def definitions_of(row: Row) -> Iterator[Body]:
    """A CRD for each kind of a row."""
    for kind in row.kinds:
        yield _definition(row, kind)


def definitions_by_name(given: Iterable[GivenKind], known: KnownRows) -> Iterator[Body]:
    """A CRD for each kind that is given by its name, in that version and in those of its row."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    wide = set()
    for one in given:
        name = (one.kind.group, one.kind.name)
        if one.defined:
            versions[name] = (*versions.get(name, ()), one.kind.version)
            wide |= {name} if one.cluster_wide else set()
    for (group, kind), used in versions.items():
        row = known.row_of(Kind(group, "", kind)) or Row(
            group=group, kinds=(kind,), versions=(), source="given", stages=()
        )
        all_versions = tuple(dict.fromkeys((*row.versions, *used)))
        is_wide = (group, kind) in wide or kind in row.cluster_wide
        changed = {"versions": all_versions, "cluster_wide": (kind,) if is_wide else ()}
        yield _definition(msgspec.structs.replace(row, **changed), kind)


def _definition(row: Row, kind: str) -> Body:
    plural = row.plurals.get(kind) or plural_of(kind)
    names: Body = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
    }
    inner: Body = {} if kind in row.statusless else {"subresources": {"status": {}}}
    versions = [
        {"name": name, "served": True, "storage": place == 0, "schema": SCHEMA, **inner}
        for place, name in enumerate(row.versions)
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{row.group}", **MARKED},
        "spec": {
            "group": row.group,
            "names": names,
            "scope": "Cluster" if kind in row.cluster_wide else "Namespaced",
            "versions": [*versions],
        },
    }


def plural_of(kind: str) -> str:
    """The English plural of a kind, in small letters."""
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(HISSING) else f"{word}s"


def workload_of(workload: Workload, namespace: str) -> Body:
    """A workload with one pod."""
    labels: Body = {**(workload.labels or {NAME_LABEL: workload.name})}
    container: Body = {"name": "operator", "image": workload.image}
    return {
        "apiVersion": "apps/v1",
        "kind": str(workload.kind),
        "metadata": {
            "name": workload.name,
            "namespace": namespace,
            "labels": labels,
            **MARKED,
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _service_of(service: ServiceProduct, namespace: str) -> Body:
    ports: list[Json] = [
        {"name": one.name, "port": one.port, "protocol": "TCP"} for one in service.ports
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": namespace, **MARKED},
        "spec": {"selector": {**service.selector}, "ports": ports},
    }


def at_once(seats: Iterable[Seat]) -> list[CourseRule]:
    """Rules of a profile under which these operators run as soon as they are there."""
    soon = Ms(0)
    return [
        CourseRule(
            Fit(kind=str(workload.kind), namespace=seat.namespace, name=workload.name),
            {"pull": soon, "start": soon, "ready": soon},
        )
        for seat in seats
        for workload in seat.operator.workloads
    ]


def together(*groups: Iterable[Body]) -> list[Body]:
    """The objects of all groups, namespaces and CRDs first.

    Of an object that two groups have, the later one counts.
    """
    found = {identity(ref_of(body)): body for group in groups for body in group}
    rank = {"Namespace": 0, "CustomResourceDefinition": 1}
    return sorted(found.values(), key=lambda body: rank.get(str(body.get("kind")), len(rank)))


def arrive(
    view: Visible,
    give: Give,
    controllers: Sequence[Controller],
    *,
    namespaces: Iterable[str],
    now: Ms,
) -> None:
    """Let everything in these namespaces come to rest, at this moment."""
    places = sorted(set(namespaces))
    for _ in range(MOST_ROUNDS):
        looks = [
            _look(controller, view, ref, give, now)
            for controller in controllers
            for place in places
            for ref in _looked_at(view, controller, place)
        ]
        if not any(looks):
            return


def _looked_at(view: Visible, controller: Controller, namespace: str) -> Iterator[Ref]:
    kind = AT_WORK.get(controller.name)
    if kind == NAMESPACE:
        yield Ref(NAMESPACE, "", namespace)
    elif kind is not None:
        yield from (stored.ref for stored in view.all_of(kind, namespace))


def _look(controller: Controller, view: Visible, ref: Ref, give: Give, now: Ms) -> bool:
    """One look of a controller; tells whether anything changed."""
    looking = controller.react(view, ref, now)
    outcome: Outcome | None = None
    has_changed = False
    while True:
        try:
            wanted = looking.send(outcome)
        except StopIteration:
            return has_changed
        outcome = give(wanted) if isinstance(wanted, Write) else None
        has_changed = has_changed or (outcome is not None and not is_refusal(outcome))
