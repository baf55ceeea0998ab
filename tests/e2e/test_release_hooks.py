"""Hooks of releases are run in real helm's order, and releases end in it, by the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from plane import ControlPlane
from plane.audit import read_audit
from tests.e2e.hook_charts import CASES, FAILING
from tests.support.helm_oracle import find_helm, run_helm
from tests.support.kubectl import kubectl
from tests.support.releases import helm_release
from tests.support.repositories import Repository, git_repository, kustomization, setting
from tests.support.tidegate_command import Tidegate
from tidegate.model.k8s.objects import Json

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

CODES = {"create": {201}, "patch": {201}, "delete": {200, 202}}
OBJECTS = {"configmaps/b", "configmaps/d", "secrets/d", "serviceaccounts/c", "services/e"}
"""Those of all charts that are no hooks."""
KINDS = "jobs,configmaps,serviceaccounts,secrets,services"
BESIDES = ("secret/sh.helm.", "configmap/kube-root-ca.crt", "serviceaccount/default")
AT_ONCE = 4
"""The number of helm processes."""


@dataclass(frozen=True, slots=True)
class HelmComparison:
    """The same charts, released by helm and by us, each in a namespace of its own."""

    plane: ControlPlane
    folder: Path
    charts: Mapping[str, Mapping[str, str]]
    mine: str = "hooked"
    their: str = "helmed"

    def open(self) -> None:
        for number in range(len(self.charts)):
            for whose in (self.mine, self.their):
                kubectl(self.admin, "create", "namespace", f"{whose}-{number}")

    @property
    def root(self) -> Path:
        return self.folder / "repository"

    def chart(self, number: int) -> Path:
        return self.root / "charts" / str(number)

    def write(self, to: str) -> None:
        apps = kustomization(self.mine, "./apps", into="")
        bodies = []
        for number, templates in enumerate(self.charts.values()):
            chart: Json = {
                "spec": {
                    "chart": f"./charts/{number}",
                    "sourceRef": {
                        "kind": "GitRepository",
                        "name": "flux-system",
                        "namespace": "flux-system",
                    },
                }
            }
            bodies.append(helm_release(f"{self.mine}-{number}", chart=chart, values={"to": to}))
            files = {f"templates/{name}.yaml": text for name, text in templates.items()}
            files["Chart.yaml"] = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
            for path, text in files.items():
                file = self.chart(number) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        repository = Repository(self.root)
        repository.put("clusters/main/all.yaml", git_repository(), apps)
        repository.put("apps/all.yaml", *bodies)

    async def ours(self, to: str, *, fails: bool = False) -> None:
        self.write(to)
        await self.sync(fails=fails)

    async def ends(self) -> None:
        """All releases leave Git."""
        Repository(self.root).put("apps/all.yaml", setting("left", "default"))
        await self.sync()

    async def sync(self, *, fails: bool = False) -> None:
        login = self.plane.kubeconfig("tidegate")
        words = (self.root, "--kubeconfig", login, "--context", "plane", "--timeout", "200s")
        ran = await Tidegate(self.folder).run("sync", "--yes", *words)
        assert (ran.code != 0) is fails, ran.stdout + ran.stderr

    async def theirs(self, to: str, *, fails: bool = False) -> None:
        words = ("upgrade", "--install", "web")
        await self.helm(lambda at: (*words, str(self.chart(at)), "--set", f"to={to}"), fails=fails)

    async def helm(
        self, words_of: Callable[[int], tuple[str, ...]], *, fails: bool = False
    ) -> None:
        limit = asyncio.Semaphore(AT_ONCE)

        async def release(number: int) -> None:
            place = ("--namespace", f"{self.their}-{number}", "--kubeconfig", str(self.admin))
            words = words_of(number)
            async with limit:
                ended = await asyncio.to_thread(
                    run_helm, find_helm(), *words, *place, "--wait", user_home=self.folder
                )
            assert (ended.returncode != 0) is fails, ended.stderr

        async with asyncio.TaskGroup() as group:
            for number in range(len(self.charts)):
                group.create_task(release(number))

    @property
    def admin(self) -> Path:
        return self.plane.kubeconfig("admin")

    def made(self, whose: str, user: str) -> list[list[str]]:
        """By chart, what was made, in its order; something made twice is there twice."""
        return self.done(whose, user, "create", "patch")

    def gone(self, whose: str, user: str) -> list[list[str]]:
        """By chart, the objects that were deleted and are no hooks, in their order."""
        deleted = self.done(whose, user, "delete")
        return [[item for item in some if item in OBJECTS] for some in deleted]

    def done(self, whose: str, user: str, *verbs: str) -> list[list[str]]:
        matches: list[list[str]] = [[] for _ in self.charts]
        entries = sorted(
            read_audit(self.plane.audit_log), key=lambda item: item.request_received_timestamp
        )
        for entry in entries:
            ref, (place, _, number) = entry.object_ref, entry.object_ref.namespace.partition("-")
            is_done = entry.verb in verbs and entry.response_status.code in CODES[entry.verb]
            is_made = is_done and "dryRun=All" not in entry.request_uri
            is_record = ref.resource in {"secrets", "events"} and ref.name != "d"
            if place == whose and entry.user.username == user and is_made and not is_record:
                matches[int(number)].append(f"{ref.resource}/{ref.name}")
        return matches

    def left(self, whose: str) -> list[set[str]]:
        """By chart, what is there at the end."""
        return [set(self._names(f"{whose}-{number}")) for number in range(len(self.charts))]

    def _names(self, namespace: str) -> Sequence[str]:
        result = kubectl(self.admin, "get", KINDS, "-n", namespace, "-o", "name").split()
        return [item for item in result if not item.startswith(BESIDES)]


async def test_hooks_are_run_as_helm_runs_them(plane: ControlPlane, tmp_path: Path) -> None:
    comparison = HelmComparison(plane, tmp_path, CASES)
    comparison.open()
    for to in ("one", "two"):
        await comparison.ours(to)
        await comparison.theirs(to)
        made = dict(zip(CASES, comparison.made(comparison.mine, "tidegate"), strict=True))
        assert made["by weight"][:3] == ["jobs/b", "jobs/c", "jobs/a"]
        assert_alike(comparison)

    await comparison.ends()
    await comparison.helm(lambda _: ("uninstall", "web"))
    assert_alike(comparison)
    assert comparison.gone(comparison.mine, "tidegate") == comparison.gone(
        comparison.their, "admin"
    )
    words = ("-l", "owner=helm", "-o", "jsonpath={.items[*].metadata.namespace}")
    homes = kubectl(comparison.admin, "get", "secrets", "-A", *words).split()
    assert [namespace for namespace in homes if namespace.startswith(comparison.mine)] == []


async def test_failed_hooks_leave_the_same_objects_as_helm(
    plane: ControlPlane, tmp_path: Path
) -> None:
    charts = {name: {**broken} for name, (broken, _) in FAILING.items()}
    comparison = HelmComparison(plane, tmp_path, charts, "failing", "fallen")
    comparison.open()
    for to in ("one", "one"):  # the same release is retried
        await comparison.ours(to, fails=True)
        await comparison.theirs(to, fails=True)
        assert_alike(comparison)
    for name, (_, fixed) in FAILING.items():
        charts[name] |= fixed

    await comparison.ours("two")
    await comparison.theirs("two")

    assert_alike(comparison)


def assert_alike(comparison: HelmComparison) -> None:
    """What was made until now, in its order, and what is left of it."""
    ours, theirs = (
        comparison.made(comparison.mine, "tidegate"),
        comparison.made(comparison.their, "admin"),
    )
    for name, mine, other in zip(comparison.charts, ours, theirs, strict=True):
        assert (name, mine) == (name, other)
    left, their = comparison.left(comparison.mine), comparison.left(comparison.their)
    for name, there, elsewhere in zip(comparison.charts, left, their, strict=True):
        assert (name, there) == (name, elsewhere)
