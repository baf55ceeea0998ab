"""Gates and the controllers of a real control plane: what they have not seen does not count."""

from __future__ import annotations

import pytest

from plane import ControlPlane
from tests.support.builders import make_deployment
from tests.support.cluster_client import require_live
from tests.support.objects import ACCOUNT, a_namespace
from tests.support.rollout_objects import FOLLOWING, WEB
from tests.support.rollout_stage import Stage
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Ref

pytestmark = pytest.mark.kube


async def test_paused_controllers_keep_the_gate_closed_until_they_continue(
    plane: ControlPlane,
) -> None:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        stage = Stage(world, "fences-plane")
        require_live(await stage.client.create(a_namespace(stage.namespace)))
        account = Ref(ACCOUNT, stage.namespace, "default")
        await stage.client.settled(account, lambda live: live is not None)
        first = await stage.roll_out(WEB, FOLLOWING)
        plane.pause("controller-manager")
        try:
            rolling = stage.start(make_deployment(image="app:2"), FOLLOWING)
            await rolling.waits("NotObserved")
            changed = await stage.live(WEB)
            await rolling.observes(changed)
            was_open = rolling.is_open
        finally:
            plane.resume("controller-manager")
        run = await rolling.ends()

    assert (first.result, run.result) == ("passed", "passed")
    assert changed.generation == 2
    assert not was_open
