"""What a living object says of itself: whose it is, and how it wants to go.

Asked before anything is pruned or deleted, and before something of another unit is taken over.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.hooks import End, as_helm_reads, read_hook
from tidegate.dialect.argo.options import Body, read_handling
from tidegate.dialect.argo.waves import live_wave
from tidegate.dialect.flux.notes import read_notes
from tidegate.dialect.helm.marks import is_released
from tidegate.dialect.tracking import owner_of
from tidegate.model.plan import PlannedUnit
from tidegate.model.policy import Handling, Order
from tidegate.model.reading import listed


class Living(msgspec.Struct, frozen=True):
    """The wave it goes in, how it wants to be treated, and whether it was run as a hook.

    Hooks are never pruned; they go when their unit is deleted. `outlives`: it is run when all else
    of its unit is gone.
    """

    wave: int
    handling: Handling
    is_hook: bool
    outlives: bool = False


def read_living(body: Body, unit: PlannedUnit) -> Living | None:
    """None: it is not this unit's to delete, by its own word or because somebody owns it."""
    owner = owner_of(body, unit.policy.owner_label)
    is_own = owner == unit.id.mark or is_released(body, unit.policy.release)
    if not is_own or listed(body, "metadata", "ownerReferences"):
        return None
    if unit.policy.order is Order.STAGES:
        return Living(0, read_notes(body, unit.policy.handling), is_hook=False)
    if unit.policy.order is Order.HELM:
        body = as_helm_reads(body)
    hook = read_hook(body)
    outlives = hook is not None and not hook.phases and hook.ends == (End.POST_DELETE,)
    handling = read_handling(body, unit.policy.handling)
    return Living(live_wave(body), handling, is_hook=hook is not None, outlives=outlives)


def shared(body: Body, unit: PlannedUnit) -> str | None:
    """The other unit that an object belongs to; None where it is this one's, or nobody's."""
    owner = owner_of(body, unit.policy.owner_label)
    return None if owner in {"", unit.id.mark} else owner
