"""What a server gives a new Job: a selector and labels that are its own.

A Job that says `manualSelector` chooses both itself. Nobody owns what the server gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.labels import matches
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, part, text
from tidegate.sandbox.server.store import Body, metadata_of
from tidegate.schema.causes import invalid, required
from tidegate.world.facts import Cause

UID = "batch.kubernetes.io/controller-uid"
NAME = "batch.kubernetes.io/job-name"
OLD_UID, OLD_NAME = "controller-uid", "job-name"
LABELS = "spec.template.metadata.labels"


def select_own_pods(job: Body) -> Body:
    """A new Job with the labels that its pods will have, and a selector for them."""
    if _chooses_itself(job):
        return job
    spec, template = mapping(job, "spec"), mapping(job, "spec", "template")
    selector = mapping(spec, "selector")
    own = _own_labels(job)
    labels: Body = {**own, **mapping(template, "metadata", "labels")}
    wanted: Body = {UID: own[UID], **mapping(selector, "matchLabels")}
    completed: Body = {
        **spec,
        "selector": {**selector, "matchLabels": wanted},
        "template": {**template, "metadata": {**mapping(template, "metadata"), "labels": labels}},
    }
    return {**job, "spec": completed}


def find_foreign_labels(job: Body) -> Iterator[Cause]:
    """What a new Job says of its pods that is not so: labels of another Job, above all."""
    selector, labels = part(job, "spec", "selector"), mapping(job, "spec", "template", "metadata")
    given = mapping(labels, "labels")
    if selector is None:
        yield required("spec.selector")
    if not _chooses_itself(job):
        own = _own_labels(job)
        for key in (OLD_UID, OLD_NAME, UID, NAME):
            if given.get(key) != own[key]:
                yield invalid(f"{LABELS}[{key}]", given, f"must be '{own[key]}'")
        if not matches(selector, own):
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not matches(selector, given):
        yield invalid(LABELS, given or None, "`selector` does not match template `labels`")


def _chooses_itself(job: Body) -> bool:
    return part(job, "spec", "manualSelector") is True


def _own_labels(job: Body) -> dict[str, Json]:
    metadata = metadata_of(job)
    uid, name = text(metadata, "uid"), text(metadata, "name")
    return {UID: uid, NAME: name, OLD_UID: uid, OLD_NAME: name}
