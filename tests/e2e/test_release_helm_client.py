"""Helm 3, helm 4 and Tidegate alternate on one release on a real API server, and lose nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of, lines_with
from tests.e2e.release_namespace import ReleaseNamespace
from tests.support.helm_oracle import VERSION, VERSION_3, find_helm
from tests.support.releases import config_map, hook

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

HANGS = {"test.tidegate.dev/outcome": "hang"}
FORCED = "--force-conflicts"
OURS = {"to": "one", "ours": "yes"}


@pytest.fixture
def stage(plane: ControlPlane, tmp_path: Path) -> ReleaseNamespace:
    made = ReleaseNamespace.open(plane, tmp_path)
    made.shop.release(maxHistory=0)
    has_key(made, "ours")
    return made


def has_key(stage: ReleaseNamespace, key: str) -> None:
    """The chart has this key, and none of those it had before."""
    template = config_map("web", to="'{{ .Values.to }}'", **{key: "'yes'"})
    stage.shop.put("templates/web.yaml", template)


def superseded(many: int) -> list[tuple[int, str]]:
    """The release has so many revisions, and the last one is deployed."""
    return [*((item, "superseded") for item in range(1, many)), (many, "deployed")]


async def test_helm_3_and_helm_4_alternate_with_tidegate_on_one_release(
    stage: ReleaseNamespace,
) -> None:
    has_key(stage, "three")
    stage.helm("install", "web", stage.chart, "--set", "to=three", version=VERSION_3)
    has_key(stage, "ours")
    await stage.tidegate()
    assert stage.setting() == OURS

    has_key(stage, "four")
    stage.helm("upgrade", "web", stage.chart, "--set", "to=four", FORCED, version=VERSION)
    has_key(stage, "ours")
    await stage.tidegate()
    assert stage.setting() == OURS
    assert stage.revision_statuses() == superseded(4)

    stage.helm("rollback", "web", "3", version=VERSION_3)
    assert stage.setting() == {"to": "four", "four": "yes"}
    await stage.tidegate()
    assert stage.setting() == OURS
    stage.helm("rollback", "web", "1", version=VERSION)  # by the client, as helm 3 applied it
    await stage.tidegate()
    assert stage.setting() == OURS
    assert stage.revision_statuses() == superseded(8)

    before = stage.body("configmap", "web")
    again = await stage.tidegate("sync", "-o", "json")
    assert events_of(again.stdout, "object.written") == []
    assert (stage.body("configmap", "web"), stage.revision_statuses()) == (
        before,
        superseded(8),
    )


async def test_a_release_uninstalled_by_helm_is_installed_again(stage: ReleaseNamespace) -> None:
    await stage.tidegate()
    for version in (VERSION_3, VERSION):
        stage.helm("uninstall", "web", version=version)
        assert (stage.names(), stage.records()) == (set(), [])
        await stage.tidegate()
        assert stage.setting() == OURS
        assert stage.revision_statuses() == [(1, "deployed")]

    stage.helm("uninstall", "web", "--keep-history")
    await stage.tidegate()

    assert stage.setting() == OURS
    assert stage.revision_statuses() == [(1, "uninstalled"), (2, "deployed")]
    assert stage.history()[-1][2] == "Install complete"


async def kill_helm(stage: ReleaseNamespace, version: str) -> None:
    """Helm begins a release, and is killed while it waits for a hook that never ends.

    A Job of an earlier hook is deleted first: helm would delete it while we wait for the new one.
    """
    await asyncio.to_thread(stage.kubectl, "delete", "job", "slow", "--ignore-not-found")
    stage.shop.put("templates/hook.yaml", hook("slow", "pre-install,pre-upgrade", pod=HANGS))
    args = stage.words("upgrade", "--install", "web", stage.chart)
    helm = await asyncio.create_subprocess_exec(
        *(str(find_helm(version)), *args),
        env={"PATH": os.environ["PATH"], "HOME": str(stage.folder)},
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    ready = "jsonpath={.status.active}=1"
    for until in ("create", ready):
        args = ("wait", "job/slow", f"--for={until}", "--timeout=60s")
        await asyncio.to_thread(stage.kubectl, *args)
    helm.kill()
    assert await helm.wait() == -signal.SIGKILL
    stage.shop.put("templates/hook.yaml", hook("slow", "pre-install,pre-upgrade"))


async def test_a_release_left_pending_by_helm_is_unlocked_and_upgraded(
    stage: ReleaseNamespace,
) -> None:
    await kill_helm(stage, VERSION_3)
    assert stage.revision_statuses() == [(1, "pending-install")]

    result = await stage.tidegate()

    (locked,) = lines_with(result.stderr, "note[flux.release-locked]")
    assert all(part in locked for part in (" 1 ", f"`{stage.namespace}/web`", "`pending-install`"))
    assert stage.revision_statuses() == [(1, "failed"), (2, "deployed")]
    assert stage.phases() == {"slow": "Succeeded"}
    await kill_helm(stage, VERSION)
    assert stage.revision_statuses()[-1] == (3, "pending-upgrade")

    result = await stage.tidegate()

    (locked,) = lines_with(result.stderr, "note[flux.release-locked]")
    assert all(part in locked for part in (" 3 ", f"`{stage.namespace}/web`", "`pending-upgrade`"))
    unlocked = "Release unlocked from stale 'pending-upgrade' state"
    assert stage.history()[-2:] == [
        (3, "failed", unlocked),
        (4, "deployed", "Upgrade complete"),
    ]
    assert stage.revision_statuses() == [
        (1, "failed"),
        (2, "superseded"),
        (3, "failed"),
        (4, "deployed"),
    ]
    assert stage.phases() == {"slow": "Succeeded"}
    assert "flux.release-locked" not in (await stage.tidegate()).stderr
