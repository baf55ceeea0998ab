"""Every place that must not be shown, on a real server: nothing of it is said, nor left there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.support.builders import make_object
from tests.support.canaries import CANARY, SECRET_PLACES, leaks, run_in
from tests.support.canary_search import is_in, left_in
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.worlds import real_world
from tidegate.documents import read_documents
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

FILES = [name for name, secret_place in SECRET_PLACES.items() if not secret_place.kubeconfig]
VERBS = ("sync", "plan", "sync-json", "status", "journal", "delete")


def own_kubeconfig(plane: ControlPlane, namespace: str) -> str:
    """The login of our user, for whom a namespace of their own is the usual one."""
    (config,) = read_documents(plane.kubeconfig("tidegate").read_bytes(), "kubeconfig")
    body = config.body
    assert isinstance(body, dict)
    contexts = body["contexts"]
    assert isinstance(contexts, list)
    for entry in contexts:
        assert isinstance(entry, dict)
        assert isinstance(entry["context"], dict)
        entry["context"]["namespace"] = namespace
    return msgspec.json.encode(body).decode()


async def make_namespaces(plane: ControlPlane, names: list[str]) -> None:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        client = ClusterClient(Dispatcher(ResilientWorld(world)))
        for name in names:
            require_live(await client.apply(make_object("v1 Namespace", name, namespace="")))


async def left_behind(plane: ControlPlane) -> list[bytes]:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        return await left_in(ClusterClient(Dispatcher(ResilientWorld(world))))


def test_no_run_on_a_server_leaks_a_secret_value(plane: ControlPlane, tmp_path: Path) -> None:
    names = {secret_place: f"canary-{place}" for place, secret_place in enumerate(FILES)}
    asyncio.run(make_namespaces(plane, [*names.values()]))
    seen: list[str] = []
    written = 0

    for place, secret_place in enumerate(FILES):
        config = own_kubeconfig(plane, names[secret_place])
        for verb in (VERBS[place % 2 * 2], VERBS[1 + 2 * (place % 3)]):
            folder = tmp_path / secret_place / verb
            run = run_in(folder, replace(SECRET_PLACES[secret_place], kubeconfig=config), verb)
            seen += [f"{secret_place} {verb}: {location}" for location in leaks(run, folder)]
            written += verb.startswith("sync") and run.code == 0

    assert seen == []
    assert written, "some of them were written"
    assert [text for text in asyncio.run(left_behind(plane)) if is_in(CANARY, text)] == []
