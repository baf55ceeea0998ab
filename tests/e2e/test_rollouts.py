"""Rollouts on a real API server, by its audit log: in order, whatever is killed."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from plane.audit import read_audit
from tests.e2e.conftest import Site
from tests.support.builders import make_plan_from, make_unit
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.rollout_audit import AuditHistory, a_wave, is_own_write, read_history
from tests.support.rollout_program import KEY
from tests.support.rollout_runs import Run, make_driver, make_settings
from tidegate.engine.driver import drive
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE as OWN_NAMESPACE
from tidegate.engine.records.storage import resource_name
from tidegate.model.k8s.objects import LiveObject
from tidegate.model.plans.change import DiffAction
from tidegate.model.plans.plan import Plan, PlanItem
from tidegate.model.rollouts.event import Event, EventType
from tidegate.plan.diff.compare import compare
from tidegate.plan.serialize import to_json
from tidegate.workers.jq import Jq
from tidegate.world.requests import Get

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parents[2]
WAVES = 20
KILLS = 10


def a_chain(namespace: str, *, waves: int = WAVES, image: str = "app:1", **notes: str) -> Plan:
    """One unit, named as its namespace."""
    bodies = (a_wave(number, namespace, image=image, **notes) for number in range(waves))
    return make_plan_from(make_unit(*bodies, name=namespace))


def items_of(plan: Plan) -> list[PlanItem]:
    return [item for step in plan.steps for batch in step.batches for item in batch]


def saved(plan: Plan, folder: Path) -> Path:
    path = folder / f"{plan.digest}.json"
    path.write_bytes(to_json(plan, KEY))
    return path


@dataclass(slots=True)
class Program:
    """A rollout in a process of its own."""

    process: Process

    @classmethod
    async def start(cls, plan: Path, kubeconfig: Path, *, holder: str) -> Program:
        words = ("-m", "tests.support.rollout_program", str(plan), str(kubeconfig), holder)
        started = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, stdout=PIPE
        )
        return cls(started)

    async def event(self) -> Event | None:
        """The next event, or None at the end."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return msgspec.json.decode(line, type=Event) if line else None

    async def wrote(self, count: int) -> None:
        """Read events until this number of objects was written."""
        while count and (event := await self.event()):
            count -= event.type is EventType.OBJECT_WRITTEN
        assert not count, "it ended before"

    async def end(self) -> str:
        """How the rollout ended, in a word."""
        last = ""
        while event := await self.event():
            last = event.reason
        await self.process.wait()
        return last

    async def kill(self) -> None:
        """As a crash would; it must not have ended by itself."""
        self.process.kill()
        assert await self.process.wait() == -signal.SIGKILL


def assert_in_order(history: AuditHistory, *, waves: int = WAVES) -> None:
    """No wave was written before the one before it was ready, nor after the next one had begun."""
    order = [write.wave for write in history.writes]
    assert order == sorted(order)
    for wave in range(1, waves):
        assert history.ready[wave - 1, 1].received < history.first_write(wave).at, wave


async def living(client: ClusterClient, plan: Plan) -> dict[str, LiveObject]:
    """The planned objects by name, all of them as planned."""
    items = items_of(plan)
    outcomes = await client.ask(*(Get(item.ref) for item in items))
    live_objects = {
        item.ref.name: require_live(result) for item, result in zip(items, outcomes, strict=True)
    }
    for item in items:
        expected, matches = (
            msgspec.json.decode(item_) for item_ in (item.body, live_objects[item.ref.name].body)
        )
        assert compare(expected, matches, manager="tidegate").action is DiffAction.KEEP, item.ref
    return live_objects


def assert_versions_in_order(
    history: AuditHistory, live_objects: dict[str, LiveObject], *, waves: int = WAVES
) -> None:
    """The same, by the change count of the server: only we write these ConfigMaps."""
    for wave in range(1, waves):
        first = min(int(live_objects[f"w{wave:02}-{letter}"].resource_version) for letter in "ab")
        assert history.ready[wave - 1, 1].version < first, wave


