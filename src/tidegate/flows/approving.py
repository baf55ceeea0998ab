"""Let units go on that wait until somebody approves: in a rollout under way, and in a later one."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from tidegate.engine.approvals import approval
from tidegate.engine.stored import NAMESPACE, Head, list_heads, read_head, resource_name
from tidegate.errors import ClusterError, Place, PlanError
from tidegate.flows.discover import Member, is_called
from tidegate.flows.looking import run_errand
from tidegate.model.unit import UnitId
from tidegate.world.ask import ask
from tidegate.world.exchange import Exchange
from tidegate.world.facts import is_refusal
from tidegate.world.refusals import refusal_error


class ApprovedUnit(msgspec.Struct, frozen=True):
    """A unit that may go on, in which cluster it is rolled out, and for which text."""

    unit: str
    cluster: str
    text: str


class _Recorded(msgspec.Struct, frozen=True):
    """What a cluster remembers of a unit that was asked for."""

    unit: str
    """Its identity, or where only its record is known the name of that."""
    cluster: str
    head: Head


async def approve_units(
    names: Iterable[str], world: Exchange, clusters: Iterable[str]
) -> list[ApprovedUnit]:
    """Approve what rollouts are bringing of these units. Nothing is, if one cannot be.

    Raises a PlanError where a name is nobody's, or nothing of the unit is left to approve.
    """
    known = [one for cluster in clusters for one in await _read(cluster, world)]
    meant = [one for name in names for one in _called(name, known)]
    for one in meant:
        _refuse_done(one)
    return [await _approve(one, world) for one in meant]


async def _read(cluster: str, world: Exchange) -> list[_Recorded]:
    heads = await run_errand(list_heads(cluster, NAMESPACE), world)
    if heads is None:
        problem = f"what is rolled out cannot be seen: nothing can be listed in `{NAMESPACE}`"
        hint = "reading Secrets there takes a right"
        raise ClusterError("cluster.records", problem, where=Place(cluster), hint=hint)
    return [_Recorded(name, cluster, read_head(live)) for name, live in heads.items()]


def _called(name: str, known: Sequence[_Recorded]) -> list[_Recorded]:
    """The units that go by an identity, else by a name: in each cluster one."""
    exact = [one for one in known if one.unit == resource_name(name)]
    loose = [one for one in known if one.head.kin and name in _names(one.head.kin.unit)]
    found = [_Recorded(_mark(one, name), one.cluster, one.head) for one in exact or loose]
    if not found:
        units = [text for one in known if one.head.kin for text in _names(one.head.kin.unit)]
        near = get_close_matches(name, units, n=1)
        hint = f"did you mean `{near[0]}`?" if near else "write it as `tidegate units` shows it"
        raise PlanError("plan.named", f"no rollout of a unit `{name}` was ever begun", hint=hint)
    if len({one.unit for one in found}) > 1:
        several = ", ".join(f"`{one.unit}`" for one in found)
        raise PlanError("plan.named", f"`{name}` may be {several}", hint="write the whole identity")
    return found


def _names(unit: UnitId) -> tuple[str, ...]:
    return (unit.mark, str(unit), f"{unit.namespace}/{unit.name}", unit.name)


def _mark(one: _Recorded, name: str) -> str:
    return one.head.kin.unit.mark if one.head.kin else name


def _refuse_done(one: _Recorded) -> None:
    if one.head.text in ("", one.head.done):
        problem = f"nothing of `{one.unit}` waits: what was last rolled out has passed"
        hint = "approve it when a rollout of the next text has begun"
        raise PlanError("plan.approval", problem, where=Place(one.cluster), hint=hint)


async def _approve(one: _Recorded, world: Exchange) -> ApprovedUnit:
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    write = approval(one.unit, one.head.text, by)
    (outcome,) = await ask(world, write, cluster=one.cluster)
    if is_refusal(outcome):
        raise refusal_error(outcome, "approving", where=Place(f"unit {one.unit}"))
    return ApprovedUnit(one.unit, one.cluster, one.head.text)


def approved_by(names: Iterable[str], members: Iterable[Member]) -> frozenset[UnitId]:
    """The units that are approved beforehand. Raises for a name that nobody has."""
    members, found = tuple(members), set[UnitId]()
    for name in names:
        mine = {one.unit.id for one in members if is_called(one.unit, name)}
        if not mine:
            hint = "`tidegate units` shows all"
            raise PlanError("plan.named", f"there is no unit `{name}`", hint=hint)
        found |= mine
    return frozenset(found)
