"""Releases that stand as they are wanted: nothing is released, and drift is minded as they say."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.flows.discover.families import RenderedUnit, UnitTree
from tidegate.flows.rendering import RenderResult


def with_drift_detection(unit_trees: Iterable[UnitTree]) -> tuple[UnitTree, ...]:
    """Return the trees with drift detection of releases that need no new revision."""
    return tuple(
        msgspec.structs.replace(
            unit_tree, members=tuple(map(_with_drift_detection, unit_tree.members))
        )
        for unit_tree in unit_trees
    )


def is_deployed_release(member: RenderedUnit) -> bool:
    """Whether a unit is a release that is deployed as desired."""
    return isinstance(member.result, RenderResult) and member.result.is_deployed


def _with_drift_detection(member: RenderedUnit) -> RenderedUnit:
    policy = member.unit.policy
    if policy.release is None or not is_deployed_release(member):
        return member
    policy = msgspec.structs.replace(policy, drift=policy.release.drift)
    return msgspec.structs.replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))
