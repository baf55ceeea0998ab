"""A session on a world that a test has made itself, and units with other policies."""

from __future__ import annotations

from typing import Unpack

import msgspec

from tests.support.rollout_runs import PolicyChanges
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets, Session, build_evaluator
from tidegate.model.units.unit import Unit
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.world.protocol import World


def a_session(world: World) -> Session:
    return Session.from_world(
        world,
        build_evaluator(),
        user_render_settings(),
        ClusterTargets(simulation=SimulationConfig()),
    )


def ruled(unit: Unit, **changes: Unpack[PolicyChanges]) -> Unit:
    """The unit with another policy."""
    return msgspec.structs.replace(unit, policy=msgspec.structs.replace(unit.policy, **changes))
