"""Releases that stand as they are wanted: nothing is released, and drift is minded as they say."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.flows.discover.families import Family, Member
from tidegate.flows.rendering import Rendered


def minding_drift(families: Iterable[Family]) -> tuple[Family, ...]:
    """Families to be rolled out; of what is released already drift alone is looked for."""
    return tuple(
        msgspec.structs.replace(one, members=tuple(map(_minding, one.members))) for one in families
    )


def is_kept(member: Member) -> bool:
    """Whether a unit is a release that is deployed as it is wanted."""
    return isinstance(member.rendered, Rendered) and member.rendered.is_deployed


def _minding(member: Member) -> Member:
    policy = member.unit.policy
    if policy.release is None or not is_kept(member):
        return member
    policy = msgspec.structs.replace(policy, drift=policy.release.drift)
    return msgspec.structs.replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))
