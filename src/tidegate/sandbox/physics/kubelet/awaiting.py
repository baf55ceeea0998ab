"""A container that runs `kubectl wait`: what it waits for, whether that is so, and since when.

Nothing is kept between two looks: when each wait began follows from when those before it ended.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tidegate.knowledge.hosts import scripts_of
from tidegate.knowledge.waits import Aim, KubectlWait, Overrun, waits_in, waits_of
from tidegate.model.labels import SelectorError, read_labels
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import listed, mapping, number, part, text
from tidegate.sandbox.controllers.conditions import conditions_of, moment_of
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.kinds import CONFIG_MAP, DAEMON_SET, DEFINITIONS, LOOKED_AT, STATEFUL_SET
from tidegate.sandbox.physics.kubelet.needs import variables_of
from tidegate.sandbox.physics.kubelet.scene import Scene
from tidegate.sandbox.server.register import served_versions
from tidegate.sandbox.server.store import Stored
from tidegate.schema.builtin import served_kinds

KUBECTL = "kubectl"
SHORT = {
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


class Awaited(NamedTuple):
    """Something is waited for: until when at most, and what is missing."""

    until: Ms | None
    missing: str


class GivenUp(NamedTuple):
    """A wait has ended in vain: when, why, and what kubectl prints then."""

    moment: Ms
    missing: str
    line: str


def follow_waits(scene: Scene, began: Ms, now: Ms) -> Ms | Awaited | GivenUp:
    """When the last wait was over; or what is waited for now; or what was waited for in vain."""
    at = began
    for wait in waits_of_container(scene.view, scene.pod, scene.container):
        found = _objects(scene, wait)
        if found is None:
            continue
        since, missing = _since(wait, found)
        if since is not None:
            at = max(at, since)
            continue
        ends = _ends(wait, at, has_any=bool(found))
        if ends is None or now < ends:
            return Awaited(ends, missing)
        if wait.overrun is Overrun.FAILS:
            return GivenUp(ends, missing, _printed(wait, has_any=bool(found)))
        at = ends
    return at


def waits_of_container(view: Visible, pod: Stored, container: Json) -> tuple[KubectlWait, ...]:
    """What its command waits for, and the scripts that this names."""
    command = [str(word) for word in listed(container, "command")]
    image = text(container, "image").rpartition("/")[2]
    if not command and image.partition(":")[0].startswith(KUBECTL):
        command = [KUBECTL]
    command += [str(word) for word in listed(container, "args")]

    def find(name: str) -> Json:
        found = view.get(Ref(CONFIG_MAP, pod.ref.namespace, name))
        return found.body if found else None

    scripts = [script for _, script in scripts_of(container, pod.body.get("spec"), find)]
    if not any(KUBECTL in one for one in (*command, *scripts)):
        return ()
    variables = dict(variables_of(view, pod, container))
    own = waits_of(command, variables)
    return (*own, *(wait for one in scripts for wait in waits_in(one, variables)))


def _objects(scene: Scene, wait: KubectlWait) -> list[Stored] | None:
    """What is waited for, as it is now; None where nobody knows what is meant."""
    view = scene.view
    kind = _kind(view, wait.resource)
    if kind is None:
        return None
    home = wait.namespace or scene.pod.ref.namespace
    if wait.name:
        refs = (Ref(kind, namespace, wait.name) for namespace in (home, ""))
        return [one for ref in refs if (one := view.get(ref)) is not None][:1]
    try:
        asked = read_labels(wait.selector)
    except SelectorError:
        return None
    every = view.all_of(kind, "" if home == "*" else home)
    return [one for one in every if all(each.holds(one.labels) for each in asked)]


def _kind(view: Visible, word: str) -> Kind | None:
    """The kind that kubectl takes a word for: Kubernetes' own, or one of a CRD."""
    found = _builtin().get(word)
    if found is not None:
        return found
    resource, _, group = word.partition(".")
    for definition in view.all_of(DEFINITIONS):
        names = mapping(definition.body, "spec", "names")
        own = {text(names, "plural"), text(names, "singular"), text(names, "kind").lower()}
        own |= {str(one) for one in listed(names, "shortNames")}
        if resource in own and _is_group(text(definition.body, "spec", "group"), group):
            return next((kind for kind, _ in served_versions(definition.body)), None)
    return None


