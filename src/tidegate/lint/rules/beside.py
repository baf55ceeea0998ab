"""Custom resources beside the units that define their kinds, where neither comes first."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import Place
from tidegate.lint.cast import WaitCase, cast_of
from tidegate.lint.rule import Mark, RuleRemark
from tidegate.lint.rules.inert import WAVE
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name
from tidegate.model.finding import Severity
from tidegate.model.graph import NodeKind, Tie
from tidegate.model.reading import text
from tidegate.model.source import ChartSource, GitSource, OciSource
from tidegate.model.unit import Unit, UnitId


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


def beside_unknown(scene: LintScene) -> Iterator[RuleRemark]:
    """The same, where the one that brings the definition is known by its name alone."""
    cast, told = cast_of(scene), set[tuple[UnitId, UnitId]]()
    unknown = {unit: _names_of(scene.units[unit]) for unit in scene.units.keys() - scene.whole}
    for edge in scene.graph.edges if unknown else ():
        actor = cast.actors.get(edge.after)
        is_nobodys = scene.graph.nodes[edge.before].kind is NodeKind.OUTSIDE
        if edge.tie is not Tie.DEFINITION or actor is None or not is_nobodys:
            continue
        kind = actor.ref.kind
        makers = [
            unit
            for unit, names in sorted(unknown.items())
            if any(scene.known.comes_with(one, kind) for one in names)
        ]
        if not makers or any(_comes_first(scene, actor, one) for one in makers):
            continue
        if (actor.unit.id, makers[0]) not in told:
            told.add((actor.unit.id, makers[0]))
            yield _unwaited(actor, makers[0], scene.units[makers[0]].where)


def _names_of(unit: Unit) -> set[str]:
    """How what it deploys is called: a chart, an artifact, a repository."""
    addresses = (
        one.source.chart if isinstance(one.source, ChartSource) else one.source.url
        for one in unit.sources
        if isinstance(one.source, ChartSource | GitSource | OciSource)
    )
    return {one.rstrip("/").rpartition("/")[2].removesuffix(".git") for one in addresses}


def _comes_first(scene: LintScene, actor: Actor, maker: UnitId) -> bool:
    """Whether somebody put an object behind a unit, or into it."""
    ways = _way_to(scene, maker)
    if actor.unit.id in ways:
        return True  # what stands beside a release in one Kustomization is told of that
    own = zip(ways, _way_to(scene, actor.unit.id), strict=False)
    apart = next(((one, other) for one, other in own if one != other), None)
    if apart is not None and _wave_of(scene, apart[0]) < _wave_of(scene, apart[1]):
        return True
    return not _awaited(scene, actor.unit.id).isdisjoint(ways)


def _awaited(scene: LintScene, unit: UnitId) -> set[UnitId]:
    """All that a unit says it waits for, by itself or by who brings it."""
    found: set[UnitId] = set()
    pending = [*_way_to(scene, unit)]
    for one in pending:  # it grows meanwhile
        named = scene.units[one].dependencies if one in scene.units else ()
        fresh = {each.unit for each in named if each.unit is not None} - found
        found |= fresh
        pending += (other for each in fresh for other in _way_to(scene, each))
    return found


def _unwaited(actor: Actor, maker: UnitId, where: Place | None) -> RuleRemark:
    rules = actor.unit.policy.semantics
    return RuleRemark(
        sentence=f"the definition of {name(actor.ref)} comes with `{maker}`, by its name, and"
        " nothing waits for that",
        at=Mark(actor.document, ("kind",)),
        also=(where,) if where else (),
        story=(
            f"`{actor.unit.id}` does not wait for `{maker}`",
            f"while the definition is not there, all of `{actor.unit.id}` is refused",
            "it is tried again later",
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
