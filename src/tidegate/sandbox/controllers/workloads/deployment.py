"""Deployments: a ReplicaSet for each template, the newest made large as the others are made small.

One look does one thing and says so; what it wrote brings the next look.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, number, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import conditions_of, new_condition, with_condition
from tidegate.sandbox.controllers.pods import phase_of, refusal_of, retry_at
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Visible
from tidegate.sandbox.controllers.workloads import progress
from tidegate.sandbox.controllers.workloads.rollout import (
    HASH,
    REVISION,
    DeploymentRollout,
    Sizes,
    is_scaling,
    new_size,
    old_sizes,
    read_rollout,
    scaled_sizes,
)
from tidegate.sandbox.controllers.writes import Voice
from tidegate.sandbox.kinds import DEPLOYMENT, POD, REPLICA_SET
from tidegate.sandbox.server.store import Body, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change, Exists, Outcome, is_refusal

VOICE = Voice("deployment-controller")
LONGEST_NAME = 253

Deeds = Generator[Write | At, Outcome | None, bool]
"""Writes, and whether this look is over with them."""


def roll_out(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Bring a Deployment one step nearer to what is asked of it."""
    deployment = view.get(ref)
    if deployment is None:
        return
    rollout = read_rollout(view, deployment)
    if deployment.is_deleting:
        yield from writes.say(deployment, progress.plain_status(rollout, now))
    elif (yield from _note_pause(rollout, now)):
        yield from _before_status(_proceed(view, rollout, now))
    else:
        yield from _proceed(view, rollout, now)


def _proceed(view: Visible, rollout: DeploymentRollout, now: Ms) -> Looking:
    if (yield from _number(rollout, now)):
        return
    if rollout.is_paused or is_scaling(rollout):
        yield from _stand(view, rollout, now)
    elif rollout.is_recreated:
        yield from _recreate(view, rollout, now)
    else:
        yield from _roll(view, rollout, now)


def _before_status(deeds: Looking) -> Looking:
    """A look that has told of a pause tells no more: its next status would be of a stale version.

    So a Deployment that is resumed makes its ReplicaSet, and never says that it did.
    """
    outcome: Outcome | None = None
    while True:
        try:
            wanted = deeds.send(outcome)
        except StopIteration:
            return
        if isinstance(wanted, Write) and wanted.subresource == "status":
            return
        outcome = yield wanted


def _stand(view: Visible, rollout: DeploymentRollout, now: Ms) -> Looking:
    """Scale, and nothing else: while paused, or on the first look after a change of scale."""
    yield from _resize(rollout, scaled_sizes(rollout), now)
    if rollout.is_paused:
        yield from _forget_old(rollout)
    after = read_rollout(view, rollout.deployment)
    yield from writes.say(rollout.deployment, progress.plain_status(after, now))


def _roll(view: Visible, rollout: DeploymentRollout, now: Ms) -> Looking:
    if rollout.new is None:
        yield from _begin(view, rollout, now)
        return
    grown = yield from _resize(rollout, [(rollout.new, new_size(rollout))], now)
    shrunk = grown or (yield from _resize(rollout, old_sizes(rollout), now))
    if shrunk:
        rollout = read_rollout(view, rollout.deployment)
    elif progress.is_complete(rollout, mapping(rollout.deployment.body, "status")):
        yield from _forget_old(rollout)
    yield from _say_progress(rollout, now)


def _recreate(view: Visible, rollout: DeploymentRollout, now: Ms) -> Looking:
    """No new pod before the last old one is gone."""
    shrunk = yield from _resize(rollout, [(crew, 0) for crew in rollout.old if crew.size], now)
    if not shrunk and not _has_old_pods(view, rollout):
        if rollout.new is None:
            yield from _begin(view, rollout, now)
            return
        yield from _resize(rollout, [(rollout.new, rollout.replicas)], now)
        if progress.is_complete(rollout, mapping(rollout.deployment.body, "status")):
            yield from _forget_old(rollout)
    yield from _say_progress(read_rollout(view, rollout.deployment), now)


