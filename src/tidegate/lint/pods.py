"""Pods of an object: the path of their template, their containers and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.lint.context import LintObject
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, JsonObject
from tidegate.model.k8s.pods import POD_TEMPLATE_PATHS
from tidegate.model.text.lazy_regex import lazy_regex

LONG_RUNNING_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
MIGRATION = lazy_regex(r"migrat|flyway|liquibase|alembic|db[-_]?schema", re.IGNORECASE)


def template_path(obj: LintObject) -> FieldPath | None:
    kind = obj.ref.kind
    return POD_TEMPLATE_PATHS.get((kind.group, kind.name))


def pod_template(obj: LintObject) -> JsonObject:
    path = template_path(obj)
    return {} if path is None else get_mapping(obj.body, *map(str, path)) if path else obj.body


def containers(obj: LintObject, *keys: str) -> Iterator[tuple[FieldPath, JsonObject]]:
    """Yield containers with their paths; all of them, unless lists are named."""
    path, spec = template_path(obj), get_mapping(pod_template(obj), "spec")
    for key in keys or ("initContainers", "containers"):
        for at, container in enumerate(get_list(spec, key)):
            if isinstance(container, dict) and path is not None:
                yield (*path, "spec", key, at), container


def images_in(obj: LintObject) -> set[str]:
    """Return the images of all containers, without tag and digest."""
    images = (get_text(container, "image").partition("@")[0] for _, container in containers(obj))
    return {re.sub(r":[^/:]*$", "", image) for image in images if image}


def claim_names(obj: LintObject) -> Iterator[str]:
    """Yield the names of the claims that the pods use."""
    for volume in get_mappings(pod_template(obj), "spec", "volumes"):
        if claim := get_text(volume, "persistentVolumeClaim", "claimName"):
            yield claim


def start_window(container: JsonObject) -> int:
    """Return how many seconds a container may take to start, by its startup probe."""
    probe = get_mapping(container, "startupProbe")
    if not probe:
        return 0
    period = get_int(probe, "periodSeconds", default=10)
    delay = get_int(probe, "initialDelaySeconds")
    return delay + period * get_int(probe, "failureThreshold", default=3)


def ready_window(container: JsonObject) -> int:
    """Return how many seconds a container may take until its probes can report it ready."""
    return start_window(container) + get_int(container, "readinessProbe", "initialDelaySeconds")


def is_migration(container: JsonObject) -> bool:
    """Return whether the name or command of a container indicates a database migration."""
    texts = [get_text(container, "name"), *map(str, get_list(container, "command"))]
    texts += map(str, get_list(container, "args"))
    return any(MIGRATION.search(argument) for argument in texts)
