"""Templates of a StatefulSet, stored as ControllerRevisions for rollback."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import Json, Kind
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Outcome
from tidegate.world.requests import Write

CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision")
DIGEST_LABEL = "controller.kubernetes.io/hash"
HISTORY_LIMIT = 10


class StatefulSetRevisions(NamedTuple):
    """The revisions of a StatefulSet, by name."""

    current: str
    """The revision that the pods had so far."""
    update: str
    """The revision that the pods are updated to."""
    templates: dict[str, Json]
    """The templates by revision name."""

    def template(self, name: str) -> dict[str, Json]:
        """Return the template of a revision."""
        return get_mapping(self.templates, name)


def sync_revisions(
    reader: ObjectReader, owner: StoredObject
) -> Generator[Write, Outcome | None, StatefulSetRevisions]:
    """Record the current template; one that was recorded before becomes the newest again.

    Like `getStatefulSetRevisions` in `pkg/controller/statefulset/stateful_set_control.go` of
    Kubernetes 1.36.4.
    """
    revisions = list_revisions(reader, owner)
    template = get_value(owner.body, "spec", "template")
    digest = writes.compute_hash(template)
    name = f"{owner.ref.name}-{digest}"
    newest = get_int(revisions[-1].body, "revision") if revisions else 0
    existing = next((revision for revision in revisions if revision.ref.name == name), None)
    if existing is None:
        yield _new_revision(owner, name, digest, newest + 1)
    elif get_int(existing.body, "revision") < newest:
        yield writes.patch(existing, {"revision": newest + 1})
    templates = {
        revision.ref.name: get_value(revision.body, "data", "spec", "template")
        for revision in revisions
    }
    recorded = get_text(owner.body, "status", "currentRevision")
    current = recorded if recorded in templates else name
    return StatefulSetRevisions(current, name, {**templates, name: template})


def list_revisions(reader: ObjectReader, owner: StoredObject) -> list[StoredObject]:
    """Return the ControllerRevisions, the oldest first."""
    revisions = writes.list_controlled(reader, owner, CONTROLLER_REVISION)
    return sorted(
        revisions, key=lambda revision: (get_int(revision.body, "revision"), revision.ref.name)
    )


def truncate_history(
    reader: ObjectReader,
    owner: StoredObject,
    revisions: StatefulSetRevisions,
    pods: list[StoredObject],
) -> Iterator[Write]:
    """Delete unused revisions beyond `revisionHistoryLimit`.

    Like `truncateHistory` in `pkg/controller/statefulset/stateful_set_control.go` of Kubernetes
    1.36.4.
    """
    used = {revisions.current, revisions.update}
    used |= {get_text(pod.metadata, "labels", "controller-revision-hash") for pod in pods}
    unused = [
        revision for revision in list_revisions(reader, owner) if revision.ref.name not in used
    ]
    limit = get_int(owner.body, "spec", "revisionHistoryLimit", default=HISTORY_LIMIT)
    for revision in unused[: max(0, len(unused) - limit)]:
        yield writes.delete(revision)


def _new_revision(owner: StoredObject, name: str, digest: str, revision: int) -> Write:
    template = get_mapping(owner.body, "spec", "template")
    labels = {**get_mapping(template, "metadata", "labels"), DIGEST_LABEL: digest}
    return writes.create(
        CONTROLLER_REVISION,
        owner.ref.namespace,
        {
            "metadata": {
                "name": name,
                "namespace": owner.ref.namespace,
                "labels": labels,
                "ownerReferences": [writes.owner_reference(owner)],
            },
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
            "revision": revision,
        },
    )
