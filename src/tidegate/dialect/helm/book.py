"""What is entered into the ledger of a release, and when: Helm's revisions, one after another.

A revision is pending before the first object is written, and deployed, or failed, behind the last
gate; the one before it is superseded then. One that is pending and ours is gone on with; one that
somebody else left pending is failed, as Flux unlocks it, and the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.helm.belonging import (
    ACTION,
    CHART,
    FIT,
    GONE_ON_WITH,
    INTO,
    KEY,
    RENDERED,
    TESTED,
    UNFIT,
    UNIT,
    newest,
    objects_of,
    own_records,
)
from tidegate.dialect.helm.hooks import is_tested
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus
from tidegate.dialect.times import stamp
from tidegate.model.ledger import (
    Action,
    Entering,
    EntryEnd,
    HookRun,
    ReleaseSheet,
    ReleaseTerms,
    SheetHook,
    TrialTerms,
)
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, text

APPLIED = "ssa"
BEGINNINGS = {
    Action.INSTALL: (ReleaseStatus.PENDING_INSTALL, "Initial install underway"),
    Action.UPGRADE: (ReleaseStatus.PENDING_UPGRADE, "Preparing upgrade"),
}
ENDS = {Action.INSTALL: "Install complete", Action.UPGRADE: "Upgrade complete"}
FAILURES = {Action.UPGRADE: "Upgrade", Action.ROLLBACK: "Rollback"}
GOOD = frozenset({ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED})
PHASES = {True: "Succeeded", False: "Failed", None: "Running"}


class Entries(msgspec.Struct, frozen=True):
    """What is written, in this order: the records that are old, one that is new, and those gone."""

    changed: tuple[ReleaseRecord, ...] = ()
    made: tuple[ReleaseRecord, ...] = ()
    gone: tuple[ReleaseRecord, ...] = ()


def intend(key: str, records: Sequence[ReleaseRecord], terms: ReleaseTerms, mark: str) -> Entering:
    """What a rollout of what has this key is, given the records there are."""
    records = own_records(records, terms)
    last = newest(records)
    if last is None:
        return Entering(Action.INSTALL, 1)
    brought = tuple(objects_of(last, terms.namespace))
    if last.status is ReleaseStatus.UNINSTALLED:
        return Entering(Action.INSTALL, last.number + 1)
    is_ours = (last.notes.get(UNIT), last.notes.get(KEY)) == (mark, key)
    if is_ours and last.status is ReleaseStatus.DEPLOYED and not is_refused(last, terms):
        if terms.test.runs and TESTED not in last.notes and tests_of(last, terms.test):
            return Entering(Action.TEST, last.number, goes_on=True, brought=brought)
        return Entering(Action.KEEP, last.number, brought=brought)
    if is_ours and last.status in GONE_ON_WITH:
        action = GONE_ON_WITH[last.status]
        return Entering(action, last.number, goes_on=True, brought=_brought(records, terms))
    return Entering(Action.UPGRADE, last.number + 1, brought=_brought(records, terms))


def tests_of(record: ReleaseRecord, terms: TrialTerms) -> list[dict[str, Json]]:
    """Those of a revision's hooks that are its tests, and are run."""
    hooks = mappings(record.content, "hooks")
    return [
        one
        for one in hooks
        if is_tested([*map(str, listed(one, "events"))], text(one, "name"), terms)
    ]


def is_refused(record: ReleaseRecord, terms: ReleaseTerms) -> bool:
    """Whether the tests of a revision have failed, and that counts."""
    counts = terms.test.runs and not terms.acting.forgives
    return counts and record.notes.get(TESTED) == UNFIT


