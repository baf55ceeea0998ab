"""The pods of an object: where their spec stands, their containers, and what these run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.documents import FieldPath
from tidegate.lint.scene import Actor, Body
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, mappings, number, text

PODS: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("", "Pod"): (),
}
"""Where the template of an object's pods stands; a Pod is its own."""
LASTING = ("Deployment", "StatefulSet", "DaemonSet")
MIGRATION = late(r"migrat|flyway|liquibase|alembic|db[-_]?schema", re.IGNORECASE)


def template_path(actor: Actor) -> FieldPath | None:
    kind = actor.ref.kind
    return PODS.get((kind.group, kind.name))


def template_of(actor: Actor) -> Body:
    path = template_path(actor)
    return {} if path is None else mapping(actor.body, *map(str, path)) if path else actor.body


def containers(actor: Actor, *keys: str) -> Iterator[tuple[FieldPath, Body]]:
    """The containers with their paths; all of them, unless some lists are named."""
    path, spec = template_path(actor), mapping(template_of(actor), "spec")
    for key in keys or ("initContainers", "containers"):
        for at, one in enumerate(listed(spec, key)):
            if isinstance(one, dict) and path is not None:
                yield (*path, "spec", key, at), one


def images_in(actor: Actor) -> set[str]:
    """The images of all containers, without tag and digest."""
    images = (text(one, "image").partition("@")[0] for _, one in containers(actor))
    return {re.sub(r":[^/:]*$", "", image) for image in images if image}


def claims_of(actor: Actor) -> Iterator[str]:
    """The volumes that its pods claim by name."""
    for volume in mappings(template_of(actor), "spec", "volumes"):
        if claim := text(volume, "persistentVolumeClaim", "claimName"):
            yield claim


def start_window(container: Body) -> int:
    """How many seconds a container may take until it has started, by its startup probe."""
    probe = mapping(container, "startupProbe")
    if not probe:
        return 0
    period = number(probe, "periodSeconds", default=10)
    delay = number(probe, "initialDelaySeconds")
    return delay + period * number(probe, "failureThreshold", default=3)


def ready_window(container: Body) -> int:
    """How many seconds a container may take until its probes can call it ready."""
    return start_window(container) + number(container, "readinessProbe", "initialDelaySeconds")


def migrates(container: Body) -> bool:
    """Whether a container says that it changes the shape of a database."""
    words = [text(container, "name"), *map(str, listed(container, "command"))]
    words += map(str, listed(container, "args"))
    return any(MIGRATION.search(word) for word in words)
