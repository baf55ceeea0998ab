"""A stage for Argo CD's cases: manifests in, a sync by its rules, and what came of it.

    @case(26)
    async def test_...(stage: ArgoStage) -> None:
        syncing = await stage.begin_sync(HOOK, WEB)      # or: run = await stage.sync(...)
        await stage.becomes(HOOK, failed())              # statuses are the test's own

        run = await syncing.ends()

        assert run.result == "failed"
        assert await stage.changes("create", "delete") == ["create pods/hook"]

`stage` is a sandbox, `each_stage` that and a real server. No pod is ever run there, and in the
sandbox no workload has a controller.
Where a server says no, a test opens a stage of its own: `await open_stage(Sandbox(faults=...))`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypedDict, Unpack

import msgspec
import pytest
from msgspec import structs

from tests.support.builders import make_unit_id
from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import ACCOUNT, a_namespace, an_object
from tests.support.parsed_manifests import parse_all_manifests
from tests.support.rollout_runs import Run
from tests.support.rollout_stage import RunningRollout, Stage
from tests.support.write_records import Record, StoreRecord
from tidegate.dialect.argo.options import with_sync_options
from tidegate.documents import Document, read_documents
from tidegate.documents.dump import to_json
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.json_fields import get_list, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.plan import HOOK_FINALIZER, Plan
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import Ms
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import ARGOCD, Semantics
from tidegate.model.units.sync_window import SyncWindow
from tidegate.model.units.unit import Destination, Unit
from tidegate.plan.build.build import build_plan
from tidegate.plan.changes.selection import select_objects
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import ApiResources, NotFound, Outcome, Success
from tidegate.world.protocol import World
from tidegate.world.requests import Discover

_numbers = itertools.count(1)
TIMES = ("startTime", "completionTime")
ONCE = structs.replace(ARGOCD, retry=structs.replace(ARGOCD.retry, limit=0))
"""Argo CD's rules for a sync that a person asks for: it is not tried again."""


class SyncSettings(TypedDict, total=False):
    """How a unit is synced.

    `options`: sync options of the unit. `ignores`: fields to ignore in comparisons. `resources`:
    selected objects, without hooks. `consents`: whether the user confirms deletions that require
    it. `windows`: sync windows.
    """

    options: tuple[str, ...]
    ignores: tuple[IgnoreDifference, ...]
    resources: tuple[str, ...]
    prunes: bool
    consents: bool
    semantics: Semantics
    windows: tuple[SyncWindow, ...]


