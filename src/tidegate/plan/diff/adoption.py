"""Taking over what other tools applied: their fields become ours.

Server-side apply takes away only what its own manager owned before. Fields that kubectl, Helm or
another engine left would survive their removal from Git, unless we own them first.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import msgspec

from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.plan.diff.owned import APPLY, Body, Fields, entries_of, fields_in, is_entry_of, unite

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ADOPTED = frozenset(
    [
        "argocd-application-controller",
        "argocd-controller",
        "before-first-apply",
        "helm",
        "Helm",
        "helm-controller",
        "kubectl*",
        "kustomize-controller",
    ]
)
"""Managers whose fields become ours. With a star: all whose name begins so."""
REPORTERS = frozenset({"argocd-application-controller"})
"""Those of them who say how an object is in the object itself: that stays theirs."""
REPORTED = frozenset({"f:status", "f:operation"})


def is_adopted(entry: Body, manager: str, adopted: frozenset[str] = ADOPTED) -> bool:
    """Whether what an entry owns is to become the manager's; what it applied itself is already."""
    only_reports = reported(entry) and not adoptable(entry)
    if entry.get("subresource") or is_entry_of(entry, manager) or only_reports:
        return False
    name = text(entry, "manager")
    return name in adopted or name.startswith(_beginnings(adopted))


def adoptable(entry: Body) -> Fields:
    """What an entry owns, without what its manager only reports."""
    fields = fields_in(entry)
    if text(entry, "manager") not in REPORTERS or not REPORTED & fields.keys():
        return fields
    return {name: inner for name, inner in fields.items() if name not in REPORTED}


def reported(entry: Body) -> Fields:
    """The rest of it."""
    kept = adoptable(entry)
    return {name: inner for name, inner in fields_in(entry).items() if name not in kept}


@cache
def _beginnings(adopted: frozenset[str]) -> tuple[str, ...]:
    return tuple(name[:-1] for name in adopted if name.endswith("*"))


def adopted_managers(
    live: Body, manager: str, adopted: frozenset[str] = ADOPTED
) -> tuple[str, ...]:
    """The managers whose fields become ours when we take the object over."""
    taken = (entry for entry in entries_of(live) if is_adopted(entry, manager, adopted))
    return tuple(sorted({text(entry, "manager") for entry in taken}))


def adoption_patch(live: Body, manager: str, adopted: frozenset[str] = ADOPTED) -> bytes | None:
    """A JSON patch that makes their fields ours, for this version of the object only.

    None where there is nothing to take over.
    """
    entries = entries_of(live)
    taken = [entry for entry in entries if is_adopted(entry, manager, adopted)]
    if not taken:
        return None
    ours = [entry for entry in entries if is_entry_of(entry, manager)]
    rest: list[Json] = [
        entry for entry in entries if not any(entry is gone for gone in (*ours, *taken))
    ]
    rest += (
        {**entry, "fieldsV1": cast("Json", left)} for entry in taken if (left := reported(entry))
    )
    patch: list[Json] = [
        _replace("/metadata/managedFields", [_one_entry(live, manager, [*ours, *taken]), *rest]),
        # Replaced and not tested: then the server says conflict, and not that the patch is wrong.
        _replace("/metadata/resourceVersion", text(live, "metadata", "resourceVersion")),
    ]
    if LAST_APPLIED in mapping(live, "metadata", "annotations"):
        escaped = LAST_APPLIED.replace("/", "~1")
        patch.append({"op": "remove", "path": f"/metadata/annotations/{escaped}"})
    return msgspec.json.encode(patch)


def _replace(path: str, value: Json) -> Body:
    return {"op": "replace", "path": path, "value": value}


def _one_entry(live: Body, manager: str, entries: list[Body]) -> Body:
    fields: Fields = {}
    for entry in entries:
        fields = unite(fields, adoptable(entry))
    times = [text(entry, "time") for entry in entries]
    return {
        "manager": manager,
        "operation": APPLY,
        "apiVersion": text(live, "apiVersion"),
        **({"time": max(times)} if any(times) else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": cast("Json", _without_last_applied(fields)),
    }


def _without_last_applied(fields: Fields) -> Fields:
    """The annotation is gone, so nobody owns it."""
    metadata = fields.get("f:metadata", {})
    notes = metadata.get("f:annotations", {})
    if f"f:{LAST_APPLIED}" not in notes:
        return fields
    left = {name: inner for name, inner in notes.items() if name != f"f:{LAST_APPLIED}"}
    rest = {name: inner for name, inner in metadata.items() if name != "f:annotations"}
    return {**fields, "f:metadata": {**rest, **({"f:annotations": left} if left else {})}}
