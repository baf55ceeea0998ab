"""A simulated cluster over HTTP, with the kinds of Argo CD and Flux, and their controllers."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.persistent_sandbox import ACCOUNT, SERVED
from tests.support.repositories import namespace
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.worlds import real_world
from tidegate.cli.main import run_argv
from tidegate.clusters.sandboxes import KUBECONFIG, SimulationConfig, build_sandbox
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import Ms
from tidegate.simulation.server import serve_world
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Message, WatchEvent
from tidegate.world.protocol import World
from tidegate.world.requests import Selection
from tidegate.world.resilient import ResilientWorld

LOOKS_AGAIN = Ms(50)
Answering = Callable[[JsonObject], JsonObject | None]
"""What a controller writes into the status of an object; None where it has nothing to say."""


class RunningCommand(NamedTuple):
    """A command that runs: what it has written so far, and what comes of it."""

    out: io.StringIO
    ran: asyncio.Task[CommandResult]


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """A cluster that commands reach by its kubeconfig, as a real one."""

    folder: Path
    world: World
    client: ClusterClient

    async def run(self, *words: str | Path) -> CommandResult:
        """Run a command while the cluster keeps running."""
        async with self.typing(*words) as typed:
            return await typed.ran

    @asynccontextmanager
    async def typing(self, *words: str | Path) -> AsyncIterator[RunningCommand]:
        """The same, and what it has written is seen before it ends."""
        text = [*map(str, words), "--kubeconfig", str(self.folder / KUBECONFIG)]
        out, err = io.StringIO(), io.StringIO()

        async def ran() -> CommandResult:
            code = await asyncio.to_thread(run_argv, text)
            return CommandResult(code, out.getvalue(), err.getvalue(), 0)

        with redirect_stdout(out), redirect_stderr(err):
            yield RunningCommand(out, asyncio.get_running_loop().create_task(ran()))

    async def has_printed(self, typed: RunningCommand, words: str) -> None:
        """Wait until a command has written something; it fails if it ends before that."""
        while words not in typed.out.getvalue():
            assert not typed.ran.done(), typed.ran.result()
            await self.client.rest(Ms(self.world.now() + LOOKS_AGAIN))

    async def roll_out(self, *words: str | Path) -> CommandResult:
        """The same in a process of its own: a rollout listens to signals."""
        return await Tidegate(self.folder).run(*words, "--kubeconfig", self.folder / KUBECONFIG)

    async def body(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        body: JsonObject = msgspec.json.decode(
            require_live(await self.client.get(Ref(kind, namespace, name))).body
        )
        return body

    async def names(self, kind: Kind, namespace: str) -> set[str]:
        return {
            item.ref.name
            for item in require_items(await self.client.page(Selection(kind, namespace)))
        }

    @asynccontextmanager
    async def answering(
        self, kind: Kind, answer: Answering, *, status: bool = True
    ) -> AsyncIterator[None]:
        """A controller that answers each change of an object, for as long as the block lasts."""
        task = asyncio.get_running_loop().create_task(self._answer(kind, answer, status=status))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _answer(self, kind: Kind, answer: Answering, *, status: bool) -> None:
        async with real_world(kubeconfig=self.folder / KUBECONFIG) as world:
            client = ClusterClient(Dispatcher(ResilientWorld(world)))
            client.watch(Selection(kind))

            def is_watch_event(message: Message) -> bool:
                return isinstance(message, WatchEvent)

            while True:
                message = (await client.until(is_watch_event))[-1]
                assert isinstance(message, WatchEvent)
                change = answer(msgspec.json.decode(message.live.body))
                if change is not None:
                    part = {"subresource": "status"} if status else {}
                    await client.patch(message.live.ref, change, **part)  # type: ignore[arg-type]


@asynccontextmanager
async def served_cluster(
    folder: Path,
    *given: JsonObject,
    served: bool = True,
    failing: Sequence[str] = (),
    prints: Sequence[str] = (),
) -> AsyncIterator[ServedCluster]:
    """With namespaces of the dialects, their kinds if they are `served`, and what is `given`.

    `failing` are Jobs that do. `prints` are lines that each container prints.
    """
    behaviours: list[Json] = [
        {"effect": "fails", "when": {"kind": "Job", "name": name}} for name in failing
    ]
    behaviours += [{"effect": "prints", "lines": [*prints]}] if prints else []
    objects: list[Json] = [namespace("argocd"), namespace("flux-system"), ACCOUNT, *given]
    objects += SERVED if served else ()
    scenario = folder / "scenario.yaml"
    scenario.write_bytes(
        msgspec.json.encode({"given": {"objects": objects}, "behaviours": behaviours})
    )
    async with (
        serve_world(build_sandbox(SimulationConfig(scenario=scenario)), folder, pace=20),
        real_world(kubeconfig=folder / KUBECONFIG) as world,
    ):
        yield ServedCluster(folder, world, ClusterClient(Dispatcher(ResilientWorld(world))))


def flux_answer(
    resource: JsonObject, *, revision: str = "main@sha1:abc", ready: bool = True
) -> JsonObject | None:
    """What a controller of Flux's says to a request that it has not answered yet."""
    text = get_text(resource, "metadata", "annotations", "reconcile.fluxcd.io/requestedAt")
    if not text or text == get_text(resource, "status", "lastHandledReconcileAt"):
        return None
    message = (
        f"Applied revision: {revision}" if ready else "dependency 'flux-system/data' is not ready"
    )
    status: JsonObject = {
        "lastHandledReconcileAt": text,
        "lastAppliedRevision": revision,
        "artifact": {"revision": revision},
        "observedGeneration": resource["metadata"]["generation"],  # type: ignore[index,call-overload]
        "conditions": [{"type": "Ready", "status": str(ready), "message": message}],
    }
    return {"status": status}