def begin(
    sheet: ReleaseSheet,
    records: Sequence[ReleaseRecord],
    terms: ReleaseTerms,
    mark: str,
    *,
    entering: Entering,
    now: Ms,
) -> Entries:
    """The revision that is pending from now on; locks of others are opened, old records go."""
    records = own_records(records, terms)
    unlocked = tuple(_unlock(one) for one in records if one.is_pending)
    first = newest(records)
    status, description = BEGINNINGS[entering.action]
    known = text(first.content, "info", "first_deployed") if first is not None else ""
    is_new = entering.action is Action.INSTALL
    content: dict[str, Json] = {
        "name": terms.name,
        "info": {
            "first_deployed": stamp(now) if is_new or not known else known,
            "last_deployed": stamp(now),
            "description": description,
            "status": status.value,
            "notes": sheet.notes,
        },
        "chart": sheet.chart,
        "config": sheet.config,
        "manifest": sheet.manifest,
        "hooks": [_hook(one) for one in sheet.hooks],
        "version": entering.number,
        "namespace": terms.namespace,
        "apply_method": APPLIED,
    }
    labels = {} if first is None else first.labels
    notes = {
        UNIT: mark,
        KEY: sheet.key,
        ACTION: entering.action.value,
        INTO: terms.namespace,
        **({CHART: terms.chart} if terms.chart else {}),
    }
    made = ReleaseRecord(content, labels, notes)
    return Entries(unlocked, (made,), tuple(_surplus(records, terms.most)))


def end(
    records: Sequence[ReleaseRecord], *, entering: Entering, ended: EntryEnd, now: Ms
) -> Entries:
    """The revision as it came out; where it is deployed, those before it are superseded first."""
    mine = next((one for one in records if one.number == entering.number), None)
    if mine is None or not mine.is_pending:
        return Entries()
    mine = _with_hooks(mine, ended.hooks)
    if not ended.passed:
        what = FAILURES.get(entering.action, "Release")
        why = f'{what} "{mine.name}" failed: {ended.sentence}'
        return Entries((mine.become(ReleaseStatus.FAILED, why),))
    older = [
        one for one in records if one.number < mine.number and one.status is ReleaseStatus.DEPLOYED
    ]
    superseded = (
        one.become(ReleaseStatus.SUPERSEDED, text(one.content, "info", "description"))
        for one in older
    )
    told = ENDS.get(entering.action) or text(mine.content, "info", "description")
    deployed = mine.become(ReleaseStatus.DEPLOYED, told, last_deployed=stamp(now))
    return Entries((*superseded, deployed))


def review(
    records: Sequence[ReleaseRecord], terms: ReleaseTerms, *, entering: Entering, ended: EntryEnd
) -> Entries:
    """The revision with what became of its tests; where not all of them ended, they are run again.

    One that fails is the last that is run.
    """
    mine = next((one for one in records if one.number == entering.number), None)
    if mine is None:
        return Entries()
    tests = {(text(one, "kind"), text(one, "name")) for one in tests_of(mine, terms.test)}
    # What is a test may have run before as a hook.
    ran = (one for one in ended.hooks if one.tests)
    runs = [one for one in ran if (one.ref.kind.name, one.ref.name) in tests]
    if not runs:
        return Entries()
    mine = _with_hooks(mine, runs)
    notes = {**mine.notes}
    if any(one.passed is False for one in runs):
        notes[TESTED] = UNFIT
    elif len([one for one in runs if one.passed]) == len(tests):
        notes[TESTED] = FIT
    return Entries((msgspec.structs.replace(mine, notes=notes),))


def rollback_target(
    records: Iterable[ReleaseRecord], before: int, terms: ReleaseTerms
) -> ReleaseRecord | None:
    """The last revision before this one that was well."""
    return newest(
        one
        for one in records
        if one.number < before and one.status in GOOD and not is_refused(one, terms)
    )


def intend_rollback(records: Sequence[ReleaseRecord], terms: ReleaseTerms) -> Entering:
    """What a rollback is, given the records there are: it is the next revision."""
    last = newest(records)
    if last is None or rollback_target(records, last.number, terms) is None:
        return Entering(Action.KEEP)
    return Entering(Action.ROLLBACK, last.number + 1)


