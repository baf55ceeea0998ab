"""A set of twelve Applications in four steps on a real API server, by its audit log.

With and without the kinds of Argo CD: where they are served, the Applications themselves are
written, changed and deleted as the set's policy says.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from tests.e2e.output import plain_lines
from tests.support.appset_repository import LIMITS, NAMES, STEPS, SetRepository
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.dialect_kinds import serve
from tests.support.repositories import Repository, deployment, namespace
from tests.support.rollout_audit import CREATED, DeploymentSeen, is_own_write
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.worlds import real_world
from tidegate.model.k8s.json_fields import get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound, Success

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

_numbers = itertools.count(100)
APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
SET = Kind("argoproj.io", "v1alpha1", "ApplicationSet")
APPROVE = ("--approve", "c1", "--approve", "c2")


class Fleet:
    """A repository with an ApplicationSet, and a cluster with namespaces for this test only."""

    def __init__(self, plane: ControlPlane, root: Path, *, served: bool) -> None:
        self.plane, self.served = plane, served
        self.suffix = f"-{next(_numbers)}"
        self.shop = f"shop{self.suffix}"
        self.sets = SetRepository(Repository(root / "platform", self.suffix))
        self._folder = root

    @property
    def _login(self) -> tuple[str | Path, ...]:
        return "--kubeconfig", self.plane.kubeconfig("tidegate"), "--context", "plane"

    async def sync(self, *words: str) -> CommandResult:
        root = self.sets.repository.root
        return await Tidegate(self._folder).run(
            "sync", root, *self._login, "--yes", "--timeout", "100s", *words
        )

    async def approve(self, *names: str) -> CommandResult:
        units = [f"--unit=Application/argocd{self.suffix}/{name}" for name in names]
        return await Tidegate(self._folder).run("approve", *units, *self._login)

    @asynccontextmanager
    async def syncing(self) -> AsyncIterator[Process]:
        """A rollout in another process, which prints events."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "sync", str(self.sets.repository.root)),
            *(*map(str, self._login), "--yes", "--timeout", "150s", "-o", "json"),
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
            stdout=PIPE,
            stderr=PIPE,
            limit=1 << 22,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def written(self) -> dict[str, str]:
        """Return when each Deployment was created: at the last write before its controller saw it.

        A write of a killed client may have no effect, whatever its response is.
        """
        result, seen = dict[str, str](), set[str]()
        for entry in self._entries("deployments"):
            name = entry.object_ref.name
            if entry.object_ref.subresource == "status":
                seen.add(name)
            elif name not in seen and is_own_write(entry):
                result[name] = entry.request_received_timestamp
        return result

    def ready(self) -> dict[str, str]:
        """By Deployment, when its first generation was ready."""
        result: dict[str, str] = {}
        for entry in self._entries("deployments"):
            if entry.object_ref.subresource == "status" and entry.response_status.code < CREATED:
                seen = msgspec.json.decode(entry.response_object, type=DeploymentSeen)
                if seen.is_ready:
                    result.setdefault(entry.object_ref.name, entry.request_received_timestamp)
        return result

    def _entries(self, resource: str) -> list[AuditEntry]:
        matches = [
            item
            for item in read_audit(self.plane.audit_log)
            if item.object_ref.namespace == self.shop and item.object_ref.resource == resource
        ]
        return sorted(matches, key=lambda item: item.request_received_timestamp)

    async def application(self, name: str, kind: Kind = APPLICATION) -> JsonObject | None:
        async with real_world(kubeconfig=self.plane.kubeconfig("admin")) as world:
            ref = Ref(kind, f"argocd{self.suffix}", name)
            value = await ClusterClient(Dispatcher(world)).get(ref)
        if not isinstance(value, Success):
            return None
        body: JsonObject = msgspec.json.decode(require_live(value).body)
        return body

    async def patch(self, name: str, body: dict[str, Json]) -> None:
        async with real_world(kubeconfig=self.plane.kubeconfig("admin")) as world:
            ref = Ref(APPLICATION, f"argocd{self.suffix}", name)
            require_live(
                await ClusterClient(Dispatcher(world)).patch(ref, body, manager="other-client")
            )

    async def is_there(self, name: str) -> bool:
        async with real_world(kubeconfig=self.plane.kubeconfig("admin")) as world:
            ref = Ref(Kind("apps", "v1", "Deployment"), self.shop, name)
            return not isinstance(await ClusterClient(Dispatcher(world)).get(ref), NotFound)


@pytest.fixture(scope="module", params=["unserved", "served"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, bool]]:
    served = request.param == "served"
    with ControlPlane.start() as running:
        if served:
            asyncio.run(serve(running))
        yield running, served


