"""What a write through `status` changes: the status, and of most kinds their metadata as well."""

from __future__ import annotations

from tidegate.model.reading import mapping
from tidegate.sandbox.kinds import STATUS_ALONE
from tidegate.sandbox.server.register import KindEntry
from tidegate.sandbox.server.store import Body, Stored, metadata_of

PODS = ("", "pods")
KEPT = {("apps", "deployments"): ("labels",), PODS: ("ownerReferences",)}
"""Parts of the metadata that stay as they were, though the rest can be changed."""


def change_status(before: Stored, body: Body, entry: KindEntry) -> Body:
    """The object as it was, with all of `body` that can be written through its status."""
    changed: Body = {**before.body, "metadata": _metadata(before, body, entry)}
    status = body.get("status")
    if status is None:
        changed.pop("status", None)
    else:
        changed["status"] = status
    given = mapping(before.body, "status").get("qosClass") if entry.resource == PODS else None
    if given and not mapping(changed, "status").get("qosClass"):
        changed["status"] = {**mapping(changed, "status"), "qosClass": given}
    return changed


def _metadata(before: Stored, body: Body, entry: KindEntry) -> Body:
    told = metadata_of(body)
    kind = entry.kind
    if told is before.metadata or entry.is_custom or (kind.group, kind.name) in STATUS_ALONE:
        return before.metadata
    kept = KEPT.get(entry.resource, ())
    metadata = {name: part for name, part in told.items() if name not in kept}
    return metadata | {name: before.metadata[name] for name in kept if name in before.metadata}