class ArgoStage(Stage):
    """One namespace, and a unit in it that is synced by Argo CD's rules."""

    def __init__(
        self, world: World, namespace: str, record_of: Callable[[ClusterClient], Record]
    ) -> None:
        super().__init__(world, namespace)
        self.record = record_of(self.client)
        """What the cluster itself says was done to it."""

    async def sync(self, *manifests: str | JsonObject, **how: Unpack[SyncSettings]) -> Run:
        return await (await self.begin_sync(*manifests, **how)).ends()

    async def begin_sync(
        self, *manifests: str | JsonObject, **how: Unpack[SyncSettings]
    ) -> RunningRollout:
        """Begin to sync all that the unit wants: YAML, or bodies; those of `default` move here."""
        return self.start_plan(await self.planned(*manifests, **how))

    async def planned(self, *manifests: str | JsonObject, **how: Unpack[SyncSettings]) -> Plan:
        """The plan of a unit."""
        documents = [
            item for number, text in enumerate(manifests) for item in self._read(text, number)
        ]
        wide = await self._cluster_wide()
        unit = Unit(
            id=make_unit_id(self.namespace),
            destination=Destination(namespace=self.namespace),
            policy=_policy(how),
        )
        read = parse_all_manifests(
            unit, documents, lambda kind: (kind.group, kind.name) not in wide
        )
        plan = build_plan([read], readiness_timeout=readiness_timeout)
        resources = how.get("resources", ())
        return select_objects(plan, resources) if resources else plan

    async def changes(self, *verbs: str) -> list[str]:
        """What was done to objects, by the cluster's own record and in its order.

        `create pods/web`, `change ...`, `delete ...`: all of them, or those of these verbs.
        """
        result = await self.record.changes()
        return [item for item in result if not verbs or item.split()[0] in verbs]

    async def becomes(self, body: JsonObject, status: JsonObject) -> None:
        """Wait until the object exists, and write its status as its controller would.

        On a real server its controller runs too, so the start time of a Job is not overwritten.
        """
        ref = await self.ref(body)
        await self.client.settled(ref, lambda live: live is not None)

        async def say() -> Outcome:
            begun = get_value(await self.body(body), "status", "startTime")
            times = {name: begun for name in TIMES if begun is not None and name in status}
            result: JsonObject = {"status": {**status, **times}}
            return await self.client.patch(ref, result, subresource="status", manager="controller")

        await self.client.eventually(say, lambda outcome: isinstance(outcome, Success))

    async def goes(self, body: JsonObject) -> None:
        """Wait until it is gone."""
        await self.client.settled(await self.ref(body), lambda live: live is None)

    async def body(self, expected: JsonObject) -> JsonObject:
        """The live object."""
        body: JsonObject = msgspec.json.decode((await self.live(expected)).body)
        return body

    @property
    def group(self) -> str:
        """A group for kinds of a test's own: definitions are in no namespace."""
        return f"{self.namespace}.acceptance.example"

    async def exists(self, body: JsonObject) -> bool:
        return isinstance(await self.client.get(await self.ref(body)), Success)

    async def holds(self, hook: JsonObject) -> bool:
        """Whether a hook cannot go, since its verdict is still awaited."""
        value = await self.client.get(await self.ref(hook))
        body = {} if isinstance(value, NotFound) else require_body(value)
        return HOOK_FINALIZER in get_list(body, "metadata", "finalizers")

    async def passes(self, span: Ms) -> None:
        """Let time pass, in which rollouts may work."""
        await self.client.rest(Ms(self.world.now() + span))

    def _read(self, manifest: str | JsonObject, number: int) -> tuple[Document, ...]:
        text = manifest if isinstance(manifest, str) else to_json(self.here(manifest))
        return read_documents(text, f"{number}.yaml")

    async def _cluster_wide(self) -> set[tuple[str, str]]:
        (served,) = await self.client.ask(Discover())
        assert isinstance(served, ApiResources)
        return {(kind.kind.group, kind.kind.name) for kind in served.kinds if not kind.namespaced}


def _policy(how: SyncSettings) -> Policy:
    policy = Policy(
        semantics=how.get("semantics", ONCE),
        prune=how.get("prunes", False),
        confirmed=how.get("consents", False),
        ignore_differences=how.get("ignores", ()),
        runs_hooks=True,
        windows=how.get("windows", ()),
    )
    return with_sync_options(policy, how.get("options", ()))


async def open_stage(
    world: World, record_of: Callable[[ClusterClient], Record] | None = None
) -> ArgoStage:
    """A namespace in which pods can be made, and a record that begins now; a sandbox has one."""
    stage = ArgoStage(
        world, f"case-{next(_numbers)}", record_of or (lambda _: _store_record(world))
    )
    require_live(await stage.client.create(a_namespace(stage.namespace)))
    require_live(await stage.client.apply(an_object(ACCOUNT, "default")))
    await stage.record.mark()
    return stage


def _store_record(world: World) -> Record:
    assert isinstance(world, Sandbox)
    return StoreRecord(world)


def case(*numbers: int) -> pytest.MarkDecorator:
    """Mark the cases that a test covers; docs/contributing/argocd-cases.md lists them."""
    return pytest.mark.case(*numbers)


def named(run: Run, *kinds: EventType) -> list[str]:
    """The names of the objects that events of these kinds tell of."""
    return [event.ref.name for event in run.events_of(*kinds) if event.ref is not None]


def finished(run: Run) -> dict[str, str]:
    """How each hook ended."""
    events = run.events_of(EventType.HOOK_FINISHED)
    return {event.ref.name: event.reason for event in events if event.ref is not None}


def failure(run: Run) -> str:
    """Why the first step that failed did."""
    return run.events_of(EventType.STEP_FAILED)[0].message
