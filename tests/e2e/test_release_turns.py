"""Helm 3, helm 4 and we take turns with one release on a real API server; nobody loses anything."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of, lines_with
from tests.e2e.release_harbour import ReleaseHarbour
from tests.support.helm_oracle import VERSION, VERSION_3, find_helm
from tests.support.releases import config_map, hook

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

HANGS = {"test.tidegate.dev/outcome": "hang"}
FORCED = "--force-conflicts"
OURS = {"to": "one", "ours": "yes"}


@pytest.fixture
def harbour(plane: ControlPlane, tmp_path: Path) -> ReleaseHarbour:
    made = ReleaseHarbour.open(plane, tmp_path)
    made.shop.release(maxHistory=0)
    has_key(made, "ours")
    return made


def has_key(harbour: ReleaseHarbour, key: str) -> None:
    """The chart has this key, and none of those it had before."""
    template = config_map("web", to="'{{ .Values.to }}'", **{key: "'yes'"})
    harbour.shop.put("templates/web.yaml", template)


def superseded(many: int) -> list[tuple[int, str]]:
    """So many revisions, of which the last one stands."""
    return [*((item, "superseded") for item in range(1, many)), (many, "deployed")]


async def test_helm_3_and_helm_4_release_what_we_do_and_we_go_on_each_time(
    harbour: ReleaseHarbour,
) -> None:
    has_key(harbour, "three")
    harbour.helm("install", "web", harbour.chart, "--set", "to=three", version=VERSION_3)
    has_key(harbour, "ours")
    await harbour.tidegate()
    assert harbour.setting() == OURS

    has_key(harbour, "four")
    harbour.helm("upgrade", "web", harbour.chart, "--set", "to=four", FORCED, version=VERSION)
    has_key(harbour, "ours")
    await harbour.tidegate()
    assert harbour.setting() == OURS
    assert harbour.stands() == superseded(4)

    harbour.helm("rollback", "web", "3", version=VERSION_3)
    assert harbour.setting() == {"to": "four", "four": "yes"}
    await harbour.tidegate()
    assert harbour.setting() == OURS
    harbour.helm("rollback", "web", "1", version=VERSION)  # by the client, as helm 3 applied it
    await harbour.tidegate()
    assert harbour.setting() == OURS
    assert harbour.stands() == superseded(8)

    before = harbour.body("configmap", "web")
    again = await harbour.tidegate("sync", "-o", "json")
    assert events_of(again.stdout, "object.written") == []
    assert (harbour.body("configmap", "web"), harbour.stands()) == (before, superseded(8))


async def test_what_helm_uninstalled_is_installed_again(harbour: ReleaseHarbour) -> None:
    await harbour.tidegate()
    for version in (VERSION_3, VERSION):
        harbour.helm("uninstall", "web", version=version)
        assert (harbour.names(), harbour.records()) == (set(), [])
        await harbour.tidegate()
        assert harbour.setting() == OURS
        assert harbour.stands() == [(1, "deployed")]

    harbour.helm("uninstall", "web", "--keep-history")
    await harbour.tidegate()

    assert harbour.setting() == OURS
    assert harbour.stands() == [(1, "uninstalled"), (2, "deployed")]
    assert harbour.history()[-1][2] == "Install complete"


async def kill_helm(harbour: ReleaseHarbour, version: str) -> None:
    """Helm begins a release, and is killed while it waits for a hook that never ends.

    A Job of an earlier hook is deleted first: helm would delete it while we wait for the new one.
    """
    await asyncio.to_thread(harbour.kubectl, "delete", "job", "slow", "--ignore-not-found")
    harbour.shop.put("templates/hook.yaml", hook("slow", "pre-install,pre-upgrade", pod=HANGS))
    args = harbour.words("upgrade", "--install", "web", harbour.chart)
    helm = await asyncio.create_subprocess_exec(
        *(str(find_helm(version)), *args),
        env={"PATH": os.environ["PATH"], "HOME": str(harbour.folder)},
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    ready = "jsonpath={.status.active}=1"
    for until in ("create", ready):
        args = ("wait", "job/slow", f"--for={until}", "--timeout=60s")
        await asyncio.to_thread(harbour.kubectl, *args)
    helm.kill()
    assert await helm.wait() == -signal.SIGKILL
    harbour.shop.put("templates/hook.yaml", hook("slow", "pre-install,pre-upgrade"))


async def test_what_a_killed_helm_left_pending_is_reported_unlocked_and_upgraded(
    harbour: ReleaseHarbour,
) -> None:
    await kill_helm(harbour, VERSION_3)
    assert harbour.stands() == [(1, "pending-install")]

    result = await harbour.tidegate()

    (locked,) = lines_with(result.stderr, "note[flux.release-locked]")
    assert all(part in locked for part in (" 1 ", f"`{harbour.home}/web`", "`pending-install`"))
    assert harbour.stands() == [(1, "failed"), (2, "deployed")]
    assert harbour.phases() == {"slow": "Succeeded"}
    await kill_helm(harbour, VERSION)
    assert harbour.stands()[-1] == (3, "pending-upgrade")

    result = await harbour.tidegate()

    (locked,) = lines_with(result.stderr, "note[flux.release-locked]")
    assert all(part in locked for part in (" 3 ", f"`{harbour.home}/web`", "`pending-upgrade`"))
    unlocked = "Release unlocked from stale 'pending-upgrade' state"
    assert harbour.history()[-2:] == [
        (3, "failed", unlocked),
        (4, "deployed", "Upgrade complete"),
    ]
    assert harbour.stands() == [(1, "failed"), (2, "superseded"), (3, "failed"), (4, "deployed")]
    assert harbour.phases() == {"slow": "Succeeded"}
    assert "flux.release-locked" not in (await harbour.tidegate()).stderr
