"""Damaged, incomplete or forged journals: detected, reported and rebuilt."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.secret_server import secret_server
from tests.support.sessions import a_session, ruled
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.journal import read_journal, rebuild_journal
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.clusters.session import Session
from tidegate.engine.cluster.procedures import Pause, Procedure
from tidegate.engine.driver import drive
from tidegate.engine.records.record import ENTRIES_PER_PART, UnitRecord
from tidegate.engine.records.storage import (
    TIDEGATE_NAMESPACE,
    RecordHead,
    build_secret_write,
    resource_name,
)
from tidegate.errors import ClusterError
from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.times import Ms
from tidegate.model.units.unit import Unit
from tidegate.plan.build.build import plan_unit
from tidegate.planning.preparation import prepare_plan
from tidegate.removal.removed_units import with_removed_units
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path
from tidegate.world.messages import NotFound, Outcome, Success, is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Get, Verb, Write

ROOT = Path(__file__).parents[2]
NAME = resource_name("default/unit")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
WRONG = {
    "a billion parts": b'{"version": 2, "parts": 1000000000}',
    "fewer parts than none": b'{"version": 2, "parts": -1}',
    "no JSON": b"nothing",
    "nothing": b"",
    "nested": b'{"entries": ' + b"[" * 100_000,
    "entries of another kind": b'{"version": 2, "entries": [5]}',
    "another type": b'{"version": 2, "parts": "many"}',
    "a part that is gone": b'{"version": 2, "parts": 2, "turn": 1}',
}


def stored(text: bytes) -> bytes:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": NAME,
            "namespace": TIDEGATE_NAMESPACE,
            "uid": "u",
            "resourceVersion": "1",
        },
        "data": {"journal.json": base64.b64encode(text).decode()},
    }
    return json.dumps(body).encode()


@pytest.mark.parametrize("what", WRONG)
def test_a_damaged_journal_is_reported_with_what_is_lost(
    what: str, tmp_path: Path, wording: RecordedWording
) -> None:
    unit = tmp_path / "unit"
    unit.mkdir()
    (unit / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    with secret_server(TIDEGATE_NAMESPACE, {NAME: stored(WRONG[what])}) as server:
        config = server.write_kubeconfig(tmp_path / "kubeconfig")
        command = ("status", str(unit), "--journal", "--kubeconfig", str(config))
        ran = subprocess.run(
            [sys.executable, "-m", "tidegate", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    assert ran.returncode == 5
    assert "error[journal.unreadable]" in ran.stderr
    assert "`tidegate status PATH --rebuild-journal`" in ran.stderr
    wording(ran.stderr)
    assert len(server.requests) < 20


def write_unit(folder: Path, *names: str) -> Unit:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name in names:
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n"
        (folder / f"{name}.yaml").write_text(text)
    return ruled(unit_for_path(str(folder), namespace="default"), prune=True)


async def roll_out(unit: Unit, session: Session) -> str:
    plan = (await prepare_plan([await make_unit_tree(unit, session)], session)).plan
    driver = build_driver(plan, session, RolloutOptions(holder="me"), lambda _: None)
    return str(await drive(driver))


async def names_of(session: Session, *names: str) -> list[str]:
    refs = [Ref(CONFIG_MAP, "default", name) for name in names]
    return [ref.name for ref in await session.reader().get_many(refs)]


async def damage(session: Session, unit: Unit) -> None:
    ref = UnitRecord(unit.id.tracking_id, "").ref
    (send_request,) = await send_requests(session.world, Get(ref))
    assert isinstance(send_request, Success)
    assert send_request.live is not None
    write = build_secret_write(
        ref, unit.id.tracking_id, RecordHead(), send_request.live.resource_version
    )
    broken = write.body.replace(b'"journal.json":"', b'"journal.json":"AAAA')
    (outcome,) = await send_requests(session.world, msgspec.structs.replace(write, body=broken))
    assert not is_error(outcome)


async def test_a_journal_is_rebuilt_from_tracking_metadata_and_prunes_again(tmp_path: Path) -> None:
    session = a_session(build_sandbox(SimulationConfig()))
    unit = write_unit(tmp_path / "unit", "kept", "left")
    assert await roll_out(unit, session) == "passed"
    await damage(session, unit)

    with pytest.raises(ClusterError) as raised:
        await read_journal(plan_unit(unit), session.world)
    rebuilt = await rebuild_journal(plan_unit(unit), session)
    remembered = await read_journal(plan_unit(unit), session.world)

    assert raised.value.code == "journal.unreadable"
    assert [ref.name for ref in rebuilt.objects] == ["kept", "left"]
    assert {*remembered.journal.entries} == {*rebuilt.objects}
    fewer = write_unit(tmp_path / "unit", "kept")
    assert await roll_out(fewer, session) == "passed"
    assert await names_of(session, "kept", "left") == ["kept"]


async def test_a_rebuilt_journal_excludes_objects_of_other_units(tmp_path: Path) -> None:
    session = a_session(build_sandbox(SimulationConfig()))
    unit, other = write_unit(tmp_path / "unit", "ours"), write_unit(tmp_path / "other", "theirs")
    for item in (unit, other):
        assert await roll_out(item, session) == "passed"
    await send_requests(session.world, _plain("nobodys"))

    rebuilt = await rebuild_journal(plan_unit(unit), session)

    assert [ref.name for ref in rebuilt.objects] == ["ours"]


async def test_a_damaged_journal_does_not_block_other_units(tmp_path: Path) -> None:
    session = a_session(build_sandbox(SimulationConfig()))
    unit, other = write_unit(tmp_path / "unit", "ours"), write_unit(tmp_path / "other", "theirs")
    for item in (unit, other):
        assert await roll_out(item, session) == "passed"
    await damage(session, other)

    planned = await prepare_plan([await make_unit_tree(unit, session)], session)
    result = await with_removed_units(planned, session)

    (finding,) = [
        finding for finding in result.findings if finding.code == "units.record-unreadable"
    ]
    assert result.plan == planned.plan
    assert UnitRecord(other.id.tracking_id, "").ref.name in str(finding.location)
    assert "--rebuild-journal" in finding.fix


def _plain(name: str) -> Write:
    ref = Ref(CONFIG_MAP, "default", name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return Write(verb=Verb.APPLY, ref=ref, body=msgspec.json.encode(body), manager="kubectl")


class Secrets:
    """A cluster that has nothing but the Secrets of one record."""

    def __init__(self) -> None:
        self.stored: dict[Ref, LiveObject] = {}

    def answer(self, request: object) -> Success | NotFound:
        assert isinstance(request, Get | Write)
        if isinstance(request, Write):
            version = str(len(self.stored) + 1)
            self.stored[request.ref] = LiveObject(request.ref, "uid", 1, version, request.body)
        known = self.stored.get(request.ref)
        return NotFound("") if known is None else Success(known)


def midnight() -> Ms:
    return Ms(0)


def test_a_missing_part_is_reported_with_its_location(wording: RecordedWording) -> None:
    cluster, record = Secrets(), UnitRecord("default/unit", "")
    refs = [Ref(CONFIG_MAP, "default", f"m{number}") for number in range(ENTRIES_PER_PART + 1)]
    record.register_objects("plan", refs, digest="text", source="", now=Ms(0))
    _run(record.write(midnight), cluster)
    lost = next(ref for ref in cluster.stored if ref.name.endswith(".1"))
    del cluster.stored[lost]

    with pytest.raises(ClusterError) as raised:
        _run(UnitRecord("default/unit", "").read(midnight), cluster)

    assert raised.value.code == "journal.unreadable"
    wording(raised.value.problem)
    assert str(raised.value.location) == f"Secret {TIDEGATE_NAMESPACE}/{lost.name}"


def _run(procedure: Procedure[Outcome | None], cluster: Secrets) -> None:
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            call = next(procedure) if outcomes is None else procedure.send(outcomes)
            assert not isinstance(call, Pause)
            outcomes = tuple(cluster.answer(item.request) for item in call)
    except StopIteration:
        return
