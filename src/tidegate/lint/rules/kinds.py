"""Custom kinds: their definitions, their operators, and who they point at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from tidegate.lint.cast import Cast, cast_of
from tidegate.lint.pods import LASTING
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.rules.awaited import account_nowhere, check_nowhere
from tidegate.lint.rules.beside import beside_definition, beside_unknown
from tidegate.lint.rules.proofs import deadlocks
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.words import name, some, turn
from tidegate.model.finding import Severity
from tidegate.model.graph import GraphEdge, NodeKind, Tie
from tidegate.model.policy import Tracking
from tidegate.model.reading import mapping, number, text
from tidegate.model.unit import UnitId

SKIPS = "SkipDryRunOnMissingResource=true"
DEFINITION = "CustomResourceDefinition"
CERT_MANAGER = "cert-manager"
INJECTS = "cert-manager.io/inject-ca-from"


@rule(
    "ORD001",
    "A dependency leads nowhere",
    Severity.ERROR,
    why="what it waits for is not there, or is of another kind: it never starts",
    fix="correct the name, or add what is named",
)
def dependency_nowhere(scene: LintScene) -> Iterator[RuleRemark]:
    """Those of units are found while they are read; here those of annotations and health checks."""
    yield from check_nowhere(scene)
    yield from account_nowhere(scene)
    cast = cast_of(scene)
    for edge in scene.graph.edges:
        node = scene.graph.nodes[edge.before]
        actor = cast.actors.get(edge.after)
        if edge.tie is not Tie.ANNOTATION or node.kind is not NodeKind.OUTSIDE or actor is None:
            continue
        if edge.absent:
            continue
        yield RuleRemark(
            sentence=f"{name(actor.ref)} depends on {node.name}, which nobody here brings",
            at=Mark(actor.document, edge.field),
            severity=Severity.WARNING,
            why="it may be in the cluster already; else it is waited for in vain",
        )


@rule(
    "ORD002",
    "Units wait for each other",
    Severity.ERROR,
    why="none of them ever starts: each waits for the other",
    fix="remove one of the dependencies, or put both into one unit",
)
def circle_of_units(scene: LintScene) -> Iterator[RuleRemark]:
    after = {
        unit.id: [one.unit for one in unit.dependencies if one.unit in scene.units]
        for unit in scene.units.values()
    }
    told: set[frozenset[UnitId]] = set()
    for unit in _unstartable(after):
        circle = _shortest_circle(unit, after)
        if not circle or frozenset(circle) in told:
            continue
        told.add(frozenset(circle))
        own = scene.unit_objects.get(unit)
        names = [f"`{one}`" for one in (*circle, circle[0])]
        at = next(
            n
            for n, one in enumerate(scene.units[unit].dependencies)
            if one.unit == [*circle, unit][1]
        )
        yield RuleRemark(
            sentence=f"deadlock: {' waits for '.join(names)}",
            at=Mark(own, ("spec", "dependsOn", at)) if own else scene.units[unit].where,
            also=tuple(
                Mark(scene.unit_objects[one]) for one in circle[1:] if one in scene.unit_objects
            ),
            story=tuple(
                f"`{one}` does not start before `{other}` is ready"
                for one, other in zip(circle, (*circle[1:], circle[0]), strict=True)
            ),
        )


def _unstartable(after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Those that are in a circle, or wait for one: what is left when all start that can."""
    left = {unit: len(set(before)) for unit, before in after.items()}
    waiting: dict[UnitId | None, list[UnitId]] = {}
    for unit, before in after.items():
        for one in set(before):
            waiting.setdefault(one, []).append(unit)
    free = [unit for unit, count in left.items() if not count]
    for unit in free:  # it grows meanwhile
        for one in waiting.get(unit, ()):
            left[one] -= 1
            if not left[one]:
                free.append(one)
    return [unit for unit, count in left.items() if count]


