"""Custom resources beside the units that define their kinds, where neither comes first."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.cast import WaitCase, cast_of
from tidegate.lint.rule import Mark, RuleRemark
from tidegate.lint.rules.inert import WAVE
from tidegate.lint.scene import LintScene
from tidegate.lint.words import name
from tidegate.model.finding import Severity
from tidegate.model.graph import Tie
from tidegate.model.reading import text
from tidegate.model.unit import UnitId


def beside_definition(scene: LintScene) -> Iterator[RuleRemark]:
    """Two units of which neither comes first: who is refused tries again, some time."""
    told: set[tuple[UnitId, UnitId]] = set()
    for case in cast_of(scene).refusals:
        actor, maker = case.actor, case.maker
        if maker is None or case.edge.tie is not Tie.DEFINITION or _is_ordered(scene, case):
            continue
        if (actor.unit.id, maker.unit.id) in told:
            continue
        told.add((actor.unit.id, maker.unit.id))
        rules = actor.unit.policy.semantics
        yield RuleRemark(
            sentence=f"the definition of {name(actor.ref)} comes with `{maker.unit.id}`, and"
            " nothing waits for that",
            at=Mark(actor.document, ("kind",)),
            also=(Mark(maker.document),),
            story=(
                f"`{actor.unit.id}` does not wait for `{maker.unit.id}`",
                f"while {name(maker.ref)} is not there, all of `{actor.unit.id}` is refused",
                "it is tried again later, and not for ever"
                if rules.retry.limit
                else "it is not tried again",
            ),
            severity=Severity.NOTE if rules.name == "flux" else Severity.WARNING,
            semantics=(rules.name,),
        )


def _is_ordered(scene: LintScene, case: WaitCase) -> bool:
    """Whether somebody put one behind the other; that this may not wait is told elsewhere."""
    early, late = scene.step_of(case.maker) if case.maker else None, scene.step_of(case.actor)
    if early is None or late is None or early.unit == late.unit:
        return True
    ways = zip(_way_to(scene, early.unit), _way_to(scene, late.unit), strict=False)
    apart = next(((one, other) for one, other in ways if one != other), None)
    in_waves = apart is not None and _wave_of(scene, apart[0]) < _wave_of(scene, apart[1])
    return in_waves or scene.order.is_behind(late.id, early.id)


def _way_to(scene: LintScene, unit: UnitId) -> list[UnitId]:
    """Who brings a unit, the first of them first, and the unit itself."""
    way: list[UnitId] = []
    name: UnitId | None = unit
    while name is not None and name not in way:
        way.append(name)
        name = scene.units[name].parent if name in scene.units else None
    return way[::-1]


def _wave_of(scene: LintScene, unit: UnitId) -> int:
    """The wave of its own object in who brings it."""
    own = scene.unit_objects.get(unit)
    said = text(own.body, "metadata", "annotations", WAVE) if own else ""
    return int(said) if said.lstrip("-").isdecimal() else 0
