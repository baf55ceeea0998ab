"""Names that lead past what is there: of objects, of their keys, of kinds."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tidegate.lint.cast import Cast, cast_of
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.scene import LintScene
from tidegate.lint.words import name
from tidegate.model.finding import Severity
from tidegate.model.graph import Asker, GraphEdge, LackKind, MissingThing, Tie
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import Effect
from tidegate.schema.builtin import served_kinds

SIMILAR = 0.85
UNNAMED = frozenset({LackKind.DEFINITION, LackKind.OPERATOR, LackKind.UNIT, LackKind.PODS})
NAMING = frozenset({Tie.REFERENCE, Tie.NAMESPACE})
NO_DIGITS = str.maketrans("", "", "0123456789")
PARTS = {LackKind.KEY: "key", LackKind.PORT: "port"}


@rule(
    "ORD061",
    "A reference leads past what is there",
    Severity.ERROR,
    why="what is named so is not there, and whoever needs it waits for ever",
    fix="correct the name, or add what is missing",
)
def strayed_reference(scene: LintScene) -> Iterator[RuleRemark]:
    cast = cast_of(scene)
    for lack in scene.missing:
        if lack.kind in UNNAMED or lack.ref is None:
            continue
        asker = next((one for one in lack.askers if _counts(cast, lack, one)), None)
        if asker is None:
            continue
        remark = _lacks_part if lack.kind in PARTS else _lacks_name
        yield from remark(cast, lack, asker, lack.ref)


def _counts(cast: Cast, lack: MissingThing, asker: Asker) -> bool:
    """Whether an object names it in a field; a host may be anybody's."""
    if asker.node not in cast.actors:
        return False
    ties = {one.tie for one in _edges(cast, asker) if one.before == lack.node}
    return not NAMING.isdisjoint(ties)


def _lacks_part(cast: Cast, lack: MissingThing, asker: Asker, ref: Ref) -> Iterator[RuleRemark]:
    actor, part = cast.actors[asker.node], PARTS[lack.kind]
    yield RuleRemark(
        sentence=f"{name(actor.ref)} asks for the {part} `{lack.key}` of {name(ref)}, which has"
        " none of that name",
        at=Mark(actor.document, asker.field),
        severity=Severity.ERROR if asker.effect is Effect.HELD else Severity.WARNING,
        fix=f"correct the {part}, or add it",
    )


def _lacks_name(cast: Cast, lack: MissingThing, asker: Asker, ref: Ref) -> Iterator[RuleRemark]:
    """Said only where something is there that may be meant: others may bring all else."""
    actor = cast.actors[asker.node]
    alike = [
        (namespace, called)
        for cluster, group, kind, namespace, called in cast.scene.made
        if (cluster, group, kind) == (lack.cluster, ref.kind.group, ref.kind.name)
    ]
    here = sorted({called for at, called in alike if at == ref.namespace or not at})
    near = [one for one in get_close_matches(ref.name, here, cutoff=SIMILAR) if _differs(one, ref)]
    named = {edge.through or cast.graph.nodes[edge.before].ref for edge in _edges(cast, asker)}
    near = [one for one in near if one not in {other.name for other in named if other}]
    elsewhere = sorted(at for at, called in alike if called == ref.name and at != ref.namespace)
    if not near and not elsewhere:
        return
    sentence = f"{name(actor.ref)} asks for {name(ref)}, which nobody here brings"
    yield RuleRemark(
        sentence=sentence if near else f"{sentence} to that namespace",
        at=Mark(actor.document, asker.field),
        severity=Severity.WARNING if near else Severity.NOTE,
        fix=f"did you mean `{near[0]}`?" if near else f"it is brought to `{elsewhere[0]}`",
    )


def _edges(cast: Cast, asker: Asker) -> Iterator[GraphEdge]:
    return (cast.graph.edges[at] for at in cast.graph.needs[asker.node])


def _differs(near: str, ref: Ref) -> bool:
    """In more than a number: what is counted has many that are nearly alike."""
    return near.translate(NO_DIGITS) != ref.name.translate(NO_DIGITS)


@rule(
    "ORD062",
    "Kubernetes has no such kind",
    Severity.ERROR,
    why="the group is one of Kubernetes' own, and no server has this kind of it",
    fix="correct `kind` or `apiVersion`",
)
def unknown_kind(scene: LintScene) -> Iterator[RuleRemark]:
    served = {one.kind for one in served_kinds()}
    names: dict[str, set[str]] = {}
    for kind in served:
        names.setdefault(kind.group, set()).add(kind.name)
    for actor in scene.actors:
        kind = actor.ref.kind
        if kind in served or kind.group not in names:
            continue
        versions = sorted(one.version for one in served if _is_alike(one, kind))
        near = get_close_matches(kind.name, names[kind.group], n=1)
        group = f"{kind.group}/" if kind.group else ""
        fix = f"write `apiVersion: {group}{versions[-1]}`" if versions else ""
        fix = fix or (f"did you mean `{near[0]}`?" if near else "")
        yield RuleRemark(
            sentence=f"{name(actor.ref)}: Kubernetes serves no `{group}{kind.version} {kind.name}`",
            at=Mark(actor.document, ("apiVersion",) if versions else ("kind",)),
            severity=Severity.ERROR if near and not versions else Severity.WARNING,
            fix=fix,
        )


def _is_alike(one: Kind, other: Kind) -> bool:
    return (one.group, one.name) == (other.group, other.name)
