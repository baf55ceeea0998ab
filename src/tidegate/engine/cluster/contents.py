"""Collateral deletions: objects of other owners in a deleted namespace or of a deleted CRD.

Checked before the first write, and by commands that preview a deletion. Objects with an owner
reference, and objects that every namespace has, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.engine.cluster.preflight.probes import crd_kinds
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.model.display import join_limited
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.kinds import CRD, NAMESPACE
from tidegate.model.k8s.objects import (
    ClusterRef,
    JsonObject,
    Kind,
    LiveObject,
    Ref,
    ServedKind,
    object_body,
)
from tidegate.world.messages import ListPage
from tidegate.world.requests import List, Selection, View

TRANSIENT_RESOURCES = frozenset({"events", "endpoints", "endpointslices", "leases", "bindings"})
DEFAULT_OBJECTS = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
"""Objects that every namespace has."""
FindOwner = Callable[[JsonObject], str]


def find_collateral(
    object_ref: ClusterRef,
    live: LiveObject,
    served: Iterable[ServedKind],
    find_owner: FindOwner,
    tracking_id: str,
) -> Procedure[list[Ref]]:
    """Return the objects of other owners that are deleted with an object of the unit."""
    kinds = [
        served_kind
        for served_kind in served
        if "list" in served_kind.verbs and served_kind.plural not in TRANSIENT_RESOURCES
    ]
    selections = _selections(object_ref.ref, live, kinds)
    outcomes = yield tuple(ApiCall(object_ref.cluster, List(selection)) for selection in selections)
    pages = (page.items for page in outcomes if isinstance(page, ListPage))
    objects = (item for page in pages for item in page)
    return sorted(
        {
            item.ref
            for item in objects
            if _is_collateral(item) and find_owner(object_body(item)) != tracking_id
        }
    )


def collateral_message(refs: list[Ref]) -> str:
    """Describe the objects that are also deleted, and how to allow it."""
    count = "an object" if len(refs) == 1 else f"{len(refs)} objects"
    return (
        f"deleting it also deletes {count} of other owners: {join_limited(refs)};"
        " move them, or allow it with `--yes-delete-contents`"
    )


def _selections(ref: Ref, live: LiveObject, kinds: list[ServedKind]) -> list[Selection]:
    if ref.kind == NAMESPACE:
        chosen: dict[tuple[str, str], Kind] = {}
        for served_kind in kinds:
            if served_kind.namespaced:
                chosen.setdefault((served_kind.kind.group, served_kind.kind.name), served_kind.kind)
        return [Selection(kind, ref.name, view=View.METADATA) for kind in chosen.values()]
    if ref.kind == CRD:
        known = {served_kind.kind for served_kind in kinds}
        defined = [kind for kind in crd_kinds(object_body(live)) if kind in known]
        return [Selection(kind, view=View.METADATA) for kind in defined[:1]]
    return []


def _is_collateral(live: LiveObject) -> bool:
    is_default = (live.ref.kind.name, live.ref.name) in DEFAULT_OBJECTS
    return not is_default and not get_list(object_body(live), "metadata", "ownerReferences")
