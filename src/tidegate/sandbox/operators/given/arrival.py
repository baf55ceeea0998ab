"""Operators that are there already: their workloads come up before time begins to run.

The cluster's own controllers do it, all at one moment. So nothing is left to do when a simulation
begins, and nobody sees it happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.controllers.reaction import Controller, Sight
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome, is_refusal

NAMESPACE = Kind("", "v1", "Namespace")
AT_WORK = {
    "namespaces": NAMESPACE,
    "deployments": Kind("apps", "v1", "Deployment"),
    "stateful-sets": Kind("apps", "v1", "StatefulSet"),
    "daemon-sets": Kind("apps", "v1", "DaemonSet"),
    "replica-sets": Kind("apps", "v1", "ReplicaSet"),
    "kubelet": Kind("", "v1", "Pod"),
    "endpoints": NAMESPACE,
}
"""The controllers that bring up a workload, by name, and what each looks at."""
MOST_ROUNDS = 20

Give = Callable[[Write], Outcome]


def arrive(
    view: Sight,
    give: Give,
    controllers: Sequence[Controller],
    *,
    namespaces: Iterable[str],
    now: Ms,
) -> None:
    """Let everything in these namespaces come to rest, at this moment."""
    places = sorted(set(namespaces))
    for _ in range(MOST_ROUNDS):
        looks = [
            _look(controller, view, ref, give, now)
            for controller in controllers
            for place in places
            for ref in _looked_at(view, controller, place)
        ]
        if not any(looks):
            return


def _looked_at(view: Sight, controller: Controller, namespace: str) -> Iterator[Ref]:
    kind = AT_WORK.get(controller.name)
    if kind == NAMESPACE:
        yield Ref(NAMESPACE, "", namespace)
    elif kind is not None:
        yield from (stored.ref for stored in view.all_of(kind, namespace))


def _look(controller: Controller, view: Sight, ref: Ref, give: Give, now: Ms) -> bool:
    """One look of a controller; tells whether anything changed."""
    looking = controller.react(view, ref, now)
    outcome: Outcome | None = None
    has_changed = False
    while True:
        try:
            wanted = looking.send(outcome)
        except StopIteration:
            return has_changed
        outcome = give(wanted) if isinstance(wanted, Write) else None
        has_changed = has_changed or (outcome is not None and not is_refusal(outcome))
