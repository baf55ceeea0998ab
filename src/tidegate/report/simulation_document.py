"""How a simulated rollout ended, as programs read it."""

from __future__ import annotations

import msgspec

from tidegate.model.drift import Drift
from tidegate.model.expectation import Expectation
from tidegate.model.ledger import ReleaseHistory
from tidegate.model.moment import Ms
from tidegate.model.resync import Resync
from tidegate.model.uptake import Uptake
from tidegate.report.rollout.documents import ObjectName
from tidegate.report.rollout.ending import Failure, failures_of
from tidegate.report.simulation import (
    EngineRun,
    course_of,
    drift_since,
    resync_since,
    uptake_since,
    why_ended,
)


class DriftOut(ObjectName, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What others did to an object, as `Drift` has it."""

    unit: str
    cluster: str = ""
    at: Ms
    sentence: str
    healed: Ms | None = None
    stays: str = ""
    attempts: int = 0


class UptakeOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a unit did with a newer revision, as `Uptake` has it."""

    unit: str
    committed: Ms
    seen: Ms
    step: int = 0
    began: Ms | None = None
    ended: Ms | None = None
    ahead: tuple[str, ...] = ()
    stays: str = ""


class ResyncOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was synced twice, as `Resync` has it."""

    unit: str
    turn: Ms
    at: Ms
    hooks: tuple[ObjectName, ...] = ()
    ended: Ms | None = None
    passed: bool = True


class Ending(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="engine.ended"
):
    """How one engine ended.

    `lasted` in milliseconds. `unwaited`: what the engine has no health check for. `unplayed`: what
    it has one for, and nobody knows what the operator writes. `aftermath`: what failed when the
    engine had passed, as it does not wait for its last wave. `drifts`: what others did to objects;
    `uptakes`: what units did with what was committed; `resyncs`: what was synced twice; all their
    moments count from the beginning.
    `unknown`: what could not be had, so that less is proved than it seems.
    `releases`: the revisions of Helm releases. `faulty`: the units of which nothing was played.
    """

    engine: str
    outcome: str
    lasted: Ms
    expecting: Expectation | None = None
    sentence: str = ""
    failures: tuple[Failure, ...] = ()
    unwaited: tuple[ObjectName, ...] = ()
    unplayed: tuple[ObjectName, ...] = ()
    aftermath: tuple[Failure, ...] = ()
    drifts: tuple[DriftOut, ...] = ()
    uptakes: tuple[UptakeOut, ...] = ()
    resyncs: tuple[ResyncOut, ...] = ()
    unknown: str = ""
    releases: tuple[ReleaseHistory, ...] = ()
    faulty: tuple[str, ...] = ()


def ending_of(run: EngineRun) -> Ending:
    """What stands below the table, and all that is known of what failed."""
    course = course_of(run)
    first, last = run.events[0], run.events[-1]
    return Ending(
        engine=run.name,
        outcome=last.reason,
        lasted=Ms(last.at - first.at),
        expecting=run.expecting,
        sentence=why_ended(run.events),
        failures=failures_of(course, run.evidence),
        unwaited=tuple(map(ObjectName.of, run.unwaited)),
        unplayed=tuple(map(ObjectName.of, run.unplayed)),
        aftermath=tuple(
            Failure(**msgspec.structs.asdict(ObjectName.of(ref)), why=(how,))
            for ref, how in run.aftermath
        ),
        drifts=tuple(_drift(drift_since(one, first.at)) for one in run.drifts),
        uptakes=tuple(_uptake(uptake_since(one, first.at)) for one in run.uptakes),
        resyncs=tuple(_resync(resync_since(one, first.at)) for one in run.resyncs),
        unknown=run.unknown,
        releases=tuple(run.releases),
        faulty=tuple(map(str, run.faulty)),
    )


def _drift(one: Drift) -> DriftOut:
    return DriftOut(
        **msgspec.structs.asdict(ObjectName.of(one.ref)),
        unit=str(one.unit),
        cluster=one.cluster,
        at=one.at,
        sentence=one.sentence,
        healed=one.healed,
        stays=one.stays,
        attempts=one.attempts,
    )


def _uptake(one: Uptake) -> UptakeOut:
    return UptakeOut(
        unit=str(one.unit),
        committed=one.committed,
        seen=one.seen,
        step=one.step,
        began=one.began,
        ended=one.ended,
        ahead=tuple(map(str, one.ahead)),
        stays=one.stays,
    )


def _resync(one: Resync) -> ResyncOut:
    return ResyncOut(
        unit=str(one.unit),
        turn=one.turn,
        at=one.at,
        hooks=tuple(map(ObjectName.of, one.hooks)),
        ended=one.ended,
        passed=one.passed,
    )