def _has_old_pods(view: Visible, rollout: DeploymentRollout) -> bool:
    return any(
        crew.pods
        or any(
            phase_of(pod) not in ("Succeeded", "Failed")
            for pod in writes.controlled(view, crew.stored, POD)
        )
        for crew in rollout.old
    )


def _note_pause(rollout: DeploymentRollout, now: Ms) -> Deeds:
    """A pause is no lack of progress: the clock of the deadline starts anew when it ends."""
    _, reason = progress.progress_of(conditions_of(rollout.deployment))
    if (
        not progress.has_deadline(rollout)
        or reason == progress.TIMED_OUT
        or rollout.is_paused == (reason == progress.PAUSED)
    ):
        return False
    done = "paused" if rollout.is_paused else "resumed"
    yield _with_progress(
        rollout, "Unknown", f"Deployment{done.title()}", f"Deployment is {done}", now
    )
    return True


def _number(rollout: DeploymentRollout, now: Ms) -> Deeds:
    """The new ReplicaSet has the highest revision, and the Deployment says which that is."""
    if rollout.new is None:
        return False
    notes = mapping(rollout.new.stored.metadata, "annotations")
    wanted = {**notes, **rollout.notes()}
    least = number(rollout.spec, "minReadySeconds")
    if wanted != notes or number(rollout.new.stored.body, "spec", "minReadySeconds") != least:
        change: Body = {"metadata": {"annotations": wanted}, "spec": {"minReadySeconds": least}}
        yield writes.patch(rollout.new.stored, change)
        return False
    yield from _note_revision(rollout, text(notes, REVISION))
    if not progress.has_deadline(rollout) or progress.progress_of(
        conditions_of(rollout.deployment)
    ) != ("", ""):
        return False
    said = f'Found new replica set "{rollout.new.stored.ref.name}"'
    yield _with_progress(rollout, "True", "FoundNewReplicaSet", said, now)
    return True


def _note_revision(rollout: DeploymentRollout, revision: str) -> Iterator[Write]:
    """Written through the status, where an annotation does not count as a change of the spec."""
    if text(rollout.deployment.metadata, "annotations", REVISION) != revision:
        note = writes.patch(rollout.deployment, {"metadata": {"annotations": {REVISION: revision}}})
        yield msgspec.structs.replace(note, subresource="status")


def _begin(view: Visible, rollout: DeploymentRollout, now: Ms) -> Looking:
    """Make the ReplicaSet of a new template."""
    deployment, size, notes = rollout.deployment, new_size(rollout), rollout.notes()
    name = f"{deployment.ref.name[: LONGEST_NAME - 1 - len(rollout.hash)]}-{rollout.hash}"
    outcome = yield writes.create(
        REPLICA_SET, deployment.ref.namespace, _body(rollout, name, size, notes)
    )
    if isinstance(outcome, Exists):
        yield from _adopt(view, rollout, name)
        return
    refusal = refusal_of(outcome)
    if not refusal and outcome is not None and is_refusal(outcome):
        return
    if refusal:
        said = f'Failed to create new replica set "{name}": {refusal}'
        yield _with_progress(rollout, "False", "ReplicaSetCreateError", said, now)
        yield VOICE.warn(deployment, "ReplicaSetCreateError", said, now)
        yield At(retry_at(None, now=now))
        return
    if size:
        said = f"Scaled up replica set {name} from 0 to {size}"
        yield VOICE.tell(deployment, "ScalingReplicaSet", said, now)
    yield from _note_revision(rollout, text(notes, REVISION))
    if progress.has_deadline(rollout):
        said = f'Created new replica set "{name}"'
        yield _with_progress(rollout, "True", "NewReplicaSetCreated", said, now)