def begin_rollback(
    records: Sequence[ReleaseRecord], terms: ReleaseTerms, *, entering: Entering, now: Ms
) -> Entries:
    """An earlier revision once more, under the next number; it is pending from now on."""
    target = rollback_target(records, entering.number - 1, terms)
    if target is None:
        return Entries()
    info = mapping(target.content, "info")
    told: dict[str, Json] = {**info, "last_deployed": stamp(now)}
    hooks: list[Json] = [
        {**one, "last_run": {"phase": ""}} for one in mappings(target.content, "hooks")
    ]
    content = {**target.content, "version": entering.number, "info": told, "hooks": hooks}
    notes = {**target.notes}
    if KEY in notes:
        notes.setdefault(RENDERED, str(target.number))
    made = ReleaseRecord(content, target.labels, notes)
    pending = made.become(ReleaseStatus.PENDING_ROLLBACK, f"Rollback to {target.number}")
    kept = [one for one in _surplus(records, terms.most) if one.number != target.number]
    return Entries(made=(pending,), gone=tuple(kept))


def intend_end(records: Sequence[ReleaseRecord]) -> Entering:
    """What the end of a release is, given the records there are."""
    last = newest(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLED:
        return Entering(Action.KEEP)
    is_begun = last.status is ReleaseStatus.UNINSTALLING
    return Entering(Action.UNINSTALL, last.number, goes_on=is_begun)


def begin_end(records: Sequence[ReleaseRecord]) -> Entries:
    """The last revision says that it is on its way out."""
    last = newest(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLING:
        return Entries()
    why = "Deletion in progress (or silently failed)"
    return Entries((last.become(ReleaseStatus.UNINSTALLING, why),))


def remove(
    records: Sequence[ReleaseRecord], terms: ReleaseTerms, *, ended: EntryEnd, now: Ms
) -> Entries:
    """The release is uninstalled: its records go, or say so where the history is kept."""
    if not ended.passed:
        return Entries()
    if not terms.keeps_history:
        return Entries(gone=tuple(sorted(records, key=lambda one: one.number)))
    last = newest(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLED:
        return Entries()
    told = last.become(ReleaseStatus.UNINSTALLED, "Uninstallation complete", deleted=stamp(now))
    return Entries((told,))


def _brought(records: Iterable[ReleaseRecord], terms: ReleaseTerms) -> tuple[Ref, ...]:
    """What may be there: of the revision that was deployed last, and of all since."""
    ordered = sorted(records, key=lambda one: one.number, reverse=True)
    found: dict[Ref, None] = {}
    for one in ordered:
        found |= dict.fromkeys(objects_of(one, terms.namespace))
        if one.status is ReleaseStatus.DEPLOYED:
            break
    return tuple(found)


def _unlock(record: ReleaseRecord) -> ReleaseRecord:
    status = record.status.value
    return record.become(ReleaseStatus.FAILED, f"Release unlocked from stale '{status}' state")


def _surplus(records: Sequence[ReleaseRecord], most: int) -> list[ReleaseRecord]:
    """The oldest, so that there is room for one more; what is deployed now is never among them."""
    if most <= 0 or len(records) < most:
        return []
    deployed = newest(one for one in records if one.status is ReleaseStatus.DEPLOYED)
    ordered = sorted((one for one in records if one is not deployed), key=lambda one: one.number)
    return ordered[: len(records) - most + 1]


def _hook(hook: SheetHook) -> Json:
    return {
        "name": hook.name,
        "kind": hook.kind,
        "path": hook.path,
        "manifest": hook.manifest,
        "events": list(hook.events),
        "last_run": {"phase": ""},
        "weight": hook.weight,
        "delete_policies": list(hook.policies),
    }


def _with_hooks(record: ReleaseRecord, runs: Iterable[HookRun]) -> ReleaseRecord:
    """The record with what became of its hooks; of several runs of one the last counts."""
    by_name = {(one.ref.kind.name, one.ref.name): one for one in runs}
    hooks: list[Json] = [
        {**hook, "last_run": _last_run(by_name[key])}
        if (key := (text(hook, "kind"), text(hook, "name"))) in by_name
        else hook
        for hook in mappings(record.content, "hooks")
    ]
    if not listed(record.content, "hooks"):
        return record
    return msgspec.structs.replace(record, content={**record.content, "hooks": hooks})


def _last_run(run: HookRun) -> Json:
    told: dict[str, Json] = {"started_at": stamp(run.began), "phase": PHASES[run.passed]}
    if run.passed is not None:
        told["completed_at"] = stamp(run.ended)
    return told