def _is_group(group: str, written: str) -> bool:
    """A resource may have its group behind it, and the version before that."""
    return not written or written == group or written.partition(".")[2] == group


@cache
def _builtin() -> dict[str, Kind]:
    """Words for the kinds that a kubelet sees."""
    named = {one.name: one for one in LOOKED_AT}
    found = {short: named[name] for short, name in SHORT.items()}
    for one in served_kinds():
        if one.kind in LOOKED_AT:
            for word in (one.plural, one.kind.name.lower()):
                found |= {word: one.kind, f"{word}.{one.kind.group}".rstrip("."): one.kind}
    return found


def _since(wait: KubectlWait, found: list[Stored]) -> tuple[Ms | None, str]:
    """Since when it is as it is waited for; else what is missing."""
    if wait.aim is Aim.DELETED:
        return (None, f"{found[0].ref} is still there") if found else (Ms(0), "")
    if not found:
        return None, f"{wait.target} is not there"
    moments: list[Ms] = []
    for one in found:
        moment = _met(wait, one)
        if moment is None:
            return None, f"{one.ref}: {_wanted(wait)}"
        moments.append(moment)
    return max(moments), ""


def _wanted(wait: KubectlWait) -> str:
    match wait.aim:
        case Aim.CONDITION:
            return f"condition {wait.key} is not {wait.value}"
        case Aim.FIELD:
            return f"`{wait.key}` is not {wait.value or 'there'}"
        case _:
            return "it is not rolled out"


def _met(wait: KubectlWait, one: Stored) -> Ms | None:
    """Since when an object is as it is waited for, as far as it says so itself."""
    match wait.aim:
        case Aim.CONDITION:
            return _condition_since(one, wait.key, wait.value)
        case Aim.FIELD:
            value = part(one.body, *wait.key.split("."))
            is_met = value not in (None, "") if not wait.value else _word(value) == wait.value
            return Ms(0) if is_met else None
        case Aim.ROLLED_OUT:
            return Ms(0) if _is_rolled_out(one) else None
        case _:
            return moment_of(one.metadata.get("creationTimestamp")) or Ms(0)


def _word(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _condition_since(one: Stored, key: str, value: str) -> Ms | None:
    """A condition of an older text does not count."""
    for condition in conditions_of(one):
        if text(condition, "type").lower() != key.lower():
            continue
        seen = number(condition, "observedGeneration") or number(
            one.body, "status", "observedGeneration"
        )
        is_old = bool(seen) and seen < one.generation
        if is_old or text(condition, "status").lower() != value.lower():
            return None
        return moment_of(condition.get("lastTransitionTime")) or Ms(0)
    return None


def _is_rolled_out(one: Stored) -> bool:
    """As `kubectl rollout status` looks at it."""
    status = mapping(one.body, "status")
    if number(status, "observedGeneration") < one.generation:
        return False
    if one.ref.kind == DAEMON_SET:
        wanted = number(status, "desiredNumberScheduled")
        counts = ("updatedNumberScheduled", "numberAvailable")
        return all(number(status, count) >= wanted for count in counts)
    wanted = number(one.body, "spec", "replicas", default=1)
    if one.ref.kind == STATEFUL_SET:
        return min(number(status, "readyReplicas"), number(status, "updatedReplicas")) >= wanted
    updated = number(status, "updatedReplicas")
    is_alone = number(status, "replicas") <= updated
    return updated >= wanted and is_alone and number(status, "availableReplicas") >= updated


def _ends(wait: KubectlWait, began: Ms, *, has_any: bool) -> Ms | None:
    """When it gives up; what is not there is not waited for, unless that is what is asked."""
    if wait.overrun is Overrun.STAYS:
        return None
    if not has_any and wait.aim is not Aim.CREATED:
        return began
    return None if wait.timeout is None else Ms(began + wait.timeout)


def _printed(wait: KubectlWait, *, has_any: bool) -> str:
    if not has_any:
        absent = f'Error from server (NotFound): {wait.resource} "{wait.name}" not found'
        return absent if wait.name else "error: no matching resources found"
    return f"error: timed out waiting for the condition on {wait.target}"
