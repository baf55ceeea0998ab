"""PodDisruptionBudgets: how many pods may be missing at a time."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, number, part
from tidegate.sandbox.controllers.amounts import share
from tidegate.sandbox.controllers.conditions import conditions_of, steady
from tidegate.sandbox.controllers.namespaces import NAMESPACE
from tidegate.sandbox.controllers.pods import POD, is_ready, phase_of
from tidegate.sandbox.controllers.reaction import Controller, Looking, Sight
from tidegate.sandbox.controllers.selectors.labelled import Labelled
from tidegate.sandbox.controllers.writes import controller_ref, set_status
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.facts import Change

BUDGET = Kind("policy", "v1", "PodDisruptionBudget")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
DEPLOYMENT = "Deployment"


def keep_budgets(view: Sight, ref: Ref, now: Ms) -> Looking:
    """All budgets of a namespace: pods do not name theirs, and are asked once for all of them."""
    budgets = view.all_of(BUDGET, ref.name)
    if not budgets:
        return
    pods = Labelled(view.all_of(POD, ref.name), (_selector(one) for one in budgets))
    for budget in budgets:
        selector = _selector(budget)
        covered = pods.matching(selector) if isinstance(selector, dict) else []
        status = _status(view, budget, covered, now)
        if not budget.is_deleting and status != mapping(budget.body, "status"):
            yield set_status(budget, status)


def _selector(budget: Stored) -> Json:
    return part(budget.body, "spec", "selector")


def _status(view: Sight, budget: Stored, pods: list[Stored], now: Ms) -> Body:
    """The pods it speaks of, how many of them are well, and how many may go."""
    expected, desired = _numbers(view, budget, pods)
    healthy = sum(is_ready(pod) and not pod.is_deleting for pod in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    words = ("SufficientPods", "") if allowed else ("InsufficientPods", "")
    condition = steady(
        conditions_of(budget), "DisruptionAllowed", "True" if allowed else "False", words, now=now
    )
    return {
        "observedGeneration": budget.generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [{**condition, "observedGeneration": budget.generation}],
    }


def _numbers(view: Sight, budget: Stored, pods: list[Stored]) -> tuple[int, int]:
    """How many pods are expected, and how many of them have to be well."""
    spec = mapping(budget.body, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is None and isinstance(least, int):
        return len(pods), least
    scale = _scale(view, pods)
    if most is not None:
        return scale, max(0, scale - share(most, of=scale, rounds_up=True))
    return scale, share(least, of=scale, rounds_up=True)


def _scale(view: Sight, pods: list[Stored]) -> int:
    """What the controllers of the pods are asked for, each once."""
    scales: dict[str, int] = {}
    for ref in dict.fromkeys(map(controller_ref, pods)):
        owner = _controller(view, ref) if ref else None
        if owner is not None:
            scales[owner.uid] = number(owner.body, "spec", "replicas", default=1)
    return sum(scales.values())


def _controller(view: Sight, ref: Ref) -> Stored | None:
    """Who decides how many such pods there are: a ReplicaSet of a Deployment does not."""
    owner = view.get(ref)
    if owner is not None and ref.kind == REPLICA_SET:
        above = controller_ref(owner)
        if above is not None and above.kind.name == DEPLOYMENT:
            return view.get(above)
    return owner


def _face(pod: Stored | None) -> tuple[dict[str, Json], bool, bool, str] | None:
    """All that budgets see of a pod."""
    if pod is None:
        return None
    return pod.labels, is_ready(pod), pod.is_deleting, phase_of(pod)


def _concerns(_view: Sight, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    is_gone = event.change is Change.DELETED
    is_seen = is_gone or _face(event.stored) != _face(event.before)
    if (ref.kind == BUDGET and not is_gone) or (ref.kind == POD and is_seen):
        yield Ref(NAMESPACE, "", ref.namespace)


BUDGETS = Controller("budgets", keep_budgets, _concerns, delay=Ms(100), kinds=(BUDGET, POD))
