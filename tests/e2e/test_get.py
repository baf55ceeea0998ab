"""`tidegate get` on a real API server that serves the kinds of Flux."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_statuses import LAYERS, fleet, layers
from tests.support.live_statuses import commit
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.unit_families import Fleet

__all__ = ["fleet"]
pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


async def get(fleet: Fleet, *words: str) -> CommandResult:
    root, *target = fleet.words
    namespace = f"flux-system{fleet.repository.suffix}"
    more = () if "-A" in words else ("-n", namespace)
    user = Tidegate(fleet.repository.root.parent)
    return await user.run("flux", "get", *words, *more, "-C", str(root), *map(str, target))


async def test_kustomizations_are_shown_with_their_revisions_and_messages(fleet: Fleet) -> None:
    layers(fleet.repository)
    revision = commit(fleet.repository.root)
    ran = await fleet.run("sync", "--yes")
    assert ran.code == 0, ran.stdout + ran.stderr

    shown = await get(fleet, "ks")
    value = await get(fleet, "kustomizations", "apps", "-o", "json")
    sources = await get(fleet, "sources")
    everywhere = await get(fleet, "all", "-A")

    heads, *rows = (line.split(maxsplit=4) for line in shown.stdout.splitlines())
    assert heads == ["NAME", "REVISION", "SUSPENDED", "READY", "MESSAGE"]
    short = f"main@sha1:{revision[:8]}"
    assert {row[0]: row[1:] for row in rows} == {
        name: [short, "False", "True", f"Applied revision: {short}"]
        for name in (*LAYERS, f"flux-system{fleet.repository.suffix}")
    }
    (document,) = map(json.loads, value.stdout.splitlines())
    assert (document["metadata"]["name"], document["ready"]) == ("apps", "True")
    assert sources.stdout.splitlines()[1].startswith("platform")
    assert everywhere.stdout.split()[0] == "NAMESPACE"


async def test_before_the_first_rollout_no_unit_is_ready(fleet: Fleet) -> None:
    layers(fleet.repository)
    commit(fleet.repository.root)

    shown = await get(fleet, "ks", "apps")
    unknown = await get(fleet, "ks", "app")

    assert shown.stdout.splitlines()[1].split(maxsplit=3)[:3] == ["apps", "False", "False"]
    assert unknown.code == 2
    assert "`apps`" in unknown.stderr
