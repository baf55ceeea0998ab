"""Units that contain others, as the engine runs them: pauses, polls, failures, their ends."""

from __future__ import annotations

from tests.support.builders import make_deployment, make_manifest
from tests.support.decision_run import DecisionRun
from tests.support.nested_units import child_unit, joined, plan_of, setting
from tests.support.ordered_manifests import a_thing
from tidegate.model.k8s.verdict import Health
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.units.policy import GateScope, Order, Policy
from tidegate.model.units.semantics import ARGOCD, FLUX, TIDEGATE

BY_ARGO = Policy(semantics=ARGOCD)
BY_FLUX = Policy(semantics=FLUX, order=Order.STAGES, gates=GateScope.ALL)


def web(name: str, wave: int = 0) -> Manifest:
    return make_manifest(make_deployment(name), wave=wave)


def make_healthy(play: DecisionRun, *names: str) -> None:
    for name in names:
        play.judge(name, Health.HEALTHY)


def ends(play: DecisionRun) -> dict[str, str]:
    messages = [event for event in play.events if event.type is EventType.UNIT_FINISHED]
    return {item.unit.name: item.reason for item in messages if item.unit is not None}


def test_with_argo_cd_semantics_waves_of_children_start_two_seconds_apart() -> None:
    unit_resource = (setting("start"), child_unit("a"), child_unit("b", 1), setting("end", 2))
    plan = plan_of(
        joined("root", *unit_resource, policy=BY_ARGO),
        joined("a", web("a0"), setting("a1", 1), parent="root", policy=BY_ARGO),
        joined("b", parent="root", policy=BY_ARGO),
    )
    play = DecisionRun(plan, ARGOCD)

    make_healthy(play, "start")
    play.wait(60)

    assert play.starts("root/sync/0") == play.starts("a/sync/0") == [0.0]
    assert play.starts("b/sync/0") == [2.0]
    assert play.starts("root/sync/2") == [4.0]
    assert play.starts("a/sync/1") == [], "its own waves wait for its own objects"


def test_with_flux_semantics_a_child_starts_at_once_and_dependents_check_every_thirty_seconds() -> (
    None
):
    plan = plan_of(
        joined("root", child_unit("a"), child_unit("b"), policy=BY_FLUX),
        joined("a", web("a0"), parent="root", policy=BY_FLUX),
        joined("b", parent="root", after=("a",), policy=BY_FLUX),
    )
    play = DecisionRun(plan, FLUX)

    play.wait(7)
    play.judge("a0", Health.HEALTHY)
    play.wait(60)

    assert play.starts("a/rest") == [0.0]
    assert play.starts("b/rest") == [30.0]


def test_with_flux_semantics_a_unit_is_reconciled_after_its_parent_created_it() -> None:
    ground = a_thing("Namespace", "shop")
    plan = plan_of(
        joined("root", ground, child_unit("a"), child_unit("b"), policy=BY_FLUX),
        joined("a", web("a0"), parent="root", policy=BY_FLUX),
        joined("b", parent="root", after=("a",), policy=BY_FLUX),
    )
    play = DecisionRun(plan, FLUX)
    play.wait(7)
    make_healthy(play, "shop")
    play.wait(7)  # the gate of a namespace is looked at every two seconds
    make_healthy(play, "a0")
    play.wait(60)

    assert play.starts("a/rest") == [8.0]
    assert play.starts("b/rest") == [38.0]


def test_a_unit_for_failures_is_left_out_where_nothing_fails() -> None:
    plan = plan_of(
        joined("root", setting("own"), child_unit("help", phase=Phase.SYNC_FAIL)),
        joined("help", parent="root"),
    )

    play = DecisionRun(plan, TIDEGATE)

    make_healthy(play, "own")

    assert ends(play) == {"root": "passed", "help": "skipped"}
    assert play.events[-1].reason == "passed"


def test_a_unit_for_failures_runs_where_something_fails() -> None:
    plan = plan_of(
        joined("root", web("own"), child_unit("help", phase=Phase.SYNC_FAIL)),
        joined("help", parent="root"),
    )
    play = DecisionRun(plan, TIDEGATE)

    play.judge("own", Health.DEGRADED, final=True)
    make_healthy(play, "help")

    assert ends(play) == {"root": "failed", "help": "passed"}


def test_a_retried_parent_does_not_start_a_child_too_early() -> None:
    plan = plan_of(
        joined(
            "root", web("own"), child_unit("a"), child_unit("b"), setting("bad", 1), policy=BY_ARGO
        ),
        joined("a", web("a0"), setting("a1", 1), parent="root", policy=BY_ARGO),
        joined("b", parent="root", after=("a",), policy=BY_ARGO),
    )
    play = DecisionRun(plan, ARGOCD, refusals={"bad": 1})
    play.judge("own", Health.HEALTHY)

    play.wait(40)  # by then the parent has begun anew, and has passed

    assert len(play.starts("root/sync/0")) == 2
    assert play.starts("b/sync/0") == [], "it depends on a unit that is not done"


def test_a_failing_child_holds_the_waves_after_its_own_and_nothing_else() -> None:
    unit_resource = (child_unit("a"), child_unit("b"), setting("end", 1))
    plan = plan_of(
        joined("root", *unit_resource),
        joined("a", web("a0"), parent="root"),
        joined("b", web("b0"), setting("b1", 1), parent="root"),
    )
    play = DecisionRun(plan, TIDEGATE)

    play.judge("a0", Health.DEGRADED, final=True)
    make_healthy(play, "b0", "b1")

    assert ends(play) == {"root": "skipped", "a": "failed", "b": "passed"}
    assert play.starts("root/sync/1") == []


def test_a_newer_plan_keeps_the_children_that_are_done() -> None:
    def plan(*more: Manifest) -> Plan:
        return plan_of(
            joined("root", child_unit("a"), child_unit("b", 1)),
            joined("a", parent="root"),
            joined("b", web("b0"), *more, parent="root"),
        )

    play = DecisionRun(plan(), TIDEGATE)
    make_healthy(play, "a")
    play.wait(3)

    play.supersede(plan(setting("b1", 1)))
    make_healthy(play, "b0", "b1")

    assert play.starts("a/sync/0") == [0.0]
    assert len(play.starts("b/sync/0")) == 1
    assert ends(play) == {"root": "passed", "a": "passed", "b": "passed"}