@pytest.fixture
async def fleet(cluster: tuple[ControlPlane, bool], tmp_path: Path) -> Fleet:
    plane, served = cluster
    made = Fleet(plane, tmp_path, served=served)
    async with real_world(kubeconfig=plane.kubeconfig("admin")) as world:
        body: dict[str, Json] = namespace(f"argocd{made.suffix}")
        require_live(await ClusterClient(Dispatcher(world)).create(body))
    return made


async def until(process: Process, result: str, *names: str) -> None:
    """Read events until all these units have had this event."""
    left, last = set(names), list[str]()
    assert process.stdout is not None
    while left:
        line = await process.stdout.readline()
        assert line, "\n".join(last[-12:])
        last.append(line.decode())
        event = json.loads(line)
        if event["event"] == result and event.get("unit"):
            left.discard(event["unit"].rpartition("/")[2])


def assert_in_steps(fleet: Fleet) -> None:
    """Each step follows the previous one, and its units in progress never exceed its limit."""
    begun, ready = fleet.written(), fleet.ready()
    assert set(begun) == set(NAMES)
    for early, later in itertools.pairwise(STEPS):
        last = max(ready[name] for name in STEPS[early])
        assert last <= min(begun[name] for name in STEPS[later]), (early, later)
    for number, names in STEPS.items():
        for name in names:
            busy = [item for item in names if begun[item] <= begun[name] < ready[item]]
            assert len(busy) <= LIMITS[number], (number, busy)


async def test_max_update_limits_hold_and_steps_wait_for_approval(fleet: Fleet) -> None:
    fleet.sets.write()

    async with fleet.syncing() as process:
        await until(process, "step.waiting", "c1", "c2")
        held = set(fleet.written())
        first = await fleet.approve("c1")
        await until(process, "unit.finished", "c1")
        half = set(fleet.written())
        second = await fleet.approve("c2")
        await until(process, "unit.finished", "d1", "d2", "d3")
        assert await process.wait() == 0

    assert held == {*STEPS["1"], *STEPS["2"]}
    assert half == {*held, "c1"}
    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    assert f"Application/argocd{fleet.suffix}/c1" in first.lines[-1].split()
    assert_in_steps(fleet)
    again = await fleet.approve("c2")
    assert again.code == 3
    assert "error[plan.approval]" in again.stderr


async def test_a_failed_smoke_test_blocks_later_steps_until_it_is_fixed(fleet: Fleet) -> None:
    fleet.sets.write()
    fleet.sets.fail("b2")

    failed = await fleet.sync(*APPROVE)
    reached = set(fleet.written())
    fleet.sets.fix("b2")
    fixed = await fleet.sync(*APPROVE)

    assert failed.code == 4, failed.stdout + failed.stderr
    assert reached <= {*STEPS["1"], *STEPS["2"]}
    assert fixed.code == 0, fixed.stdout + fixed.stderr
    assert_in_steps(fleet)


async def test_a_killed_rollout_keeps_its_limits_and_approvals(fleet: Fleet) -> None:
    fleet.sets.write()
    for result, name in (("unit.finished", "a1"), ("step.applying", "b2"), ("step.waiting", "c2")):
        async with fleet.syncing() as process:
            await until(process, result, name)
            process.kill()
            assert await process.wait() == -signal.SIGKILL
    approved = await fleet.approve("c1", "c2")

    ran = await fleet.sync()

    assert approved.code == 0, approved.stderr
    assert ran.code == 0, ran.stdout + ran.stderr
    assert_in_steps(fleet)


async def test_applications_no_longer_generated_are_deleted_by_policy(fleet: Fleet) -> None:
    fleet.sets.write()
    first = await fleet.sync(*APPROVE)
    fleet.sets.drop("a1")
    fleet.sets.put_set(syncPolicy={"applicationsSync": "create-update"})
    kept = await fleet.sync(*APPROVE)
    is_kept = await fleet.is_there("a1"), await fleet.application("a1") is not None
    fleet.sets.put_set()

    ran = await fleet.sync(*APPROVE)

    assert (first.code, kept.code, ran.code) == (0, 0, 0), kept.stderr + ran.stderr
    assert is_kept == (True, fleet.served)
    assert not await fleet.is_there("a1")
    assert await fleet.application("a1") is None
    assert await fleet.is_there("a2")


async def test_applications_of_a_removed_set_are_deleted(fleet: Fleet) -> None:
    fleet.sets.write()
    first = await fleet.sync(*APPROVE)
    fleet.sets.repository.drop("sets/apps.yaml")

    ran = await fleet.sync()

    assert (first.code, ran.code) == (0, 0), ran.stdout + ran.stderr
    assert [name for name in NAMES if await fleet.is_there(name)] == []
    assert await fleet.application("a1") is None


async def test_without_a_finalizer_objects_of_a_deleted_application_stay(fleet: Fleet) -> None:
    fleet.sets.write(syncPolicy={"preserveResourcesOnDeletion": True})
    first = await fleet.sync(*APPROVE)
    fleet.sets.drop("a1")

    ran = await fleet.sync(*APPROVE)

    assert (first.code, ran.code) == (0, 0), ran.stderr
    assert await fleet.application("a1") is None
    assert await fleet.is_there("a1")
    assert "warning[units.orphan]" in ran.stderr


