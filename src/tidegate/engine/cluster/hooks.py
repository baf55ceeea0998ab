"""Hooks in the cluster: comparison, finalizers and deletion.

A finalizer keeps a hook until its health was evaluated. It is removed when the verdict is in
the journal, or before the hook is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure
from tidegate.engine.cluster.writes import delete_object, is_terminating
from tidegate.engine.messages import CompareResult, DeleteHooks, WrittenObject
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import ClusterRef, LiveObject, Propagation, object_body
from tidegate.model.plans.plan import HOOK_FINALIZER, HookPolicy, PlanItem, Step, step_items
from tidegate.model.rollouts.journal import JournalEntry
from tidegate.model.times import SECOND, Ms
from tidegate.world import messages
from tidegate.world.requests import Get, Verb, Write

RETRY_TIMEOUT = Ms(30 * SECOND)
"""How long cluster errors may delay the release of a hook."""
RETRY_INTERVAL = Ms(SECOND // 5)
OUR_FINALIZERS = frozenset({HOOK_FINALIZER})
POLICY_BY_RESULT = {True: HookPolicy.SUCCEEDED, False: HookPolicy.FAILED}
Clock: TypeAlias = Callable[[], Ms]
TransientOutcome: TypeAlias = messages.NoResponse | messages.TooManyRequests | messages.ServerError


def compare_hook(
    item: PlanItem, live: LiveObject | None, entry: JournalEntry
) -> CompareResult | None:
    """Return the compare result of a hook; None if the live object must be compared field by field.

    A hook of an earlier rollout does not count: it is recreated with the default policy, or if
    it is terminating. A hook created after its announcement belongs to this rollout, even if
    the response to its creation was lost.
    """
    if item.digest in entry.ran:
        return CompareResult.FINISHED
    if live is None:
        return CompareResult.ABSENT
    if (entry.uid, entry.digest) == (live.uid, item.digest):
        return CompareResult.IN_SYNC
    if is_announced(entry) and entry.uid != live.uid:
        return None
    must_recreate = HookPolicy.BEFORE_CREATION in (item.hook or ()) or is_terminating(live)
    return CompareResult.RECREATE if must_recreate else None


def is_announced(entry: JournalEntry) -> bool:
    """Return whether the journal announces a new hook, replacing the one with `uid`, if any."""
    return entry.hook and not entry.digest


def announced_entry(live: WrittenObject | None, entry: JournalEntry) -> JournalEntry:
    """Return the entry to store before a hook is created, so that it can be recognized later."""
    uid = "" if live is None else live.uid
    return msgspec.structs.replace(entry, digest="", fields_digest="", uid=uid, hook=True)


def remove_finalizers(
    object_refs: Iterable[ClusterRef],
    live_cache: LiveCache,
    now: Clock,
    other_finalizers: Iterable[str] = (),
) -> Procedure[None]:
    """Remove our finalizer, and `other_finalizers`, from cached objects that have them."""
    cached_objects = (
        (object_ref, live_cache.objects.get(object_ref)) for object_ref in object_refs
    )
    existing = {object_ref: live for object_ref, live in cached_objects if live is not None}
    released = yield from _remove_finalizers(
        existing, now, frozenset({HOOK_FINALIZER, *other_finalizers})
    )
    for object_ref, live in released.items():
        cached = live_cache.objects.get(object_ref)
        if cached is not None and cached.uid == live.uid:
            live_cache.store(object_ref, live)


def remove_finalizers_uncached(object_refs: Iterable[ClusterRef], now: Clock) -> Procedure[None]:
    """Remove our finalizer from hooks that are not in the cache."""
    yield from _remove_finalizers((yield from _read_existing(dict.fromkeys(object_refs))), now)


def _remove_finalizers(
    objects: dict[ClusterRef, LiveObject], now: Clock, finalizers: frozenset[str] = OUR_FINALIZERS
) -> Procedure[dict[ClusterRef, LiveObject]]:
    """Remove finalizers and return the patched objects.

    Transient errors are retried for a while.
    """
    deadline, released = now() + RETRY_TIMEOUT, dict[ClusterRef, LiveObject]()
    while finalized := {
        object_ref: live for object_ref, live in objects.items() if _has_finalizer(live, finalizers)
    }:
        outcomes = yield tuple(
            _finalizer_patch_call(object_ref, live, finalizers)
            for object_ref, live in finalized.items()
        )
        remaining: dict[ClusterRef, LiveObject] = {}
        for (object_ref, live), outcome in zip(finalized.items(), outcomes, strict=True):
            if isinstance(outcome, messages.Success) and outcome.live is not None:
                released[object_ref] = outcome.live
            elif isinstance(outcome, messages.Conflict | TransientOutcome):
                remaining[object_ref] = live
        if not remaining or now() >= deadline:
            break
        if any(isinstance(outcome, TransientOutcome) for outcome in outcomes):
            yield Pause(Ms(now() + RETRY_INTERVAL))
        objects = yield from _read_existing(remaining)
    return released


def _read_existing(
    cached: Mapping[ClusterRef, LiveObject | None],
) -> Procedure[dict[ClusterRef, LiveObject]]:
    """Return the objects that exist, or may exist by the cache.

    A new object of the same name is not one.
    """
    outcomes = yield tuple(
        ApiCall(object_ref.cluster, Get(object_ref.ref)) for object_ref in cached
    )
    existing: dict[ClusterRef, LiveObject] = {}
    for (object_ref, before), outcome in zip(cached.items(), outcomes, strict=True):
        live = outcome.live if isinstance(outcome, messages.Success) else before
        is_same = before is None or live is None or before.uid == live.uid
        if live is not None and is_same and not isinstance(outcome, messages.NotFound):
            existing[object_ref] = live
    return existing


def _has_finalizer(live: LiveObject, finalizers: frozenset[str]) -> bool:
    return any(
        finalizer in finalizers
        for finalizer in get_list(object_body(live), "metadata", "finalizers")
    )


def _finalizer_patch_call(
    object_ref: ClusterRef, live: LiveObject, finalizers: frozenset[str]
) -> ApiCall:
    """Return the patch that removes our finalizers.

    It needs the latest version, to keep all others.
    """
    existing = get_list(object_body(live), "metadata", "finalizers")
    remaining = [finalizer for finalizer in existing if finalizer not in finalizers]
    body = msgspec.json.encode({"metadata": {"finalizers": remaining}})
    write = Write(
        verb=Verb.PATCH,
        ref=object_ref.ref,
        body=body,
        uid=live.uid,
        resource_version=live.resource_version,
    )
    return ApiCall(object_ref.cluster, write)


def delete_hooks(
    steps: Iterable[Step], live_cache: LiveCache, now: Clock, command: DeleteHooks
) -> Procedure[tuple[ClusterRef, ...]]:
    """Release the hooks of a unit; delete and return those whose policy matches the result."""
    runs = None if command.hook_runs is None else {run.ref: run.passed for run in command.hook_runs}

    def should_delete(item: PlanItem) -> bool:
        passed = not command.failed if runs is None else runs.get(item.ref)
        return passed is not None and POLICY_BY_RESULT[passed] in (item.hook or ())

    hooks = [
        (ClusterRef(step.cluster, item.ref), item.options.propagation, should_delete(item))
        for step in steps
        for item in step_items(step)
        if item.hook is not None
    ]
    yield from remove_finalizers((object_ref for object_ref, *_ in hooks), live_cache, now)
    deleted: list[ClusterRef] = []
    for object_ref, propagation in {
        object_ref: propagation for object_ref, propagation, is_deleted in hooks if is_deleted
    }.items():
        live = live_cache.objects.get(object_ref)
        if live is not None and not messages.is_error(
            (yield from _delete_hook(object_ref, live, propagation, now))
        ):
            deleted.append(object_ref)
    return tuple(deleted)


def _delete_hook(
    object_ref: ClusterRef, live: LiveObject, propagation: Propagation, now: Clock
) -> Procedure[messages.Outcome]:
    deadline = now() + RETRY_TIMEOUT
    while True:
        outcome = yield from delete_object(object_ref, live.uid, propagation, live)
        if not isinstance(outcome, TransientOutcome) or now() >= deadline:
            return outcome
        yield Pause(Ms(now() + RETRY_INTERVAL))
