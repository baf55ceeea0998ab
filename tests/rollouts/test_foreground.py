"""Deletion in the foreground: what an object owns goes before it, on every world."""

from __future__ import annotations

import msgspec
import pytest

from tests.promises.objects import a_stateful_set
from tests.rollouts.stage import Stage
from tidegate.model.objects import Kind, Live, Propagation, Ref
from tidegate.model.reading import text
from tidegate.testing import Body, Desk, live_of
from tidegate.testing.builders import a_deployment, a_job
from tidegate.world.calls import Selection
from tidegate.world.facts import Change, Changed, Fact

POD = Kind("", "v1", "Pod")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")


async def going(desk: Desk, body: Body, *owned: Kind) -> list[Live]:
    """An object and what it owns, in the order in which they are gone."""
    owner = live_of(await desk.apply(body)).ref
    for kind in (owner.kind, *owned):
        desk.watch(Selection(kind, desk.namespace))
    await desk.until(_is_running_pod)
    await desk.delete(owner, propagation=Propagation.FOREGROUND)
    facts = await desk.until(lambda fact: _is_gone(fact, owner))
    gone = [one.live for one in facts if isinstance(one, Changed) if one.change is Change.DELETED]
    return sorted(gone, key=lambda live: int(live.version))


def _is_running_pod(fact: Fact) -> bool:
    match fact:
        case Changed(live=live) if live.ref.kind == POD:
            body: Body = msgspec.json.decode(live.body)
            return text(body, "status", "phase") == "Running"
        case _:
            return False


def _is_gone(fact: Fact, ref: Ref) -> bool:
    return isinstance(fact, Changed) and (fact.change, fact.live.ref) == (Change.DELETED, ref)


async def test_a_deployment_goes_behind_its_replica_set_and_that_behind_its_pods(
    living_stage: Stage,
) -> None:
    web = living_stage.here(a_deployment(replicas=2))

    gone = await going(living_stage.desk, web, REPLICA_SET, POD)

    kinds = [live.ref.kind.name for live in gone]
    assert kinds == ["Pod", "Pod", "ReplicaSet", "Deployment"]


@pytest.mark.parametrize(
    "body", [a_stateful_set("db"), a_job("migrate")], ids=lambda body: str(body["kind"])
)
async def test_what_runs_pods_itself_goes_behind_them(living_stage: Stage, body: Body) -> None:
    gone = await going(living_stage.desk, living_stage.here(body), POD)

    assert [live.ref.kind.name for live in gone] == ["Pod", body["kind"]]
