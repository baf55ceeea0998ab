"""Containers that run `kubectl wait`: the objects, whether they satisfy the wait, and since when.

No state is kept between reconciliations: the start of each wait follows from the end of those
before it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tidegate.knowledge.templates import scalar_text
from tidegate.knowledge.waits import (
    KubectlWait,
    OnWaitTimeout,
    WaitCondition,
    find_command_waits,
    find_script_waits,
)
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.kinds import CRD, DAEMON_SET, STATEFUL_SET
from tidegate.model.k8s.labels import SelectorError, parse_label_selector
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.conditions import conditions_of, read_timestamp
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.kinds import WATCHED_KINDS
from tidegate.sandbox.node.kubelet.config_references import container_variables
from tidegate.sandbox.node.kubelet.container_context import ContainerContext
from tidegate.sandbox.node.kubelet.service_calls import list_scripts
from tidegate.sandbox.server.kind_registry import list_served_versions
from tidegate.sandbox.server.store import StoredObject
from tidegate.schema.builtin import served_kinds

KUBECTL = "kubectl"
SHORT_NAMES = {
    "po": "Pod",
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rs": "ReplicaSet",
    "svc": "Service",
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "sc": "StorageClass",
    "cm": "ConfigMap",
    "ns": "Namespace",
    "no": "Node",
    "crd": "CustomResourceDefinition",
    "crds": "CustomResourceDefinition",
}


class PendingWait(NamedTuple):
    """A wait that is not satisfied: its deadline, and what is missing."""

    deadline: Ms | None
    """When the wait gives up; None for never."""
    missing: str
    """What is missing."""


class FailedWait(NamedTuple):
    """A wait that failed: when, why, and the line that kubectl prints."""

    time: Ms
    """When the wait failed."""
    missing: str
    """What was missing."""
    line: str
    """The line that kubectl prints."""


def evaluate_waits(
    context: ContainerContext, started_at: Ms, now: Ms
) -> Ms | PendingWait | FailedWait:
    """Return when the last wait was satisfied, or the pending wait, or the failed one.

    Like `RunWait` in `pkg/cmd/wait/wait.go` of k8s.io/kubectl 0.36.4.
    """
    done_at = started_at
    for wait in container_waits(context.reader, context.pod, context.container):
        objects = _find_objects(context, wait)
        if objects is None:
            continue
        since, missing = _satisfied_since(wait, objects)
        if since is not None:
            done_at = max(done_at, since)
            continue
        ends_at = _deadline(wait, done_at, has_any=bool(objects))
        if ends_at is None or now < ends_at:
            return PendingWait(ends_at, missing)
        if wait.on_timeout is OnWaitTimeout.FAILS:
            return FailedWait(ends_at, missing, _error_line(wait, has_any=bool(objects)))
        done_at = ends_at
    return done_at


def container_waits(
    reader: ObjectReader, pod: StoredObject, container: Json
) -> tuple[KubectlWait, ...]:
    """Return the waits in the command of a container, and in the scripts that it names."""
    command = [str(word) for word in get_list(container, "command")]
    image = get_text(container, "image").rpartition("/")[2]
    if not command and image.partition(":")[0].startswith(KUBECTL):
        command = [KUBECTL]
    command += [str(word) for word in get_list(container, "args")]

    scripts = [script for _, script in list_scripts(reader, pod, container)]
    if not any(KUBECTL in script_text for script_text in (*command, *scripts)):
        return ()
    variables = {
        variable.name: variable.value for variable in container_variables(reader, pod, container)
    }
    command_waits = find_command_waits(command, variables)
    return (
        *command_waits,
        *(wait for script_text in scripts for wait in find_script_waits(script_text, variables)),
    )


def _find_objects(context: ContainerContext, wait: KubectlWait) -> list[StoredObject] | None:
    """Return the objects of a wait as they are now; None if kind or selector are unknown."""
    reader = context.reader
    kind = _resolve_kind(reader, wait.resource)
    if kind is None:
        return None
    default_namespace = wait.namespace or context.pod.ref.namespace
    if wait.name:
        refs = (Ref(kind, namespace, wait.name) for namespace in (default_namespace, ""))
        return [stored for ref in refs if (stored := reader.get(ref)) is not None][:1]
    try:
        requirements = parse_label_selector(wait.selector)
    except SelectorError:
        return None
    candidates = reader.list_objects(kind, "" if default_namespace == "*" else default_namespace)
    return [
        stored
        for stored in candidates
        if all(requirement.matches(stored.labels) for requirement in requirements)
    ]


def _resolve_kind(reader: ObjectReader, word: str) -> Kind | None:
    """Return the kind for a resource name of kubectl, built-in or of a CRD; else None."""
    builtin_kind = _builtin_kinds().get(word)
    if builtin_kind is not None:
        return builtin_kind
    resource, _, group = word.partition(".")
    for definition in reader.list_objects(CRD):
        names = get_mapping(definition.body, "spec", "names")
        known_names = {
            get_text(names, "plural"),
            get_text(names, "singular"),
            get_text(names, "kind").lower(),
        }
        known_names |= {str(short_name) for short_name in get_list(names, "shortNames")}
        if resource in known_names and _matches_group(
            get_text(definition.body, "spec", "group"), group
        ):
            return next((kind for kind, _ in list_served_versions(definition.body)), None)
    return None


def _matches_group(group: str, written: str) -> bool:
    """Return whether a written suffix, empty, `group` or `version.group`, names a group."""
    return not written or written == group or written.partition(".")[2] == group


@cache
def _builtin_kinds() -> dict[str, Kind]:
    """Return the kinds that a kubelet reads, by resource name and short name."""
    by_name = {kind.name: kind for kind in WATCHED_KINDS}
    by_word = {short: by_name[name] for short, name in SHORT_NAMES.items()}
    for served in served_kinds():
        if served.kind in WATCHED_KINDS:
            for word in (served.plural, served.kind.name.lower()):
                by_word |= {
                    word: served.kind,
                    f"{word}.{served.kind.group}".rstrip("."): served.kind,
                }
    return by_word


def _satisfied_since(wait: KubectlWait, objects: list[StoredObject]) -> tuple[Ms | None, str]:
    """Return since when a wait is satisfied; else None, and what is missing."""
    if wait.condition is WaitCondition.DELETED:
        return (None, f"{objects[0].ref} is still there") if objects else (Ms(0), "")
    if not objects:
        return None, f"{wait.target} is not there"
    times: list[Ms] = []
    for stored in objects:
        since = _object_satisfied_since(wait, stored)
        if since is None:
            return None, f"{stored.ref}: {_unmet_message(wait)}"
        times.append(since)
    return max(times), ""


def _unmet_message(wait: KubectlWait) -> str:
    match wait.condition:
        case WaitCondition.CONDITION:
            return f"condition {wait.key} is not {wait.value}"
        case WaitCondition.FIELD:
            return f"`{wait.key}` is not {wait.value or 'there'}"
        case _:
            return "it is not rolled out"


def _object_satisfied_since(wait: KubectlWait, stored: StoredObject) -> Ms | None:
    """Return since when an object satisfies a wait, as far as its status shows; else None."""
    match wait.condition:
        case WaitCondition.CONDITION:
            return _condition_since(stored, wait.key, wait.value)
        case WaitCondition.FIELD:
            value = get_value(stored.body, *wait.key.split("."))
            is_satisfied = (
                value not in (None, "") if not wait.value else scalar_text(value) == wait.value
            )
            return Ms(0) if is_satisfied else None
        case WaitCondition.ROLLED_OUT:
            return Ms(0) if _is_rolled_out(stored) else None
        case _:
            return read_timestamp(stored.metadata.get("creationTimestamp")) or Ms(0)


def _condition_since(stored: StoredObject, key: str, value: str) -> Ms | None:
    """Return since when a condition has this value; one of an older generation is ignored.

    Like `checkCondition` in `pkg/cmd/wait/condition.go` of k8s.io/kubectl 0.36.4.
    """
    for condition in conditions_of(stored):
        if get_text(condition, "type").lower() != key.lower():
            continue
        observed = get_int(condition, "observedGeneration") or get_int(
            stored.body, "status", "observedGeneration"
        )
        is_old = bool(observed) and observed < stored.generation
        if is_old or get_text(condition, "status").lower() != value.lower():
            return None
        return read_timestamp(condition.get("lastTransitionTime")) or Ms(0)
    return None


def _is_rolled_out(stored: StoredObject) -> bool:
    """Return whether a workload is rolled out, like `kubectl rollout status`.

    Like `DeploymentStatusViewer`, `DaemonSetStatusViewer` and `StatefulSetStatusViewer` in
    `pkg/polymorphichelpers/rollout_status.go` of k8s.io/kubectl 0.36.4.
    """
    status = get_mapping(stored.body, "status")
    if get_int(status, "observedGeneration") < stored.generation:
        return False
    if stored.ref.kind == DAEMON_SET:
        desired = get_int(status, "desiredNumberScheduled")
        counts = ("updatedNumberScheduled", "numberAvailable")
        return all(get_int(status, count) >= desired for count in counts)
    desired = get_int(stored.body, "spec", "replicas", default=1)
    if stored.ref.kind == STATEFUL_SET:
        return min(get_int(status, "readyReplicas"), get_int(status, "updatedReplicas")) >= desired
    updated = get_int(status, "updatedReplicas")
    has_no_old_pods = get_int(status, "replicas") <= updated
    return (
        updated >= desired and has_no_old_pods and get_int(status, "availableReplicas") >= updated
    )


def _deadline(wait: KubectlWait, started_at: Ms, *, has_any: bool) -> Ms | None:
    """Return when a wait gives up; None for never.

    A missing object fails the wait at once, unless the wait is for its creation.
    """
    if wait.on_timeout is OnWaitTimeout.STAYS:
        return None
    if not has_any and wait.condition is not WaitCondition.CREATED:
        return started_at
    return None if wait.timeout is None else Ms(started_at + wait.timeout)


def _error_line(wait: KubectlWait, *, has_any: bool) -> str:
    if not has_any:
        not_found = f'Error from server (NotFound): {wait.resource} "{wait.name}" not found'
        return not_found if wait.name else "error: no matching resources found"
    return f"error: timed out waiting for the condition on {wait.target}"
