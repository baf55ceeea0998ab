"""StatefulSets: pods with names that last, made and replaced one after the other."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import without_zeros
from tidegate.sandbox.controllers.pods import (
    await_next,
    is_available,
    is_ready,
    new_pod,
    phase_of,
    refusal_of,
    retry_at,
)
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.workloads.revisions import (
    Revisions,
    forget_revisions,
    keep_revisions,
)
from tidegate.sandbox.controllers.writes import Voice, first_warning
from tidegate.sandbox.kinds import CLAIM, POD, STATEFUL_SET
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome

VOICE = Voice("statefulset-controller")
REVISION_LABEL = "controller-revision-hash"

Deeds = Generator[Write | At, Outcome | None, bool]
"""Writes, and whether the next pod in order has to wait for what they do."""


class PodLine(NamedTuple):
    """The pods of a StatefulSet at one look, by their places."""

    owner: Stored
    revisions: Revisions
    placed: dict[int, Stored]
    condemned: list[tuple[int, Stored]]
    """Those whose place is not asked for any more; the last place first."""
    now: Ms
    refused_since: Ms | None = None

    @property
    def spec(self) -> dict[str, Json]:
        return mapping(self.owner.body, "spec")

    @property
    def places(self) -> range:
        return _places(self.owner)

    @property
    def least(self) -> int:
        return number(self.spec, "minReadySeconds")

    @property
    def in_order(self) -> bool:
        return self.spec.get("podManagementPolicy") != "Parallel"

    @property
    def partition(self) -> int:
        return number(self.spec, "updateStrategy", "rollingUpdate", "partition")

    @property
    def rolls(self) -> bool:
        return text(self.spec, "updateStrategy", "type", default="RollingUpdate") != "OnDelete"

    def is_well(self, pod: Stored) -> bool:
        return not pod.is_deleting and is_available(pod, self.least, now=self.now)


def keep_line(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Bring a StatefulSet one step nearer to what is asked of it."""
    owner = view.get(ref)
    if owner is None:
        return
    revisions = yield from keep_revisions(view, owner)
    line = _read_line(view, owner, revisions, now)
    renewed = False
    if not owner.is_deleting:
        waits = yield from _fill(line)
        waits = waits or (yield from _shorten(line))
        renewed = not waits and line.rolls and (yield from _renew(line))
    pods = [*line.placed.values(), *(pod for _, pod in line.condemned)]
    yield from writes.say(owner, _status(line, pods, renewed=renewed))
    yield from forget_revisions(view, owner, revisions, pods)
    yield from await_next(pods, line.least, now=now)


def _places(owner: Stored) -> range:
    first = number(owner.body, "spec", "ordinals", "start")
    return range(first, first + number(owner.body, "spec", "replicas", default=1))


def _read_line(view: Visible, owner: Stored, revisions: Revisions, now: Ms) -> PodLine:
    placed: dict[int, Stored] = {}
    condemned: list[tuple[int, Stored]] = []
    wanted = _places(owner)
    for pod in writes.controlled(view, owner, POD):
        parent, _, place = pod.ref.name.rpartition("-")
        if parent == owner.ref.name and place.isdigit():
            if int(place) in wanted:
                placed[int(place)] = pod
            else:
                condemned.append((int(place), pod))
    condemned.sort(key=lambda one: one[0], reverse=True)
    since = first_warning(view, owner, reason="FailedCreate")
    return PodLine(owner, revisions, dict(sorted(placed.items())), condemned, now, since)


def _fill(line: PodLine) -> Deeds:
    """Every place has a pod; in order, each waits for the one before it."""
    for place in line.places:
        if (yield from _fill_place(line, place)) and line.in_order:
            return True
    return False


def _fill_place(line: PodLine, place: int) -> Deeds:
    pod = line.placed.get(place)
    if pod is None:
        yield from _make_pod(line, place)
        return True
    if phase_of(pod) in ("Succeeded", "Failed"):
        if not pod.is_deleting:
            yield writes.delete(pod)
        return True
    return not (line.is_well(pod) and phase_of(pod) == "Running")


def _shorten(line: PodLine) -> Deeds:
    """Pods whose place is gone go, the last first; in order, one at a time."""
    unwell = [pod for _, pod in reversed(line.condemned) if not line.is_well(pod)]
    for _, pod in line.condemned:
        if pod.is_deleting:
            if line.in_order:
                return True
            continue
        if line.in_order and not line.is_well(pod) and pod is not unwell[0]:
            return True
        yield writes.delete(pod)
        if line.in_order:
            return True
    return False


