"""What a cluster has of what rows speak of: who serves a kind, what is needed, met, and held.

Pods that are held run, and are not ready until somebody has unsealed or set them up. For whoever
plays the kubelet, `held` tells whether, and why, a pod cannot be ready now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice

from tidegate.knowledge.catalogue import KnownRows, containers_of, is_ready, serves
from tidegate.knowledge.references import Needed
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import EVERY, Hold, Row, Until
from tidegate.model.reading import listed, mapping, mappings, number, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.selectors import slices_of
from tidegate.sandbox.kinds import CONFIG_MAP, DEFINITIONS, JOB, WORKLOADS
from tidegate.sandbox.server.register import served_versions
from tidegate.sandbox.server.store import Body, Stored
from tidegate.schema.builtin import served_kinds


def is_available(workload: Stored) -> bool:
    """Whether at least one of its pods is there to do its work."""
    if workload.is_deleting:
        return False
    status = mapping(workload.body, "status")
    counts = ("availableReplicas", "numberAvailable", "readyReplicas")
    return any(number(status, count) > 0 for count in counts)


def available_since(workload: Stored) -> Ms:
    for condition in mappings(workload.body, "status", "conditions"):
        if condition.get("type") == "Available" and condition.get("status") == "True":
            return moment_of(condition.get("lastTransitionTime")) or touched(workload)
    return touched(workload)


def touched(stored: Stored) -> Ms:
    """When an object was last changed, as far as its fields' owners tell."""
    stamps = [entry.time for entry in stored.owners if entry.time]
    last = max(stamps, default="") or text(stored.metadata, "creationTimestamp")
    return moment_of(last) or Ms(0)


def row_for(known: KnownRows, kind: Kind) -> Row | None:
    """The row of a kind, or the one for all others; None for Kubernetes' own kinds."""
    found = known.row_of(kind)
    if found is not None or kind.group in builtin_groups():
        return found
    return known.rows.get((EVERY, EVERY))


def server_of(known: KnownRows, view: Visible, kind: Kind) -> Stored | None:
    """The operator of a kind, if it is there and available; found by looking at them all."""
    for workload in _workloads(view):
        if is_available(workload) and known.is_server(workload.body, kind):
            return workload
    return None


def is_served(known: KnownRows, view: Visible, kind: Kind) -> bool:
    row = row_for(known, kind)
    is_outside = row is not None and row.served_by.outside
    return is_outside or server_of(known, view, kind) is not None


def why_unserved(known: KnownRows, view: Visible, kind: Kind) -> str:
    idle = [one.ref for one in _workloads(view) if known.is_server(one.body, kind)]
    if idle:
        return f"the operator of {kind.name} does not run: {idle[0]} is not available"
    return f"no operator for {kind.name}: no workload here is known to run one for {kind.group}"


def find_needed(known: KnownRows, view: Visible, needed: Needed) -> Stored | None:
    """The object that is needed, in its namespace or in none."""
    for version in _versions_of(known, view, needed.group, needed.kind):
        kind = Kind(needed.group, version, needed.kind)
        for namespace in dict.fromkeys((needed.namespace, "")):
            stored = view.get(Ref(kind, namespace, needed.name))
            if stored is not None:
                return stored
    return None


def is_met(known: KnownRows, view: Visible, needed: Needed) -> bool:
    stored = find_needed(known, view, needed)
    if stored is None or stored.is_deleting:
        return False
    match needed.need.until:
        case Until.EXISTS:
            return True
        case Until.READY:
            row = row_for(known, stored.ref.kind)
            return row is None or is_ready(row, stored.body)
        case Until.SERVING:
            return _answers(view, stored.ref)


def custom_kinds(view: Visible) -> Iterator[Kind]:
    """The kinds of a cluster's CRDs, each once."""
    for definition in view.all_of(DEFINITIONS):
        yield from (kind for kind, _ in islice(served_versions(definition.body), 1))


def _versions_of(known: KnownRows, view: Visible, group: str, kind: str) -> Iterable[str]:
    row = known.rows.get((group, kind))
    if row is not None:
        return row.versions
    builtin = _builtin_versions().get((group, kind))
    if builtin is not None:
        return builtin
    return (one.version for one in custom_kinds(view) if (one.group, one.name) == (group, kind))


def _workloads(view: Visible) -> Iterator[Stored]:
    return (workload for kind in WORKLOADS for workload in view.all_of(kind))


def _answers(view: Visible, service: Ref) -> bool:
    """Whether a Service has an endpoint that serves, be it announced before it is ready or not."""
    return any(
        _serves(mapping(endpoint, "conditions"))
        for one in slices_of(view, service)
        for endpoint in mappings(one.body, "endpoints")
    )


def _serves(conditions: Body) -> bool:
    serving = conditions.get("serving")
    return conditions.get("ready") is not False if serving is None else serving is True


@cache
def builtin_groups() -> frozenset[str]:
    return frozenset(served.kind.group for served in served_kinds())


@cache
def _builtin_versions() -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for served in served_kinds():
        key = (served.kind.group, served.kind.name)
        found[key] = (*found.get(key, ()), served.kind.version)
    return found


def held(view: Visible, pod: Stored, holds: Iterable[Hold]) -> str:
    """Why a pod cannot be ready; empty where nothing holds it."""
    for hold in holds:
        if serves(hold.pods, pod.body) and not _is_free(view, pod, hold):
            return hold.reason
    return ""


def _is_free(view: Visible, pod: Stored, hold: Hold) -> bool:
    if any(mark in said for said in _texts(view, pod) for mark in hold.unless):
        return True
    return any(
        number(job.body, "status", "succeeded") > 0
        and any(fnmatchcase(job.ref.name, pattern) for pattern in hold.until_jobs)
        for job in view.all_of(JOB, pod.ref.namespace)
    )


def _texts(view: Visible, pod: Stored) -> Iterator[str]:
    """Where a pod's settings stand: its command lines, its variables, its ConfigMaps."""
    for container in containers_of(pod.body):
        words = (*listed(container, "command"), *listed(container, "args"))
        yield " ".join(str(word) for word in words)
        for variable in mappings(container, "env"):
            yield f"{variable.get('name')}={variable.get('value')}"
    for volume in mappings(pod.body, "spec", "volumes"):
        name = text(volume, "configMap", "name")
        found = view.get(Ref(CONFIG_MAP, pod.ref.namespace, name)) if name else None
        if found is not None:
            yield from (str(value) for value in mapping(found.body, "data").values())