def _body(rollout: DeploymentRollout, name: str, size: int, notes: Body) -> Body:
    template = rollout.template
    metadata = mapping(template, "metadata")
    labels: Body = {**mapping(metadata, "labels"), HASH: rollout.hash}
    selector = mapping(rollout.spec, "selector")
    matched: Body = {**mapping(selector, "matchLabels"), HASH: rollout.hash}
    least = number(rollout.spec, "minReadySeconds")
    return {
        "metadata": {
            "name": name,
            "namespace": rollout.deployment.ref.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [writes.owner_reference(rollout.deployment)],
        },
        "spec": {
            "replicas": size,
            **({"minReadySeconds": least} if least else {}),
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


def _adopt(view: Visible, rollout: DeploymentRollout, name: str) -> Iterator[Write]:
    """A ReplicaSet of this template that lost its Deployment is taken over."""
    found = view.get(Ref(REPLICA_SET, rollout.deployment.ref.namespace, name))
    if found is not None and not part(found.metadata, "ownerReferences"):
        owner: Json = [writes.owner_reference(rollout.deployment)]
        yield writes.patch(found, {"metadata": {"ownerReferences": owner}})


def _resize(rollout: DeploymentRollout, sizes: Sizes, now: Ms) -> Deeds:
    resized = False
    for crew, size in sizes:
        notes = mapping(crew.stored.metadata, "annotations")
        scale = rollout.scale_notes()
        if crew.size == size and scale.items() <= notes.items():
            continue
        yield writes.patch(
            crew.stored, {"metadata": {"annotations": scale}, "spec": {"replicas": size}}
        )
        if crew.size != size:
            resized = True
            way = "up" if size > crew.size else "down"
            said = f"Scaled {way} replica set {crew.stored.ref.name} from {crew.size} to {size}"
            yield VOICE.tell(rollout.deployment, "ScalingReplicaSet", said, now)
    return resized


def _forget_old(rollout: DeploymentRollout) -> Iterator[Write]:
    """Old ReplicaSets are kept for going back, but not all of them for ever."""
    limit = number(rollout.spec, "revisionHistoryLimit", default=10)
    kept = [crew for crew in rollout.old if not crew.stored.is_deleting]
    kept.sort(key=lambda crew: crew.revision)
    for crew in kept[: max(0, len(kept) - limit)]:
        observed = number(crew.stored.body, "status", "observedGeneration")
        if not crew.pods and not crew.size and observed >= crew.stored.generation:
            yield writes.delete(crew.stored)


def _say_progress(rollout: DeploymentRollout, now: Ms) -> Looking:
    status = progress.full_status(rollout, now)
    yield from writes.say(rollout.deployment, status)
    if (moment := progress.next_check(rollout, status)) is not None:
        yield At(moment)


def _with_progress(
    rollout: DeploymentRollout, status: str, reason: str, message: str, now: Ms
) -> Write:
    """What was said before, with one other condition Progressing."""
    condition = new_condition(progress.PROGRESSING, status, reason, message, now=now)
    conditions = with_condition(conditions_of(rollout.deployment), condition)
    return writes.set_status(
        rollout.deployment,
        progress.with_conditions(mapping(rollout.deployment.body, "status"), conditions),
    )


def _concerns(view: Visible, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind == DEPLOYMENT:
        yield stored.ref
        return
    owner: Ref | None = None
    if stored.ref.kind == REPLICA_SET:
        owner = writes.controller_of(stored, DEPLOYMENT)
    elif stored.ref.kind == POD and event.change is Change.DELETED:
        crew = writes.controller_of(stored, REPLICA_SET)
        found = view.get(crew) if crew else None
        owner = writes.controller_of(found, DEPLOYMENT) if found else None
    if owner is not None:
        yield owner


DEPLOYMENTS = Controller(
    "deployments", roll_out, _concerns, delay=Ms(5), kinds=(DEPLOYMENT, REPLICA_SET, POD)
)
