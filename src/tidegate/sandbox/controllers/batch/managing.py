"""The pods of a Job that has work left: some are made, some are deleted, never both at once."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias

from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.batch.case import JobCase, UnderWay
from tidegate.sandbox.controllers.batch.order import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    TRACKING,
    JobPod,
    first_free,
    next_start,
    next_start_of_index,
)
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.pods import least_wanted, refusal_of
from tidegate.sandbox.controllers.reaction import At
from tidegate.sandbox.kinds import POD
from tidegate.sandbox.server.store import Body, Stored
from tidegate.world.calls import Write
from tidegate.world.facts import Done, Outcome

LONGEST_PREFIX = 58
"""What a name may have before the five characters that a server adds."""
INDEX_VARIABLE: Json = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}
VOICE = writes.Voice("job-controller")
BATCH = SECOND
"""Changes of pods within this time are one look."""
BURST = 500
"""So many pods are made or deleted in one look."""

Deeds: TypeAlias = Generator[Write | At, Outcome | None, UnderWay]


def make_pod(case: JobCase, index: int | None, replaced: JobPod | None) -> Write:
    """The creation of the next pod, of this index where the Job has indexes."""
    job = case.job
    template = mapping(job.body, "spec", "template")
    labels = mapping(template, "metadata", "labels")
    annotations = mapping(template, "metadata", "annotations")
    spec = mapping(template, "spec")
    prefix = f"{job.ref.name}-"
    if index is not None:
        ending = f"-{index}-"
        prefix = job.ref.name[: LONGEST_PREFIX - len(ending)] + ending
        labels = {**labels, INDEX: str(index)}
        annotations = {**annotations, INDEX: str(index), **_failure_counts(case, replaced)}
        spec = _indexed_spec(spec, f"{job.ref.name}-{index}")
    finalizers = listed(template, "metadata", "finalizers")
    metadata: Body = {
        "generateName": prefix,
        "namespace": job.ref.namespace,
        "labels": labels,
        **({"annotations": annotations} if annotations else {}),
        "finalizers": [*(one for one in finalizers if one != TRACKING), TRACKING],
        "ownerReferences": [writes.owner_reference(job)],
    }
    return writes.create(POD, job.ref.namespace, {"metadata": metadata, "spec": spec})


def _failure_counts(case: JobCase, replaced: JobPod | None) -> dict[str, Json]:
    if case.order.backoff_limit_per_index is None:
        return {}
    if replaced is None:
        return {FAILURES: "0"}
    counts = replaced.verdict.counts
    ignored = replaced.noted(IGNORED_FAILURES) + (not counts)
    noted: dict[str, Json] = {FAILURES: str(replaced.noted(FAILURES) + counts)}
    return noted | ({IGNORED_FAILURES: str(ignored)} if ignored else {})


def _indexed_spec(spec: dict[str, Json], hostname: str) -> dict[str, Json]:
    spec = {**spec, "hostname": hostname}
    for name in ("initContainers", "containers"):
        if name in spec:
            spec[name] = [_with_index(one) for one in mappings(spec, name)]
    return spec


def _with_index(container: dict[str, Json]) -> Json:
    variables = listed(container, "env")
    if any(text(one, "name") == "JOB_COMPLETION_INDEX" for one in variables):
        return container
    return {**container, "env": [*variables, INDEX_VARIABLE]}


def stop(case: JobCase, running: UnderWay, now: Ms) -> Deeds:
    """Nothing goes on in a Job whose end is decided."""
    for pod in case.active:
        yield writes.delete(pod.stored)
        yield _deleted(case.job, pod, now)
    return running.less(case.active)


def manage(case: JobCase, running: UnderWay, now: Ms) -> Deeds:
    """As many pods as may run now: delete some or make some, never both in one look."""
    if case.order.is_suspended:
        return (yield from _drop(case, running, case.active, now))
    wanted = _wanted(case, running)
    if surplus := _surplus(case, running.active - wanted):
        return (yield from _drop(case, running, surplus[:BURST], now))
    waiting = running.terminating if case.order.replaces_only_failed else 0
    missing = min(wanted - waiting - running.active, BURST)
    if missing <= 0:
        return running
    return (yield from _make(case, running, missing, now))


def _wanted(case: JobCase, running: UnderWay) -> int:
    if case.order.completions is None:
        return running.active if case.succeeded else case.order.parallelism
    return max(0, min(case.order.completions - case.succeeded, case.order.parallelism))


def _surplus(case: JobCase, least: int) -> list[JobPod]:
    """The pods to delete: those whose index is wrong or taken, then those that are too many."""
    left, surplus = case.active, list[JobPod]()
    if case.order.is_indexed:
        seen: set[int] = set()
        for pod in case.active:
            if pod.index is None or pod.index in seen:
                surplus.append(pod)
            else:
                seen.add(pod.index)
        left = [pod for pod in left if pod not in surplus]
    more = {pod.uid for pod in least_wanted([p.stored for p in left], max(0, least - len(surplus)))}
    return [*surplus, *(pod for pod in left if pod.uid in more)]


def _drop(case: JobCase, running: UnderWay, pods: list[JobPod], now: Ms) -> Deeds:
    """Pods that are no longer wanted do not count as failed: they are let go of first."""
    for pod in pods:
        if pod.is_tracked:
            yield release(pod)
        yield writes.delete(pod.stored)
        yield _deleted(case.job, pod, now)
    return running.less(pods)


def _make(case: JobCase, running: UnderWay, missing: int, now: Ms) -> Deeds:
    awaited = case.awaiting_replacement()
    places, start = _places(case, missing, now)
    if start > now:
        yield At(Ms(max(start, now + BATCH)))
        return running
    made = 0
    for index in places:
        replaced = awaited.get(index) if index is not None else None
        outcome = yield make_pod(case, index, replaced)
        if not isinstance(outcome, Done):
            yield from _refused(case, refusal_of(outcome), now)
            break
        made += 1
        name = outcome.live.ref.name if outcome.live else ""
        yield VOICE.tell(case.job, "SuccessfulCreate", f"Created pod: {name}", now)
    return UnderWay(running.active + made, running.ready, running.terminating)


def _places(case: JobCase, missing: int, now: Ms) -> tuple[list[int | None], Ms]:
    """For which indexes pods are to be made, or from when on."""
    order = case.order
    if order.backoff_limit_per_index is None:
        start = next_start(case.pods, case.failed)
        if not order.is_indexed:
            return [None] * missing, start
        return [*first_free(missing, order.span, _taken(case))], start
    awaited = case.awaiting_replacement()
    free = first_free(missing, order.span, _taken(case))
    starts = [(next_start_of_index(awaited.get(index)), index) for index in free]
    ready: list[int | None] = [index for start, index in starts if start <= now]
    return ready, Ms(0) if ready else min((start for start, _ in starts), default=Ms(0))


def _taken(case: JobCase) -> frozenset[int]:
    going = case.active
    if case.order.replaces_only_failed:
        going += [pod for pod in case.pods if pod.is_terminating]
    own = {pod.index for pod in going if pod.index is not None}
    return case.succeeded_indexes | case.failed_indexes | own


def _refused(case: JobCase, why: str, now: Ms) -> Iterator[Write | At]:
    """Try again after 1 s, 2 s, 4 s, ... up to a minute."""
    if not why:
        return
    yield VOICE.warn(case.job, "FailedCreate", f"Error creating: {why}", now)
    begun = [moment_of(case.status.get("startTime"))]
    begun += [moment_of(pod.stored.metadata.get("creationTimestamp")) for pod in case.pods]
    since = max((moment for moment in begun if moment is not None), default=now)
    tries = ((now - since) // SECOND + 1).bit_length() - 1
    yield At(Ms(now + min(SECOND << tries, MINUTE)))


def _deleted(job: Stored, pod: JobPod, now: Ms) -> Write:
    return VOICE.tell(job, "SuccessfulDelete", f"Deleted pod: {pod.stored.ref.name}", now)


def release(pod: JobPod) -> Write:
    return writes.without_finalizer(pod.stored, TRACKING)
