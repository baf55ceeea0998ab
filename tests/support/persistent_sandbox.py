"""A simulated cluster that outlives the commands that are run on it."""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tests.support.repositories import namespace
from tests.support.tidegate_command import CommandResult
from tests.support.tidegate_runs import kubeconfig
from tests.support.write_records import StoreRecord
from tidegate.cli.main import run_argv
from tidegate.clusters import session
from tidegate.clusters.connect import Worker
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import Driver
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import Ms
from tidegate.rollout import replan, run
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ListPage, Outcome, Success
from tidegate.world.one_shot import send_requests
from tidegate.world.protocol import World
from tidegate.world.requests import List, Request, RequestId, Selection, Verb, Write
from tidegate.world.resilient import ResilientWorld

APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization")
EVENT = Kind("", "v1", "Event")


def definition(kind: Kind, plural: str, *, status: bool) -> JsonObject:
    """A CRD that takes anything, with or without a status of its own."""
    whole: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": whole},
        **({"subresources": {"status": {}}} if status else {}),
    }
    names: Json = {"kind": kind.name, "plural": plural, "singular": plural[:-1]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


SERVED = (
    definition(APPLICATION, "applications", status=False),
    definition(KUSTOMIZATION, "kustomizations", status=True),
    definition(
        Kind("source.toolkit.fluxcd.io", "v1", "GitRepository"), "gitrepositories", status=True
    ),
)
ACCOUNT: JsonObject = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "default", "namespace": "argocd"},
}


LAST_TICKET = 10_000
Opened = AsyncIterator[World]


class Killed(BaseException):
    """End like a killed process: no event is emitted."""


class Screen(io.StringIO):
    """A terminal of so many columns that nothing can be drawn on."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self._master, self._slave = os.openpty()
        size = struct.pack("HHHH", 200, columns, 0, 0)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, size)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._slave

    def __del__(self) -> None:
        os.close(self._slave)
        os.close(self._master)


@dataclass(frozen=True, slots=True)
class PersistentSandbox:
    """One world that several commands use one after the other."""

    world: World
    folder: Path

    @classmethod
    def make(
        cls,
        folder: Path,
        patch: pytest.MonkeyPatch,
        *more: JsonObject,
        served: bool = True,
        faults: Sequence[Json] = (),
        failing: Sequence[str] = (),
        behaviours: Sequence[Json] = (),
        names: JsonObject | None = None,
    ) -> PersistentSandbox:
        """With namespaces of the dialects, their kinds, and `more`.

        Jobs that are `failing` fail; `behaviours` are others that a scenario can have. `names` are
        objects of which only the names are given, by kind.
        """
        given: list[Json] = [namespace("argocd"), namespace("flux-system"), ACCOUNT, *more]
        given += SERVED if served else ()
        scenario = folder / "scenario.yaml"
        behaves: list[Json] = [
            {"effect": "fails", "when": {"kind": "Job", "name": name}} for name in failing
        ]
        behaves += behaviours
        scenario_document: Json = {
            "given": {"objects": given, "names": names or {}},
            "faults": [*faults],
            "behaviours": behaves,
        }
        scenario.write_bytes(msgspec.json.encode(scenario_document))
        workers: dict[str, Worker] = {"none": bytes}  # an empty one would not be kept
        world = build_sandbox(SimulationConfig(scenario=scenario), workers)

        def make_again(_: SimulationConfig, given: dict[str, Worker], **_words: object) -> World:
            workers.clear()
            workers.update(given)
            return world

        @asynccontextmanager
        async def open_again(*_: object, workers: dict[str, Worker], **_words: object) -> Opened:
            yield make_again(SimulationConfig(), workers)

        patch.setattr(session, "build_sandbox", make_again)
        patch.setattr(session, "open_world", open_again)
        patch.setenv("HOME", str(folder))
        return cls(world, folder)

    def run(self, *words: str | Path, room: int | None = None) -> CommandResult:
        """Run in a terminal of this width; without a width, output goes to a pipe."""
        out, err = io.StringIO() if room is None else Screen(room), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run_argv([*map(str, words)])
        return CommandResult(code, out.getvalue(), err.getvalue(), 0)

    def reach(self, *words: str | Path, room: int | None = None) -> CommandResult:
        """Run a command that reaches the sandbox as a real cluster."""
        login = kubeconfig(self.folder, "https://kept.example.com")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(login))
            return self.run(*words, room=room)

    def sync(self, root: Path, *words: str) -> CommandResult:
        return self.run("sync", root, "--sandbox", *words)

    def killed(self, root: Path, *, turns: int) -> None:
        """Kill a sync after so many turns; its calls in progress are lost."""

        async def drive_a_while(driver: Driver, *, until: Ms | None = None) -> str:
            driver.open()
            for _ in range(turns):
                await driver.run_once(until)
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "drive", drive_a_while)
            patch.setattr(replan, "drive", drive_a_while)
            with pytest.raises((Killed, BaseExceptionGroup)):
                self.sync(root)
        for request_id in range(1, LAST_TICKET):
            self.world.cancel(RequestId(request_id))

    def changes(self) -> list[str]:
        """What was done to objects from the beginning on, by the cluster's own record."""
        assert isinstance(self.world, Sandbox)
        return asyncio.run(StoreRecord(self.world).changes())

    def ask(self, *requests: Request) -> tuple[Outcome, ...]:
        async def send_all() -> tuple[Outcome, ...]:
            return await send_requests(Dispatcher(ResilientWorld(self.world)), *requests)

        return asyncio.run(send_all())

    def all(self, kind: Kind, namespace: str) -> dict[str, JsonObject]:
        """The objects of a kind in a namespace, by their names."""
        (page,) = self.ask(List(Selection(kind, namespace)))
        assert isinstance(page, ListPage), page
        return {item.ref.name: msgspec.json.decode(item.body) for item in page.items}

    def versions(self, kind: Kind, namespace: str) -> dict[str, str]:
        """Changes with every write."""
        return {
            name: get_text(body, "metadata", "resourceVersion")
            for name, body in self.all(kind, namespace).items()
        }

    def put(self, body: JsonObject) -> None:
        """Another client creates an object."""
        metadata = get_mapping(body, "metadata")
        kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
        ref = Ref(kind, get_text(metadata, "namespace"), get_text(metadata, "name"))
        (outcome,) = self.ask(Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body)))
        assert isinstance(outcome, Success), outcome

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Another client deletes an object."""
        (outcome,) = self.ask(Write(verb=Verb.DELETE, ref=Ref(kind, namespace, name)))
        assert isinstance(outcome, Success), outcome

    def patch(
        self, kind: Kind, namespace: str, name: str, change: JsonObject, *, status: bool = False
    ) -> None:
        """Another client changes an object."""
        write = Write(
            verb=Verb.PATCH,
            ref=Ref(kind, namespace, name),
            body=msgspec.json.encode(change),
            subresource="status" if status else "",
            manager="other-client",
        )
        (outcome,) = self.ask(write)
        assert isinstance(outcome, Success), outcome
