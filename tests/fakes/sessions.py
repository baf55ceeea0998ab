"""A session on a world that a test has made itself, and units with other policies."""

from __future__ import annotations

from typing import Unpack

import msgspec

from tidegate.flows.render import own_setting
from tidegate.flows.session import Session, Target, make_craft
from tidegate.flows.wiring import Simulation
from tidegate.model.unit import Unit
from tidegate.testing.rollouts import PolicyChanges
from tidegate.world.protocol import World


def a_session(world: World) -> Session:
    return Session.over(world, make_craft(), own_setting(), Target(simulation=Simulation()))


def ruled(unit: Unit, **changes: Unpack[PolicyChanges]) -> Unit:
    """The unit with another policy."""
    return msgspec.structs.replace(unit, policy=msgspec.structs.replace(unit.policy, **changes))
