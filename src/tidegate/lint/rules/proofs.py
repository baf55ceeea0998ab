"""What cannot work: gates that wait for what comes later, and consumers before their producers."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.cast import WaitCase, cast_of
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.rules.awaited import data_behind, waits_itself
from tidegate.lint.scene import LintScene
from tidegate.lint.words import name, turn, when
from tidegate.model.finding import Severity
from tidegate.model.graph import Tie
from tidegate.model.manifest import Phase
from tidegate.model.operators import Effect, Until

STORES = ("SecretStore", "ClusterSecretStore")
DEADLOCK = "a gate waits for what only a later step brings"


def _own_words(case: WaitCase) -> str:
    """What is wanted, in words."""
    edge = case.edge
    what = case.wanted
    if edge.tie is Tie.OPERATOR:
        return f"its operator, {what}"
    return what


def _kind_of(case: WaitCase) -> str:
    """The rule that a deadlock falls under."""
    actor, maker = case.actor, case.maker
    if actor.is_a("external-secrets.io", *STORES):
        return "ORD042"
    if case.edge.tie in {Tie.DEFINITION, Tie.OPERATOR}:
        return "ORD008"
    same = maker is not None and maker.unit.id == actor.unit.id
    if same and maker is not None and maker.manifest.phase is Phase.POST_SYNC:
        return "ORD005"
    if same and actor.manifest.hook is not None and actor.manifest.phase is Phase.PRE_SYNC:
        return "ORD004"
    return "ORD006"


def deadlocks(scene: LintScene, code: str) -> Iterator[RuleRemark]:
    for case in cast_of(scene).deadlocks:
        if _kind_of(case) == code:
            yield _stuck(scene, case)


def _stuck(scene: LintScene, case: WaitCase) -> RuleRemark:
    actor, maker = case.actor, case.maker
    step = scene.step_of(actor)
    later = scene.step_of(maker) if maker else None
    comes = when(maker, later, beside=actor) if maker else "later"
    made = "" if case.edge.through is None or maker is None else f", which {name(maker.ref)} makes"
    called = "deadlock, unless luck helps" if case.by_luck else "deadlock"
    return RuleRemark(
        sentence=f"{called}: {name(actor.ref)} in {turn(step)} waits for {_own_words(case)}{made}"
        f" in {comes}",
        at=Mark(actor.document, case.edge.field),
        also=(Mark(maker.document),) if maker else (),
        story=tuple(_story(scene, case)),
        severity=Severity.WARNING if case.by_luck else Severity.ERROR,
        fix=_mend(case, step_name=turn(step)),
        semantics=(actor.unit.policy.semantics.name,),
    )


def _story(scene: LintScene, case: WaitCase) -> Iterator[str]:
    actor, maker = case.actor, case.maker
    step, engine = scene.step_of(actor), actor.unit.policy.semantics.name
    yield f"{when(actor, step)} applies {name(actor.ref)}"
    yield _effect(case)
    if maker is not None:
        made = f"{name(maker.ref)}"
        if case.edge.through is not None:
            made += f", which makes {_own_words(case)},"
        yield f"{made} is applied in {when(maker, scene.step_of(maker), beside=actor)}"
    for link in case.way:
        yield f"before that, {link}"
    held = "this never opens" if case.edge.effect is not Effect.REFUSED else "this never happens"
    done = f"that comes only when {turn(step)} of `{actor.unit.id}` is done: under {engine}"
    if case.by_luck:
        yield f"{done} it is, if the gate looks before an operator has written a status; else never"
    else:
        yield f"{done} {held}"


def _effect(case: WaitCase) -> str:
    actor, what = case.actor, _own_words(case)
    if case.edge.effect is Effect.REFUSED:
        if case.edge.tie is Tie.DEFINITION:
            return "the API server does not know its kind yet, and refuses it"
        return f"it is refused as long as {what} is not there"
    if case.edge.effect is Effect.FAILS:
        return f"it calls {what}, which does not answer, and fails when its attempts are used up"
    if case.edge.until is Until.EXISTS:
        return (
            f"its pods cannot start without {what}"
            if actor.ref.kind.name in _PODS
            else (f"it cannot get ready without {what}")
        )
    return f"it is not ready before {what} is"


_PODS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "ReplicaSet"})


def _mend(case: WaitCase, *, step_name: str) -> str:
    actor, maker = case.actor, case.maker
    if maker is None:
        return ""
    if maker.unit.id != actor.unit.id:
        return f"let `{maker.unit.id}` come before `{actor.unit.id}`, or bring both in one unit"
    if actor.manifest.hook is not None and actor.manifest.phase is Phase.PRE_SYNC:
        return (
            f"make {name(actor.ref)} a Sync hook in a wave behind {name(maker.ref)}, or bring"
            f" {name(maker.ref)} in PreSync with a lower wave"
        )
    if maker.manifest.phase is Phase.POST_SYNC:
        return f"make {name(maker.ref)} a Sync hook in a wave before {name(actor.ref)}"
    return f"give {name(maker.ref)} a wave before {step_name}, or {name(actor.ref)} a later one"


@rule(
    "ORD004",
    "A hook runs before what it needs",
    Severity.ERROR,
    why="PreSync is over before the first wave begins: what the waves bring is not there yet",
    fix="make it a Sync hook behind what it needs",
)
def hook_before_producer(scene: LintScene) -> Iterator[RuleRemark]:
    return deadlocks(scene, "ORD004")


@rule(
    "ORD005",
    "Pods wait for what a later hook does",
    Severity.ERROR,
    why="PostSync begins when all before it is healthy, and the pods are not before PostSync",
    fix="make the hook a Sync hook in an earlier wave",
)
def pods_wait_for_later_hook(scene: LintScene) -> Iterator[RuleRemark]:
    return deadlocks(scene, "ORD005")


@rule(
    "ORD006",
    "Deadlock: a gate waits for what only a later step brings",
    Severity.ERROR,
    why="the gate opens when the object is ready, and that is not before the later step",
    fix="bring first what is needed first",
)
def deadlock(scene: LintScene) -> Iterator[RuleRemark]:
    yield from deadlocks(scene, "ORD006")
    yield from data_behind(scene)


@rule(
    "ORD042",
    "A secret store comes before its provider",
    Severity.ERROR,
    why="a store is ready when its provider answers",
    fix="bring the store behind the provider",
)
def store_before_provider(scene: LintScene) -> Iterator[RuleRemark]:
    yield from deadlocks(scene, "ORD042")
    for case in cast_of(scene).inversions:
        if case.actor.is_a("external-secrets.io", *STORES):
            yield _inverted(scene, case, Severity.WARNING)


@rule(
    "ORD003",
    "A consumer is applied before its producer",
    Severity.NOTE,
    why="it waits, and recovers when what it needs is there",
    fix="bring the producer in the same wave, or in an earlier one",
)
def consumer_before_producer(scene: LintScene) -> Iterator[RuleRemark]:
    marks = [one.at for one in data_behind(scene) if isinstance(one.at, Mark)]
    stuck = [(one.document.place, one.path) for one in marks]
    for case in cast_of(scene).inversions:
        is_told = (case.actor.document.place, case.edge.field) in stuck
        is_told = is_told or waits_itself(scene, case.actor, case.maker)
        if not is_told and not case.actor.is_a("external-secrets.io", *STORES):
            yield _inverted(scene, case, Severity.NOTE)


def _inverted(scene: LintScene, case: WaitCase, severity: Severity) -> RuleRemark:
    actor, maker = case.actor, case.maker
    step = scene.step_of(actor)
    comes = when(maker, scene.step_of(maker), beside=actor) if maker else "a later step"
    alone = "it is well without, and does nothing yet"
    effect = alone if case.edge.effect is Effect.NOTHING else _effect(case)
    begins = f"{when(actor, step)} applies" if step else f"`{actor.unit.id}` brings"
    story = (
        f"{begins} {name(actor.ref)}: {effect}",
        f"nothing waits for it, so that {comes} begins all the same and brings {_own_words(case)}",
        "then it works",
    )
    return RuleRemark(
        sentence=f"{name(actor.ref)}{f' in {turn(step)}' if step else ''} needs {_own_words(case)},"
        f" which comes in {comes}",
        at=Mark(actor.document, case.edge.field),
        also=(Mark(maker.document),) if maker else (),
        story=story,
        severity=severity,
        semantics=(actor.unit.policy.semantics.name,),
    )