def _renew(line: PodLine) -> Deeds:
    """The last pod with another template goes, once all behind it are well."""
    for place in reversed(line.places[line.partition :]):
        pod = line.placed.get(place)
        if pod is None:
            return False
        if pod.labels.get(REVISION_LABEL) != line.revisions.update and not pod.is_deleting:
            yield writes.delete(pod)
            return True
        if not line.is_well(pod):
            return False
    return False


def _make_pod(line: PodLine, place: int) -> Deeds:
    owner, name = line.owner, f"{line.owner.ref.name}-{place}"
    for claim in mappings(line.spec, "volumeClaimTemplates"):
        yield _claim(line, claim, name)
    revision = _revision_for(line, place)
    template = line.revisions.template(revision)
    labels: Body = {
        REVISION_LABEL: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(place),
    }
    spec: Body = {"hostname": name}
    if service := text(line.spec, "serviceName"):
        spec["subdomain"] = service
    volumes = _volumes(line, template, name)
    if volumes:
        spec["volumes"] = volumes
    write = new_pod(
        owner,
        template,
        metadata={"name": name, "generateName": f"{owner.ref.name}-", "labels": labels},
        spec=spec,
    )
    refusal = refusal_of((yield write))
    if refusal:
        said = f"Create Pod {name} in StatefulSet {owner.ref.name} failed error: {refusal}"
        yield VOICE.warn(owner, "FailedCreate", said, line.now)
        yield At(retry_at(line.refused_since, now=line.now, longest=MINUTE))
    return True


def _revision_for(line: PodLine, place: int) -> str:
    """Which template a pod that is made now gets."""
    given = part(line.spec, "updateStrategy", "rollingUpdate")
    if not line.rolls:
        return line.revisions.update
    first = line.places.start
    current = number(line.owner.body, "status", "currentReplicas")
    kept = line.partition if given is not None else current
    return line.revisions.current if place < first + kept else line.revisions.update


def _claim(line: PodLine, claim: Body, pod: str) -> Write:
    metadata = mapping(claim, "metadata")
    kept = text(line.spec, "persistentVolumeClaimRetentionPolicy", "whenDeleted") != "Delete"
    owners: list[Json] = [] if kept else [writes.owner_reference(line.owner)]
    meant: Body = {
        **metadata,
        "name": f"{metadata.get('name')}-{pod}",
        "namespace": line.owner.ref.namespace,
        "labels": {**mapping(metadata, "labels"), **mapping(line.spec, "selector", "matchLabels")},
        **({"ownerReferences": owners} if owners else {}),
    }
    return writes.create(
        CLAIM, line.owner.ref.namespace, {"metadata": meant, "spec": mapping(claim, "spec")}
    )


def _volumes(line: PodLine, template: Body, pod: str) -> list[Json]:
    names = [
        text(claim, "metadata", "name") for claim in mappings(line.spec, "volumeClaimTemplates")
    ]
    claimed: list[Json] = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in names
    ]
    own = [
        volume
        for volume in mappings(template, "spec", "volumes")
        if volume.get("name") not in names
    ]
    return [*claimed, *own]


def _status(line: PodLine, pods: list[Stored], *, renewed: bool) -> Body:
    revisions, wanted = line.revisions, len(line.places)
    alive = [pod for pod in pods if not pod.is_deleting]
    ready = [pod for pod in pods if is_ready(pod) and phase_of(pod) == "Running"]
    updated = _count_of(alive, revisions.update)
    current = _count_of(alive, revisions.current) - renewed
    available = sum(is_available(pod, line.least, now=line.now) for pod in ready)
    is_done = line.rolls and updated == len(ready) == len(pods) == wanted
    counts: Body = {
        "observedGeneration": line.owner.generation,
        "readyReplicas": len(ready),
        "currentReplicas": updated if is_done else current,
        "updatedReplicas": updated,
    }
    return {
        "replicas": len(pods),
        **without_zeros(counts),
        "availableReplicas": available,
        "currentRevision": revisions.update if is_done else revisions.current,
        "updateRevision": revisions.update,
        "collisionCount": 0,
    }


def _count_of(pods: list[Stored], revision: str) -> int:
    return sum(pod.labels.get(REVISION_LABEL) == revision for pod in pods)


STATEFUL_SETS = Controller(
    "stateful-sets", keep_line, writes.with_controlled(STATEFUL_SET, POD), kinds=(STATEFUL_SET, POD)
)
