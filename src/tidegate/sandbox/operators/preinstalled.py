"""Preinstalled operators: their objects, and how these become ready.

The objects are namespace, CRDs, workloads and Services. The CRDs accept any spec and status,
also what the CRDs of the operator would reject. The workloads become ready before the
simulation starts: the cluster's controllers reconcile them, all at one time. So nothing is left
to do when the simulation starts, and no watch sees it happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tidegate.knowledge.catalog import KindCatalog, pluralize_kind
from tidegate.knowledge.settings import SIMULATED_ANNOTATION
from tidegate.model.k8s.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref, versionless_key
from tidegate.model.operators.rows import KindRow, Operator, ServiceProduct, Workload
from tidegate.model.simulation.preinstalled import GivenKind
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.interface import Controller, ObjectReader
from tidegate.sandbox.node.profile import ContainerRule, ContainerSelector
from tidegate.sandbox.server.store import ref_from_body
from tidegate.world.messages import Outcome, is_error
from tidegate.world.requests import Write

NAME_LABEL = "app.kubernetes.io/name"
OPEN_SCHEMA: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD_SCHEMA: JsonObject = {
    "openAPIV3Schema": {**OPEN_SCHEMA, "properties": {"spec": OPEN_SCHEMA, "status": OPEN_SCHEMA}}
}
SIMULATED_METADATA: JsonObject = {"annotations": {SIMULATED_ANNOTATION: "true"}}
SETTLING_CONTROLLERS = {
    "namespaces": NAMESPACE,
    "deployments": DEPLOYMENT,
    "stateful-sets": STATEFUL_SET,
    "daemon-sets": DAEMON_SET,
    "replica-sets": REPLICA_SET,
    "kubelet": POD,
    "endpoints": NAMESPACE,
}
"""The controllers that make a workload ready, by name, and the kind that each reconciles."""
MAX_ROUNDS = 20
WriteFunc = Callable[[Write], Outcome]
"""A function that performs a write on the cluster."""


class InstalledOperator(NamedTuple):
    """An installed operator and its namespace."""

    operator: Operator
    """The operator."""
    namespace: str
    """The namespace of its workload."""
    installs_crds: bool = True
    """Whether its CRDs are installed as well."""


def operator_objects(
    installed: Iterable[InstalledOperator], rows: Iterable[KindRow]
) -> list[JsonObject]:
    """Return all objects of these operators."""
    all_rows = tuple(rows)
    return [body for operator in installed for body in _objects_of_operator(operator, all_rows)]


def _objects_of_operator(
    installed: InstalledOperator, rows: tuple[KindRow, ...]
) -> Iterator[JsonObject]:
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": installed.namespace, **SIMULATED_METADATA},
    }
    for row in rows:
        if installed.installs_crds and row.operator == installed.operator.name:
            yield from crds_for_row(row)
    for workload in installed.operator.workloads:
        yield workload_body(workload, installed.namespace)
    for service in installed.operator.services:
        yield _service_body(service, installed.namespace)


def crds_for_row(row: KindRow) -> Iterator[JsonObject]:
    """Yield a CRD for each kind of a row."""
    for kind in row.kinds:
        yield _crd(row, kind)


def crds_by_name(given: Iterable[GivenKind], catalog: KindCatalog) -> Iterator[JsonObject]:
    """Yield a CRD for each given kind, in the given versions and those of its row."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    cluster_scoped = set()
    for given_kind in given:
        name = (given_kind.kind.group, given_kind.kind.name)
        if given_kind.defined:
            versions[name] = (*versions.get(name, ()), given_kind.kind.version)
            cluster_scoped |= {name} if given_kind.cluster_wide else set()
    for (group, kind), given_versions in versions.items():
        row = catalog.find_row(Kind(group, "", kind)) or KindRow(
            group=group, kinds=(kind,), versions=(), source="given", stages=()
        )
        all_versions = tuple(dict.fromkeys((*row.versions, *given_versions)))
        is_cluster_scoped = (group, kind) in cluster_scoped or kind in row.cluster_wide
        changes = {"versions": all_versions, "cluster_wide": (kind,) if is_cluster_scoped else ()}
        yield _crd(msgspec.structs.replace(row, **changes), kind)