async def test_the_audit_log_shows_twenty_waves_one_after_another(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        plan = a_chain(client.namespace)

        run = Run()
        with closing(Jq()) as jq:
            run.result = await drive(make_driver(client.world, plan, run, make_settings(), jq))

        live_objects = await living(client, plan)
    history = read_history(site.plane.audit_log, client.namespace)
    assert run.result == "passed"
    assert_in_order(history)
    assert_versions_in_order(history, live_objects)
    assert len(history.writes) == len(live_objects) == 3 * WAVES


@pytest.mark.timeout(400)
async def test_a_rollout_killed_ten_times_has_the_same_result_in_order(
    site: Site, tmp_path: Path
) -> None:
    moments = random.Random(6)
    async with site.client(site.kubeconfig()) as client:
        plan = a_chain(client.namespace)
        path, login = saved(plan, tmp_path), site.plane.kubeconfig("tidegate")

        for number in range(KILLS):
            holder = "another" if number == KILLS // 2 else "one"
            program = await Program.start(path, login, holder=holder)
            written = moments.randrange(5)
            await program.wrote(written)
            await asyncio.sleep(moments.uniform(0, 0.03) if written else moments.uniform(0.2, 0.8))
            await program.kill()
        end = await (await Program.start(path, login, holder="another")).end()

        live_objects = await living(client, plan)
    history = read_history(site.plane.audit_log, client.namespace)
    assert end == "passed"
    assert_in_order(history)
    assert_versions_in_order(history, live_objects)
    made = history.created()
    assert len(live_objects) == 3 * WAVES
    assert len(made) == len(set(made)), "nothing is made twice"
    # Of a creation whose caller was killed meanwhile, the server notes no success.
    assert 3 * WAVES - KILLS <= len(made) <= 3 * WAVES


@pytest.mark.timeout(400)
async def test_a_rollout_survives_an_api_server_restart(own_site: Site, tmp_path: Path) -> None:
    async with own_site.client(own_site.kubeconfig()) as client:
        plan = a_chain(client.namespace)
        login = own_site.plane.kubeconfig("tidegate")
        program = await Program.start(saved(plan, tmp_path), login, holder="one")
        await program.wrote(3 * WAVES // 2)

        own_site.plane.kill("apiserver")
        own_site.plane.revive("apiserver")

        end = await program.end()
        live_objects = await living(client, plan)
    history = read_history(own_site.plane.audit_log, client.namespace)
    assert end == "passed"
    assert_in_order(history)
    assert_versions_in_order(history, live_objects)
    assert len(history.created()) == len(set(history.created())) == 3 * WAVES


async def test_a_newer_plan_supersedes_a_rollout_without_interleaved_writes(
    site: Site, tmp_path: Path
) -> None:
    async with site.client(site.kubeconfig()) as client:
        earlier = a_chain(client.namespace, ready_after="1s")
        later = a_chain(client.namespace, waves=5, image="app:2", ready_after="100ms")
        logins = [site.plane.kubeconfig(user) for user in ("tidegate", "admin")]
        first = await Program.start(saved(earlier, tmp_path), logins[0], holder="first")
        await first.wrote(2)

        second = await Program.start(saved(later, tmp_path), logins[1], holder="second")
        ends = [await first.end(), await second.end()]

        await living(client, later)
    assert ends == ["stopped", "passed"]
    for writers in (writers_of_objects(site, client), writers_of_journal(site, client)):
        assert set(writers) == {"tidegate", "admin"}
        assert writers == sorted(writers, reverse=True)


def writers_of_objects(site: Site, client: ClusterClient) -> list[str]:
    """Who wrote the unit's objects, in the order of the writes."""
    return [write.user for write in read_history(site.plane.audit_log, client.namespace).writes]


def writers_of_journal(site: Site, client: ClusterClient) -> list[str]:
    name = resource_name(client.namespace)
    entries = [
        (entry.request_received_timestamp, entry.user.username)
        for entry in read_audit(site.plane.audit_log)
        if is_own_write(entry)
        and (entry.object_ref.namespace, entry.object_ref.resource) == (OWN_NAMESPACE, "secrets")
        and entry.object_ref.name.startswith(name)
    ]
    return [user for _, user in sorted(entries)]
