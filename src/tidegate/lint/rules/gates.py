"""Gates: those that never gate, those that never open, and those that only cost time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tidegate.lint.cast import Cast, cast_of, is_asked, needs_ready
from tidegate.lint.pods import claims_of
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.scene import Actor, LintScene
from tidegate.lint.snippets import snippets
from tidegate.lint.words import name, some, turn
from tidegate.model.finding import Severity
from tidegate.model.graph import NOWHERE
from tidegate.model.operators import Effect
from tidegate.model.plan import Step
from tidegate.model.policy import Order
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.model.unit import UnitId

PAUSES = {
    ("batch", "Job"): "suspend",
    ("apps", "Deployment"): "paused",
    ("argoproj.io", "Rollout"): "paused",
}
"""What is Suspended for Argo CD while this is true."""
FIRST_CONSUMER = "WaitForFirstConsumer"
HOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
BROAD = frozenset({"pods", "namespaces", "*", "*/*"})


@rule(
    "ORD007",
    "A claim waits for a pod that comes later",
    Severity.ERROR,
    why="with `WaitForFirstConsumer` a volume is bound when a pod uses it, and not before",
    fix="put the claim into the wave of the workload that uses it",
)
def claim_before_pod(scene: LintScene) -> Iterator[RuleRemark]:
    lazy = {
        one.ref.name: one
        for one in scene.of_kind("storage.k8s.io", "StorageClass")
        if text(one.body, "volumeBindingMode") == FIRST_CONSUMER
    }
    default = [one for one in lazy.values() if _is_default(one)]
    users: dict[tuple[str, str], list[Actor]] = {}
    for actor in scene.actors if lazy else ():
        for called in claims_of(actor):
            users.setdefault((actor.ref.namespace, called), []).append(actor)
    for claim in scene.of_kind("", "PersistentVolumeClaim") if lazy else ():
        said = part(claim.body, "spec", "storageClassName")
        cls = lazy.get(str(said)) if said is not None else (default[0] if default else None)
        step = scene.step_of(claim)
        if cls is None or step is None or not _holds_up(scene, claim, step):
            continue
        pods = users.get((claim.ref.namespace, claim.ref.name), [])
        first = [one for one in pods if _not_behind(scene, one, step)]
        if not first:
            yield _unbound(scene, claim, step, cls, pods)


def _is_default(actor: Actor) -> bool:
    notes = mapping(actor.body, "metadata", "annotations")
    return notes.get("storageclass.kubernetes.io/is-default-class") == "true"


def _holds_up(scene: LintScene, actor: Actor, step: Step) -> bool:
    """Whether something behind its step waits for it."""
    rules = actor.unit.policy.semantics
    is_gated = not step.last or rules.gates_last
    return is_gated and bool(scene.order.leaving.get(step.id)) and actor.manifest.gates


def _not_behind(scene: LintScene, actor: Actor, step: Step) -> bool:
    other = scene.step_of(actor)
    return other is not None and not scene.order.is_behind(other.id, step.id)


def _unbound(
    scene: LintScene, claim: Actor, step: Step, cls: Actor, pods: list[Actor]
) -> RuleRemark:
    user = f"{name(pods[0].ref)} in {turn(scene.step_of(pods[0]))}" if pods else "no pod here"
    return RuleRemark(
        sentence=f"deadlock: {name(claim.ref)} in {turn(step)} is bound when a pod uses it,"
        f" and {user} does",
        at=Mark(claim.document),
        also=(Mark(cls.document, ("volumeBindingMode",)), *(Mark(one.document) for one in pods)),
        story=(
            f"{turn(step)} applies {name(claim.ref)} and waits until it is bound",
            f"{name(cls.ref)} binds a volume when the first pod uses it",
            f"{user} uses it, which comes only when {turn(step)} is done",
        ),
        semantics=(claim.unit.policy.semantics.name,),
    )


@rule(
    "ORD060",
    "What Git pauses holds a gate for ever",
    Severity.ERROR,
    why="Argo CD takes it for Suspended, and goes on to the next wave only when all of this one is"
    " Healthy",
    fix="put it into the last wave, or remove what pauses it",
)
def paused_before_others(scene: LintScene) -> Iterator[RuleRemark]:
    for (group, kind), field in PAUSES.items():
        for actor in scene.of_kind(group, kind):
            step = scene.step_of(actor)
            if step is None or actor.unit.policy.semantics.passes_paused:
                continue
            if part(actor.body, "spec", field) is True and _holds_up(scene, actor, step):
                yield _paused(actor, step, field)


def _paused(actor: Actor, step: Step, field: str) -> RuleRemark:
    return RuleRemark(
        sentence=f"{name(actor.ref)} is paused by `{field}: true`, and what comes behind"
        f" {turn(step)} never begins",
        at=Mark(actor.document, ("spec", field)),
        semantics=(actor.unit.policy.semantics.name,),
    )


@rule(
    "ORD010",
    "A gate that never gates",
    Severity.WARNING,
    why="Argo CD has no health check for this kind, and takes it for healthy once it is there",
    fix="add a health check to argocd-cm",
)
def gate_without_check(scene: LintScene) -> Iterator[RuleRemark]:
    cast = cast_of(scene)
    consumers = _consumers(cast)
    for node in scene.graph.nodes:
        actor = cast.actors.get(node.number)
        if actor is None or node.step == NOWHERE or actor.unit.policy.semantics.falls_back:
            continue
        row = scene.known.row_of(actor.ref.kind)
        if row is None or not row.ready_when or scene.has_check(actor.unit, actor.body):
            continue
        step = scene.step_of(actor)
        if step is None or step.last:
            continue
        later = [
            one
            for one, fails in consumers.get(node.number, ())
            if (other := scene.step_of(one)) and scene.order.is_behind(other.id, step.id) and fails
        ]
        yield _no_check(scene, actor, step, later)


def _consumers(cast: Cast) -> dict[int, list[tuple[Actor, bool]]]:
    """By node, who needs it ready, and whether that fails where it is not."""
    found: dict[int, list[tuple[Actor, bool]]] = {}
    for edge in cast.graph.edges:
        actor = cast.actors.get(edge.after)
        if actor is not None and is_asked(edge) and needs_ready(edge):
            fails = edge.effect in {Effect.FAILS, Effect.REFUSED}
            found.setdefault(edge.before, []).append((actor, fails))
    return found


def _no_check(scene: LintScene, actor: Actor, step: Step, later: list[Actor]) -> RuleRemark:
    row = scene.known.row_of(actor.ref.kind)
    behind = f", and {name(later[0].ref)} fails where it is not ready" if later else ""
    story = [
        f"{turn(step)} applies {name(actor.ref)}",
        f"Argo CD has no health check for {actor.ref.kind.name}: it passes at once",
        "2 s later the next wave begins, while it is still on its way",
    ]
    story += [f"{name(later[0].ref)} needs it, and fails"] if later else []
    return RuleRemark(
        sentence=f"nothing waits until {name(actor.ref)} in {turn(step)} is ready{behind}",
        at=Mark(actor.document),
        also=(Mark(later[0].document),) if later else (),
        severity=Severity.WARNING if later else Severity.NOTE,
        story=tuple(story),
        paste=snippets(actor.ref.kind, row) if row else "",
        semantics=(actor.unit.policy.semantics.name,),
    )


@rule(
    "ORD024",
    "A webhook that fails closed stands in the way of its own pods",
    Severity.WARNING,
    why="while nobody answers, the API server refuses whatever it is asked about",
    fix="leave its own namespace and `kube-system` out with a `namespaceSelector`, or use"
    " `failurePolicy: Ignore`",
)
def closed_webhook(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.of_kind("admissionregistration.k8s.io", *HOOKS):
        for at, hook in enumerate(listed(actor.body, "webhooks")):
            if not isinstance(hook, dict) or text(hook, "failurePolicy", default="Fail") != "Fail":
                continue
            if mapping(hook, "namespaceSelector") or mapping(hook, "objectSelector"):
                continue
            if listed(hook, "matchConditions") or not mapping(hook, "clientConfig", "service"):
                continue
            broad = sorted(
                {
                    str(one)
                    for rules in mappings(hook, "rules")
                    for one in listed(rules, "resources")
                    if str(one) in BROAD
                    and {"", "*"} & {str(group) for group in listed(rules, "apiGroups")}
                    and {"CREATE", "*"} & {str(deed) for deed in listed(rules, "operations")}
                }
            )
            if broad:
                yield RuleRemark(
                    sentence=f"{name(actor.ref)} refuses all {some(broad)} while"
                    f" `{text(hook, 'name')}` does not answer",
                    at=Mark(actor.document, ("webhooks", at)),
                )


@rule(
    "ORD026",
    "A wave that nobody needs",
    Severity.NOTE,
    why="each wave waits for the one before, and costs Argo CD at least 2 s",
    fix="give both the same wave",
)
def needless_wave(scene: LintScene) -> Iterator[RuleRemark]:
    """Two neighbouring waves between which nothing needs anything, however far."""
    cast = cast_of(scene)
    needs: dict[int, set[int]] = {}
    for edge in scene.graph.edges:
        after, before = scene.graph.nodes[edge.after], scene.graph.nodes[edge.before]
        if NOWHERE not in {after.step, before.step}:
            needs.setdefault(after.step, set()).add(before.step)
    for unit, steps in scene.order.by_unit.items():
        planned = scene.order.units.get(unit)
        if planned is None or planned.policy.order is not Order.WAVES or unit not in scene.whole:
            continue
        waves = [one for one in steps if one.phase == "sync" and one.batches]
        for at, (early, late) in enumerate(pairwise(waves)):
            first = _first(cast, late)
            if first is not None and _is_needless(cast, waves[: at + 1], late, needs):
                yield RuleRemark(
                    sentence=f"nothing in {turn(late)} of `{unit}` needs anything of"
                    f" {turn(early)}, as far as is known",
                    at=Mark(first.document),
                )


def _is_needless(cast: Cast, before: list[Step], late: Step, needs: dict[int, set[int]]) -> bool:
    """What is the wrong way round is told by others; so are parts of one wave."""
    numbers = cast.graph.step_numbers
    mine, own = {numbers[one.id] for one in before}, numbers[late.id]
    if before[-1].wave == late.wave or _has_tasks(cast, before[-1], late):
        return False
    return not needs.get(own, set()) & mine and not any(own in needs.get(one, ()) for one in mine)


OWN = ("Application", "ApplicationSet", "Kustomization", "HelmRelease", "AppProject")


def _has_tasks(cast: Cast, *steps: Step) -> bool:
    """Jobs and units do what no reference tells."""
    numbers = (cast.graph.step_numbers[one.id] for one in steps)
    nodes = (cast.graph.nodes[one] for number in numbers for one in cast.graph.steps[number].nodes)
    return any(
        node.is_task or node.hook or (node.ref is not None and node.ref.kind.name in OWN)
        for node in nodes
    )


def _first(cast: Cast, step: Step) -> Actor | None:
    number = cast.graph.step_numbers[step.id]
    nodes = cast.graph.steps[number].nodes
    return next((cast.actors[one] for one in nodes if one in cast.actors), None)


LONGEST_CHAIN = 12


@rule(
    "ORD027",
    "A very long chain of units",
    Severity.NOTE,
    why="each waits for the one before: the time of all of them adds up, and one that is stuck"
    " holds all behind it",
    fix="let units depend on what they need, and not on whoever comes before",
)
def long_chain(scene: LintScene) -> Iterator[RuleRemark]:
    depth: dict[UnitId, int] = {}
    for step in scene.order.plan.steps:
        for edge in scene.order.entering.get(step.id, ()):
            before = scene.order.steps[edge.before].unit
            grown = depth.get(before, 0) + (before != step.unit and bool(step.unit.kind))
            depth[step.unit] = max(grown, depth.get(step.unit, 0))
    written = {name_: number for name_, number in depth.items() if name_ in scene.unit_objects}
    last = max(written, key=lambda one: written[one], default=None)
    if last is not None and written[last] > LONGEST_CHAIN:
        yield RuleRemark(
            sentence=f"`{last}` comes behind {written[last]} others, one after another",
            at=Mark(scene.unit_objects[last]),
        )
