"""The templates of a StatefulSet, kept as ControllerRevisions so that it can go back to one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from tidegate.model.objects import Json, Kind
from tidegate.model.reading import mapping, number, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.server.store import Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome

CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision")
DIGEST_LABEL = "controller.kubernetes.io/hash"
HISTORY_LIMIT = 10


class Revisions(NamedTuple):
    """By name: what the pods have had so far, and what they are to have."""

    current: str
    update: str
    templates: dict[str, Json]

    def template(self, name: str) -> dict[str, Json]:
        return mapping(self.templates, name)


def keep_revisions(view: Visible, owner: Stored) -> Generator[Write, Outcome | None, Revisions]:
    """Record the template of now, unless it is known; one that comes back is the newest again."""
    known = revisions_of(view, owner)
    template = part(owner.body, "spec", "template")
    digest = writes.digest_of(template)
    name = f"{owner.ref.name}-{digest}"
    newest = number(known[-1].body, "revision") if known else 0
    found = next((one for one in known if one.ref.name == name), None)
    if found is None:
        yield _new_revision(owner, name, digest, newest + 1)
    elif number(found.body, "revision") < newest:
        yield writes.patch(found, {"revision": newest + 1})
    templates = {one.ref.name: part(one.body, "data", "spec", "template") for one in known}
    said = text(owner.body, "status", "currentRevision")
    current = said if said in templates else name
    return Revisions(current, name, {**templates, name: template})


def revisions_of(view: Visible, owner: Stored) -> list[Stored]:
    """The oldest first."""
    found = writes.controlled(view, owner, CONTROLLER_REVISION)
    return sorted(found, key=lambda one: (number(one.body, "revision"), one.ref.name))


def forget_revisions(
    view: Visible, owner: Stored, revisions: Revisions, pods: list[Stored]
) -> Iterator[Write]:
    """Those that no pod has and that are too many for the history."""
    used = {revisions.current, revisions.update}
    used |= {text(pod.metadata, "labels", "controller-revision-hash") for pod in pods}
    idle = [one for one in revisions_of(view, owner) if one.ref.name not in used]
    limit = number(owner.body, "spec", "revisionHistoryLimit", default=HISTORY_LIMIT)
    for one in idle[: max(0, len(idle) - limit)]:
        yield writes.delete(one)


def _new_revision(owner: Stored, name: str, digest: str, revision: int) -> Write:
    template = mapping(owner.body, "spec", "template")
    labels = {**mapping(template, "metadata", "labels"), DIGEST_LABEL: digest}
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