def _shortest_circle(unit: UnitId, after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Those that a unit waits for, back to itself; nothing where it does not come back."""
    came: dict[UnitId, UnitId] = {}
    pending = deque([unit])
    while pending:
        one = pending.popleft()
        for before in after.get(one, ()):
            if before == unit:
                found = [one]
                while found[-1] != unit:
                    found.append(came[found[-1]])
                return found[::-1]
            if before is not None and before not in came:
                came[before] = one
                pending.append(before)
    return []


@rule(
    "ORD008",
    "A custom resource comes before its definition or its operator",
    Severity.ERROR,
    why="the API server refuses objects of a kind that it does not know, and without its"
    " operator an object of it does nothing",
    fix="bring the definition and the operator first: in an earlier wave, or in a unit that this"
    " one depends on",
)
def resource_before_definition(scene: LintScene) -> Iterator[RuleRemark]:
    yield from deadlocks(scene, "ORD008")
    yield from beside_definition(scene)
    yield from beside_unknown(scene)
    for actors in scene.by_unit.values():
        if actors[0].unit.policy.tracking is Tracking.FLUX:
            yield from _beside_release(scene, actors)


def _beside_release(scene: LintScene, actors: list[Actor]) -> Iterator[RuleRemark]:
    """Flux looks at all objects of a Kustomization before it applies the first of them."""
    unit = actors[0].unit
    defined = {one.manifest.defines for one in actors if all(one.manifest.defines)}
    brought = {name_: one for one in actors for name_ in one.manifest.brings}
    if not brought:
        return
    definers: dict[tuple[str, str], UnitId] = {}
    for child in brought:
        for one in scene.by_unit.get(child, ()):
            if all(one.manifest.defines):
                definers.setdefault(one.manifest.defines, child)
    for actor in actors:
        kind = (actor.ref.kind.group, actor.ref.kind.name)
        if kind in defined or actor.manifest.brings:
            continue
        source = definers.get(kind) or _by_chart(scene, actor, brought)
        if source is not None:
            yield _refused_together(unit.id, actor, brought[source], source)


def _by_chart(scene: LintScene, actor: Actor, brought: dict[UnitId, Actor]) -> UnitId | None:
    """The release of the operator, known by its chart, where nobody else defines the kind."""
    row = scene.known.row_of(actor.ref.kind)
    if row is None or not row.operator:
        return None
    elsewhere = {one.manifest.defines for one in scene.of_kind("apiextensions.k8s.io", DEFINITION)}
    if (actor.ref.kind.group, actor.ref.kind.name) in elsewhere:
        return None
    for child, own in brought.items():
        chart = text(own.body, "spec", "chart", "spec", "chart") or text(
            own.body, "spec", "chartRef", "name"
        )
        if chart.rpartition("/")[2] == row.operator:
            return child
    return None


def _refused_together(unit: UnitId, actor: Actor, release: Actor, child: UnitId) -> RuleRemark:
    return RuleRemark(
        sentence=f"deadlock: {name(actor.ref)} stands beside {name(release.ref)}, which brings"
        " its definition, in one Kustomization",
        at=Mark(actor.document, ("kind",)),
        also=(Mark(release.document),),
        story=(
            f"`{unit}` asks the API server about all of its objects before it applies the first",
            f"the server does not know {actor.ref.kind.name} yet, so that nothing is applied",
            f"the definition comes with `{child}`, which is among what is not applied",
        ),
        fix=f"put {actor.ref.kind.name} into a Kustomization of its own that depends on this one,"
        " and let this one have `wait: true`",
        semantics=("flux",),
    )


@rule(
    "ORD009",
    "A kind that nobody defines yet is asked about",
    Severity.ERROR,
    why="Argo CD asks the API server about every object before it applies the first: of a kind"
    " that is not served yet the answer is no, and nothing is applied",
    fix=f"annotate it `argocd.argoproj.io/sync-options: {SKIPS}`, or bring its definition before",
)
def unserved_kind(scene: LintScene) -> Iterator[RuleRemark]:
    """Where the operator that defines a kind comes with the very same Application."""
    cast = cast_of(scene)
    for edge in scene.graph.edges:
        actor = cast.actors.get(edge.after)
        if actor is None or edge.tie is not Tie.DEFINITION:
            continue
        is_nobodys = scene.graph.nodes[edge.before].kind is NodeKind.OUTSIDE
        is_argo = actor.unit.policy.semantics.name == "argocd"
        if not is_nobodys or not is_argo or actor.manifest.handling.waits_for_kind:
            continue
        operator = _operator_beside(cast, edge, actor)
        if operator is not None and actor.unit.id in scene.whole:
            yield RuleRemark(
                sentence=f"{name(actor.ref)} is asked about before {name(operator.ref)} has"
                " defined its kind",
                at=Mark(actor.document, ("kind",)),
                also=(Mark(operator.document),),
                story=(
                    (f"nothing here defines {actor.ref.kind.name}: its operator does when it runs"),
                    ("Argo CD asks about all objects first, and hears that there is no such kind"),
                    "the sync ends before the operator is applied",
                ),
                severity=Severity.WARNING,
                semantics=("argocd",),
            )


def _operator_beside(cast: Cast, edge: GraphEdge, actor: Actor) -> Actor | None:
    for at in cast.graph.needs[edge.after]:
        other = cast.graph.edges[at]
        maker = cast.actors.get(other.before)
        if other.tie is Tie.OPERATOR and maker is not None and maker.unit.id == actor.unit.id:
            return maker
    return None


@rule(
    "ORD041",
    "Definitions come with the chart of their operator",
    Severity.NOTE,
    why="whoever removes or renames the release takes the definitions along, and with them all"
    " objects of their kinds; others cannot come before the operator",
    fix="bring the definitions in a unit of their own, and switch them off in the chart"
    " (`installCRDs: false`, `crds.enabled: false`)",
)
def bundled_definitions(scene: LintScene) -> Iterator[RuleRemark]:
    """Only where other units have objects of these kinds."""
    users: dict[tuple[str, str], set[UnitId]] = {}
    for actor in scene.actors:
        kind = actor.ref.kind
        users.setdefault((kind.group, kind.name), set()).add(actor.unit.id)
    for unit, actors in scene.by_unit.items():
        defined = [one for one in actors if all(one.manifest.defines)]
        works = [one for one in actors if one.is_a("apps", *LASTING)]
        used = [one for one in defined if users.get(one.manifest.defines, set()) - {unit}]
        if used and works and "/templates/" in f"/{used[0].document.place.name}":
            own = scene.unit_objects.get(unit)
            yield RuleRemark(
                sentence=f"`{unit}` brings {some([name(one.ref) for one in used])} with"
                f" {name(works[0].ref)}, and other units have objects of it",
                at=Mark(own) if own else scene.units[unit].where,
            )


@rule(
    "ORD043",
    "An operator comes before cert-manager, which makes its certificate",
    Severity.WARNING,
    why="its webhook has no certificate, so that it cannot start, and the API server trusts nobody",
    fix="bring cert-manager first, and wait for its webhook",
)
def operator_before_certificates(scene: LintScene) -> Iterator[RuleRemark]:
    cast = cast_of(scene)
    for edge in scene.graph.edges:
        actor, maker = cast.actors.get(edge.after), cast.actors.get(edge.before)
        if edge.tie is not Tie.OPERATOR or actor is None or maker is None:
            continue
        if not actor.is_a("cert-manager.io", "Certificate"):
            continue
        mine, theirs = scene.step_of(actor), scene.step_of(maker)
        if mine is None or theirs is None or actor.unit.id == maker.unit.id:
            continue
        webhooks = [one for one in scene.by_unit[actor.unit.id] if _takes_certificate(one)]
        if webhooks and not scene.order.is_behind(mine.id, theirs.id):
            yield RuleRemark(
                sentence=f"`{actor.unit.id}` has a webhook with {name(actor.ref)}, and nothing"
                f" brings `{maker.unit.id}` before it",
                at=Mark(actor.document),
                also=(Mark(webhooks[0].document), Mark(maker.document)),
                story=(
                    f"{turn(mine)} of `{actor.unit.id}` applies {name(actor.ref)}",
                    f"`{maker.unit.id}`, which makes certificates, comes at any time, also later",
                    f"until then {name(webhooks[0].ref)} has no authority: calls to it fail",
                ),
                severity=Severity.NOTE
                if not scene.order.is_behind(theirs.id, mine.id)
                else Severity.WARNING,
            )


def _is_near(scene: LintScene, actor: Actor, maker: Actor) -> bool:
    """Whether both begin together for sure, or one behind the other without a gate between."""
    mine, theirs = scene.step_of(actor), scene.step_of(maker)
    if mine is None or theirs is None:
        return False
    return mine.id == theirs.id or scene.order.is_behind(mine.id, theirs.id)


def _takes_certificate(actor: Actor) -> bool:
    notes = mapping(actor.body, "metadata", "annotations")
    return actor.ref.kind.group == "admissionregistration.k8s.io" and INJECTS in notes


@rule(
    "ORD056",
    "A task starts beside what it calls",
    Severity.ERROR,
    why="nothing brings the one before the other: whether it works is a matter of luck",
    fix="put the task behind what it calls, or let it try for longer (`backoffLimit`)",
)
def task_beside(scene: LintScene) -> Iterator[RuleRemark]:
    """A Job that tries a few times usually gets there; one that tries once does not."""
    cast = cast_of(scene)
    for case in cast.races:
        actor, maker = case.actor, case.maker
        limit = number(actor.body, "spec", "backoffLimit", default=6)
        if maker is None or limit > 0 or not actor.is_a("batch", "Job"):
            continue
        yield RuleRemark(
            sentence=f"{name(actor.ref)} tries once to call {case.wanted}, and nothing waits until"
            f" {name(maker.ref)} is ready",
            at=Mark(actor.document, case.edge.field),
            also=(Mark(maker.document),),
            story=(
                f"{turn(scene.step_of(actor))} of `{actor.unit.id}` applies {name(actor.ref)}",
                (
                    f"{name(maker.ref)} is in {turn(scene.step_of(maker))} of `{maker.unit.id}`,"
                    " and is not ready by then"
                ),
                "with `backoffLimit: 0` the first failure is the last",
            ),
            severity=Severity.ERROR if _is_near(scene, actor, maker) else Severity.WARNING,
            semantics=(actor.unit.policy.semantics.name,),
        )