def _crd(row: KindRow, kind: str) -> JsonObject:
    plural = row.plurals.get(kind) or pluralize_kind(kind)
    names: JsonObject = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
    }
    subresources: JsonObject = {} if kind in row.statusless else {"subresources": {"status": {}}}
    versions = [
        {"name": name, "served": True, "storage": index == 0, "schema": CRD_SCHEMA, **subresources}
        for index, name in enumerate(row.versions)
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{row.group}", **SIMULATED_METADATA},
        "spec": {
            "group": row.group,
            "names": names,
            "scope": "Cluster" if kind in row.cluster_wide else "Namespaced",
            "versions": [*versions],
        },
    }


def workload_body(workload: Workload, namespace: str) -> JsonObject:
    """Return a workload with one pod."""
    labels: JsonObject = {**(workload.labels or {NAME_LABEL: workload.name})}
    container: JsonObject = {"name": "operator", "image": workload.image}
    return {
        "apiVersion": "apps/v1",
        "kind": str(workload.kind),
        "metadata": {
            "name": workload.name,
            "namespace": namespace,
            "labels": labels,
            **SIMULATED_METADATA,
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _service_body(service: ServiceProduct, namespace: str) -> JsonObject:
    ports: list[Json] = [
        {"name": port.name, "port": port.port, "protocol": "TCP"} for port in service.ports
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": namespace, **SIMULATED_METADATA},
        "spec": {"selector": {**service.selector}, "ports": ports},
    }


def instant_start_rules(installed: Iterable[InstalledOperator]) -> list[ContainerRule]:
    """Return profile rules under which these operators start without delay."""
    no_delay = Ms(0)
    return [
        ContainerRule(
            ContainerSelector(
                kind=str(workload.kind), namespace=operator.namespace, name=workload.name
            ),
            {"pull": no_delay, "start": no_delay, "ready": no_delay},
        )
        for operator in installed
        for workload in operator.operator.workloads
    ]


def merge_objects(*groups: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the objects of all groups, namespaces and CRDs first.

    If two groups have the same object, the later one counts.
    """
    by_identity = {versionless_key(ref_from_body(body)): body for group in groups for body in group}
    rank = {"Namespace": 0, "CustomResourceDefinition": 1}
    return sorted(by_identity.values(), key=lambda body: rank.get(str(body.get("kind")), len(rank)))


def settle_preinstalled(
    reader: ObjectReader,
    write: WriteFunc,
    controllers: Sequence[Controller],
    *,
    namespaces: Iterable[str],
    now: Ms,
) -> None:
    """Reconcile everything in these namespaces until nothing changes, all at one time."""
    sorted_namespaces = sorted(set(namespaces))
    for _ in range(MAX_ROUNDS):
        changes = [
            _reconcile(controller, reader, ref, write, now)
            for controller in controllers
            for namespace in sorted_namespaces
            for ref in _objects_to_reconcile(reader, controller, namespace)
        ]
        if not any(changes):
            return


def _objects_to_reconcile(
    reader: ObjectReader, controller: Controller, namespace: str
) -> Iterator[Ref]:
    kind = SETTLING_CONTROLLERS.get(controller.name)
    if kind == NAMESPACE:
        yield Ref(NAMESPACE, "", namespace)
    elif kind is not None:
        yield from (stored.ref for stored in reader.list_objects(kind, namespace))


def _reconcile(
    controller: Controller, reader: ObjectReader, ref: Ref, write: WriteFunc, now: Ms
) -> bool:
    """Run one reconciliation of a controller; return whether anything changed."""
    reconciliation = controller.reconcile(reader, ref, now)
    outcome: Outcome | None = None
    has_changed = False
    while True:
        try:
            request = reconciliation.send(outcome)
        except StopIteration:
            return has_changed
        outcome = write(request) if isinstance(request, Write) else None
        has_changed = has_changed or (outcome is not None and not is_error(outcome))
