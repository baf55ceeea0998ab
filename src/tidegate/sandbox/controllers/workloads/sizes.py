"""How large each ReplicaSet of a Deployment may be now. Arithmetic only."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.sandbox.controllers.workloads.rollout import DESIRED, MAXIMUM, Crew, DeploymentRollout

Sizes = list[tuple[Crew, int]]


def new_size(rollout: DeploymentRollout) -> int:
    """How large the new ReplicaSet may be, beside the old ones."""
    own = rollout.new.size if rollout.new else 0
    if rollout.is_recreated or own > rollout.replicas:
        return rollout.replicas
    room = rollout.replicas + rollout.surge - _total(rollout.all)
    return own + min(room, rollout.replicas - own) if room > 0 else own


def old_sizes(rollout: DeploymentRollout) -> Sizes:
    """How small the old ones may become: first what is not available, then what can be spared."""
    least = rollout.replicas - rollout.unavailable
    waiting = rollout.new.size - rollout.new.available if rollout.new else 0
    spare = _total(rollout.all) - least - waiting
    active = [crew for crew in rollout.old if crew.size]
    if spare <= 0 or not active:
        return []
    sizes: Sizes = []
    for crew in active:
        unhealthy = min(spare, max(0, crew.size - crew.available))
        spare -= unhealthy
        sizes.append((crew, crew.size - unhealthy))
    available = sum(crew.available for crew in active)
    spare = available + (rollout.new.available if rollout.new else 0) - least
    for place, (crew, size) in enumerate(sizes):
        less = min(size, max(0, spare))
        spare -= less
        sizes[place] = crew, size - less
    return sizes


def is_scaling(rollout: DeploymentRollout) -> bool:
    """Whether the Deployment was scaled since its ReplicaSets were last told."""
    return any(crew.note(DESIRED) not in (None, rollout.replicas) for crew in rollout.active)


def scaled_sizes(rollout: DeploymentRollout) -> Sizes:
    """Sizes after scaling: in proportion while a rollout is under way, else all on one."""
    match rollout.active:
        case ():
            newest = rollout.new or (rollout.old[-1] if rollout.old else None)
            return [(newest, rollout.replicas)] if newest else []
        case (only,):
            return [(only, rollout.replicas)]
        case _:
            if _is_saturated(rollout):
                return [(crew, 0) for crew in rollout.old if crew.size]
            return [] if rollout.is_recreated else _proportional(rollout)


def _proportional(rollout: DeploymentRollout) -> Sizes:
    allowed = rollout.replicas + rollout.surge if rollout.replicas else 0
    missing = allowed - _total(rollout.active)
    crews = _by_size(rollout, newest_first=missing > 0)
    added = 0
    sizes: Sizes = []
    for crew in crews:
        fraction = _fraction(crew, rollout)
        left = missing - added
        step = min(fraction, left) if missing > 0 else max(fraction, left)
        step = step if missing and left else 0
        added += step
        sizes.append((crew, crew.size + step))
    largest, size = sizes[0]
    return [(largest, max(0, size + missing - added)), *sizes[1:]]


def _by_size(rollout: DeploymentRollout, *, newest_first: bool) -> list[Crew]:
    ordered = list(reversed(rollout.active)) if newest_first else list(rollout.active)
    return sorted(ordered, key=lambda crew: -crew.size)


def _fraction(crew: Crew, rollout: DeploymentRollout) -> int:
    if not rollout.replicas:
        return -crew.size
    before = crew.note(MAXIMUM) or sum(one.pods for one in rollout.all)
    if not before:
        return 0
    # Halves are rounded away from zero, as the real controller does.
    return (2 * crew.size * (rollout.replicas + rollout.surge) + before) // (2 * before) - crew.size


def _is_saturated(rollout: DeploymentRollout) -> bool:
    new = rollout.new
    wanted = rollout.replicas
    return new is not None and new.size == new.note(DESIRED) == new.available == wanted


def _total(crews: Iterable[Crew]) -> int:
    return sum(crew.size for crew in crews)
