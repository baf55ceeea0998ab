"""Every builtin row: with its operator its kinds become ready, without it never."""

from __future__ import annotations

from typing import cast

import pytest

from tests.support.operator_stage import OperatorStage, an_operator, operators_of
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.knowledge.templates import status_matches
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import WILDCARD, KindRow
from tidegate.model.times import MINUTE, Ms
from tidegate.schema.builtin import served_kinds

BUILTIN_GROUPS = frozenset(served.kind.group for served in served_kinds())
"""Groups of Kubernetes, whose controllers write statuses; rows list what others create."""
ROWS = [
    (row, kind)
    for row in load_builtin_knowledge().rows
    if row.group != WILDCARD and row.group not in BUILTIN_GROUPS
    for kind in row.kinds
]
KINDS = [
    pytest.param(row, Kind(row.group, row.versions[0], kind), id=f"{kind}.{row.group}")
    for row, kind in ROWS
]
INSIDE = [item for item, (row, _) in zip(KINDS, ROWS, strict=True) if not row.served_by.outside]
OPERATORS = {operator.name: operator for operator in load_builtin_knowledge().operators}
ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
GATEWAY = Kind("gateway.networking.k8s.io", "v1", "Gateway")
CONTENT = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent")
LONGEST = Ms(11 * MINUTE)


async def a_stage(kind: Kind) -> OperatorStage:
    stage = OperatorStage()
    return await stage.start(*dict.fromkeys((kind, GATEWAY, CONTENT)))


def a_spec(kind: Kind) -> JsonObject:
    """The least that lets an object become ready."""
    return {"parentRefs": [{"name": "edge"}]} if kind.name in ROUTES else {"replicas": 1}


def servers_of(row: KindRow, kind: Kind) -> list[JsonObject]:
    """Its operator by name, or a workload that its row, or a guess, takes for one."""
    if row.operator:
        return list(operators_of(OPERATORS[row.operator]))
    known = row.served_by
    name = (*known.names, f"{kind.name.lower()}-operator")[0].replace("*", "x")
    return [an_operator(name, f"registry.example/{(*known.images, 'any')[0]}:1")]


@pytest.mark.parametrize(("row", "kind"), KINDS)
async def test_a_kind_with_its_operator_becomes_ready(row: KindRow, kind: Kind) -> None:
    stage = await a_stage(kind)
    for body in servers_of(row, kind):
        await stage.operate(body)
    if kind.name in ROUTES:
        await stage.make(GATEWAY, "edge", {})

    ref = await stage.make(kind, "it", a_spec(kind))
    before = await stage.body(ref)
    await stage.wait(LONGEST)

    assert all_checks_pass(row.ready_when, await stage.body(ref))
    assert not row.ready_when or not all_checks_pass(row.ready_when, before)


@pytest.mark.parametrize(("row", "kind"), INSIDE)
async def test_a_kind_without_its_operator_never_gets_a_status(row: KindRow, kind: Kind) -> None:
    stage = await a_stage(kind)
    await stage.operate(an_operator("another-operator", "registry.example/shop/web:1"))

    ref = await stage.make(kind, "it", a_spec(kind))
    await stage.wait(LONGEST)

    assert await stage.status(ref) == {}
    assert [name for name, _ in stage.unserved()] == [str(ref)]
    assert row.source


@pytest.mark.parametrize(
    "row", load_builtin_knowledge().rows, ids=lambda row: f"{row.kinds[0]}.{row.group}"
)
def test_the_status_of_a_waiting_operator_does_not_look_ready(row: KindRow) -> None:
    last = row.stages[-1].writes

    waiting = [need.unmet for need in row.needs if need.unmet]

    assert not any(status_matches(cast("Json", item), cast("Json", last)) for item in waiting)


def test_no_kind_has_two_rows() -> None:
    kinds = [(row.group, kind) for row in load_builtin_knowledge().rows for kind in row.kinds]

    assert len(kinds) == len(set(kinds))
    assert len(kinds) > 120