async def test_applications_are_written_like_by_the_controller(fleet: Fleet) -> None:
    if not fleet.served:
        return
    fleet.sets.write()

    ran = await fleet.sync(*APPROVE)

    body = await fleet.application("a1")
    assert ran.code == 0, ran.stderr
    assert body is not None
    automated = body["spec"]["syncPolicy"]["automated"]  # type: ignore[index,call-overload]
    assert automated == {"prune": True, "enabled": False}
    assert body["metadata"]["labels"] == {"step": "1"}  # type: ignore[index,call-overload]
    assert "argocd.argoproj.io/tracking-id" not in body["metadata"]["annotations"]  # type: ignore[index,call-overload,operator]


async def test_the_status_of_the_set_has_the_step_of_each_application(fleet: Fleet) -> None:
    if not fleet.served:
        return
    fleet.sets.write()
    fleet.sets.fail("b2")

    failed = await fleet.sync(*APPROVE)
    held = await fleet.application("apps", SET)
    fleet.sets.fix("b2")
    fixed = await fleet.sync(*APPROVE)
    done = await fleet.application("apps", SET)

    assert (failed.code, fixed.code) == (4, 0), failed.stderr + fixed.stderr
    assert plain_lines(failed.stderr + fixed.stderr) == []
    assert held is not None
    assert done is not None
    states = {
        get_text(application_status, "application"): (
            get_text(application_status, "step"),
            get_text(application_status, "status"),
        )
        for application_status in get_mappings(held, "status", "applicationStatus")
    }
    assert {states[name] for name in STEPS["1"]} == {("1", "Healthy")}
    assert states["b2"] == ("2", "Progressing")
    assert {states[name] for name in STEPS["3"]} == {("3", "Waiting")}
    assert get_text(held, "status", "health", "status") == "Progressing"
    entries = get_mappings(done, "status", "applicationStatus")
    assert [get_text(entry, "application") for entry in entries] == sorted(NAMES)
    assert {get_text(entry, "status") for entry in entries} == {"Healthy"}
    assert get_text(done, "status", "health", "status") == "Healthy"
    by_name = {
        get_text(condition, "type"): condition["status"]
        for condition in get_mappings(done, "status", "conditions")
    }
    assert (by_name["RolloutProgressing"], by_name["ResourcesUpToDate"]) == ("False", "True")
    assert get_value(done, "status", "resourcesCount") == len(NAMES)


async def test_a_create_only_policy_does_not_update_applications(fleet: Fleet) -> None:
    if not fleet.served:
        return
    fleet.sets.write()
    first = await fleet.sync(*APPROVE)
    fleet.sets.repository.put("apps/a1/other/web.yaml", deployment("a1", to="2"))
    fleet.sets.describe("a1", "1", "other")
    fleet.sets.put_set(syncPolicy={"applicationsSync": "create-only"})

    kept = await fleet.sync(*APPROVE)
    before = await fleet.application("a1")
    fleet.sets.put_set()
    ran = await fleet.sync(*APPROVE)
    after = await fleet.application("a1")

    assert (first.code, kept.code, ran.code) == (0, 0, 0), kept.stderr + ran.stderr
    paths = [item and item["spec"]["source"]["path"] for item in (before, after)]  # type: ignore[index,call-overload]
    assert paths == ["apps/a1/objects", "apps/a1/other"]


async def test_fields_of_other_managers_are_kept(fleet: Fleet) -> None:
    if not fleet.served:
        return
    fleet.sets.write(
        preservedFields={"annotations": ["team"]},
        ignoreApplicationDifferences=[{"jsonPointers": ["/spec/source/path"]}],
    )
    first = await fleet.sync(*APPROVE)
    fleet.sets.repository.put("apps/a1/other/web.yaml", deployment("a1", to="2"))
    theirs: dict[str, Json] = {
        "metadata": {"annotations": {"team": "blue"}},
        "spec": {"source": {"path": "apps/a1/other"}},
    }
    await fleet.patch("a1", theirs)

    ran = await fleet.sync(*APPROVE, "-o", "json")

    body = await fleet.application("a1")
    assert (first.code, ran.code) == (0, 0), first.stderr + ran.stderr
    assert body is not None
    assert body["spec"]["source"]["path"] == "apps/a1/other"  # type: ignore[index,call-overload]
    assert body["metadata"]["annotations"]["team"] == "blue"  # type: ignore[index,call-overload]
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    written = [event for event in events if event["event"] == "object.written"]
    deployed = [item["name"] for item in written if item["kind"] == "Deployment"]
    assert deployed == ["a1"], "it follows what lives"
