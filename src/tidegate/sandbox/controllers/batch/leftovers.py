"""What a Job leaves behind: itself when its time is up, and pods that nobody counts any more."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Propagation, Ref
from tidegate.model.reading import mappings
from tidegate.sandbox.controllers.batch.job import JOB
from tidegate.sandbox.controllers.batch.order import whole
from tidegate.sandbox.controllers.batch.pods import TRACKING
from tidegate.sandbox.controllers.batch.status import finished_as
from tidegate.sandbox.controllers.conditions import find_condition, moment_of
from tidegate.sandbox.controllers.pods import POD
from tidegate.sandbox.controllers.reaction import At, Controller, Looking, Sight
from tidegate.sandbox.controllers.writes import controller_of, delete, without_finalizer
from tidegate.sandbox.server.store import Stored, Transition, owner_references
from tidegate.world.facts import Change


def remove_finished(view: Sight, ref: Ref, now: Ms) -> Looking:
    """Delete a Job `ttlSecondsAfterFinished` after its end, its pods first."""
    job = view.get(ref)
    due = _due(job) if job is not None else None
    if job is None or due is None or job.is_deleting:
        return
    if now < due:
        yield At(due)
    else:
        yield delete(job, Propagation.FOREGROUND)


def _due(job: Stored) -> Ms | None:
    span = whole(job.body, "spec", "ttlSecondsAfterFinished")
    ended = find_condition(mappings(job.body, "status", "conditions"), finished_as(job.body))
    moment = moment_of(ended.get("lastTransitionTime")) if ended else None
    return Ms(moment + span * SECOND) if moment is not None and span is not None else None


def release_pod(view: Sight, ref: Ref, _now: Ms) -> Looking:
    """A pod whose Job is gone or has ended is not held back."""
    pod = view.get(ref)
    if pod is not None and _is_left(view, pod):
        yield without_finalizer(pod, TRACKING)


def _is_left(view: Sight, pod: Stored) -> bool:
    if TRACKING not in pod.finalizers:
        return False
    owner = controller_of(pod, JOB)
    if owner is None:
        return not any(one.get("controller") for one in owner_references(pod.metadata))
    job = view.get(owner)
    uids = [one.get("uid") for one in owner_references(pod.metadata)]
    return job is None or job.uid not in uids or finished_as(job.body) != ""


def _concerns_job(_view: Sight, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == JOB and event.change is not Change.DELETED and finished_as(event.stored.body):
        yield ref


def _concerns_pods(view: Sight, event: Transition) -> Iterator[Ref]:
    stored, is_gone = event.stored, event.change is Change.DELETED
    if stored.ref.kind == POD and not is_gone and _is_left(view, stored):
        yield stored.ref
    elif stored.ref.kind == JOB and (is_gone or finished_as(stored.body)):
        yield from (own.ref for own in view.owned_by(stored.uid) if own.ref.kind == POD)


FINISHED_JOBS = Controller("finished-jobs", remove_finished, _concerns_job, kinds=(JOB,))
LEFT_PODS = Controller("left-pods", release_pod, _concerns_pods, kinds=(POD, JOB))
