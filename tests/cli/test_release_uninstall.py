"""Releases that left Git or became others are uninstalled as Helm does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import (
    CONFIG_MAP,
    ChartRepository,
    config_map,
    hook,
    records,
    revision_statuses,
)
from tests.support.repositories import Repository, git_repository, kustomization, namespace
from tidegate.clusters import reader
from tidegate.engine.records.markers import build_suspension
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Ref
from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Forbidden, Outcome
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import List, Request, Verb, Write

APPS = "apps/release.yaml"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    user_home = tmp_path / "home"
    user_home.mkdir()
    return PersistentSandbox.make(user_home, monkeypatch, namespace("shop"), served=False)


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    """A release in a file that a Kustomization applies, which prunes."""
    made = ChartRepository(tmp_path / "repository", file=APPS)
    apps = kustomization("apps", "./apps", into="")
    Repository(made.root).put("clusters/main/all.yaml", git_repository(), apps)
    made.put("values.yaml", "to: one\n")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    made.put("templates/service.yaml", SERVICE)
    made.put("templates/before.yaml", hook("before", "pre-delete", policy="hook-succeeded"))
    made.put("templates/later.yaml", hook("later", "post-delete", policy="hook-succeeded"))
    return made


SERVICE = """apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports: [{port: 80}]
"""


def remove_release(shop: ChartRepository) -> None:
    Repository(shop.root).put(APPS, namespace(shop.namespace))


def changes_since(sandbox: PersistentSandbox, before: int) -> list[str]:
    """What was done to objects of the release, its hooks and its records."""
    prefixes = ("jobs/before", "jobs/later", "services/web", "configmaps/web", "secrets/sh.helm")
    done = [
        change for change in sandbox.changes()[before:] if change.split()[1].startswith(prefixes)
    ]
    return [item for item in done if item.split()[0] in {"create", "delete"}]


def test_a_release_that_left_git_is_uninstalled_as_helm_does(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    first = sandbox.sync(shop.root)
    assert first.code == 0, first.stderr
    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    before = len(sandbox.changes())
    remove_release(shop)

    ended = sandbox.sync(shop.root)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert any(
        "note[units.orphan]" in line
        and "`HelmRelease/shop/web`" in line
        and "ConfigMap shop/web" in line
        for line in ended.stderr.splitlines()
    )
    assert records(sandbox) == []
    assert changes_since(sandbox, before) == [
        "create jobs/before",
        "delete services/web",
        "delete configmaps/web",
        "create jobs/later",
        "delete jobs/before",
        "delete jobs/later",
        "delete secrets/sh.helm.release.v1.web.v1",
        "delete secrets/sh.helm.release.v1.web.v2",
    ]
    again = sandbox.sync(shop.root)
    assert (again.code, "units.orphan" in again.stderr) == (0, False)


MOVES = {
    "name": ({"releaseName": "till"}, "shop", "till"),
    "target": ({"releaseName": "web", "targetNamespace": "quay"}, "shop", "web"),
    "storage": ({"storageNamespace": "quay"}, "quay", "web"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_release_that_becomes_another_is_uninstalled_first(
    sandbox: PersistentSandbox, shop: ChartRepository, move: str
) -> None:
    spec, user_home, name = MOVES[move]
    message = "'{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.Namespace }}'"
    shop.put("templates/seen.yaml", config_map("seen", it=message))
    sandbox.put(namespace("quay"))
    assert sandbox.sync(shop.root).code == 0
    before = len(sandbox.changes())
    shop.release(**spec)

    moved = sandbox.sync(shop.root)

    assert moved.code == 0, moved.stdout + moved.stderr
    assert "flux.release-moved" in moved.stderr
    matches = [record for place in ("shop", "quay") for record in records(sandbox, place)]
    into = str(spec.get("targetNamespace", "shop"))
    assert [(item.name, item.namespace, item.number) for item in matches] == [(name, into, 1)]
    assert revision_statuses(sandbox, user_home) == [(1, "deployed")]
    web = "configmaps/web"
    done = changes_since(sandbox, before)
    assert done.index("create jobs/before") < done.index(f"delete {web}")
    assert done.index(f"delete {web}") < done.index("create jobs/later")
    assert done.index("create jobs/later") < done.index(f"create {web}")
    assert done.count(f"create {web}") == 1
    settings = sandbox.all(CONFIG_MAP, into)
    assert get_text(settings["seen"], "data", "it") == f"1 true {into}"
    assert "web" in settings
    assert into == "shop" or "web" not in sandbox.all(CONFIG_MAP, "shop")
    before = len(sandbox.changes())
    again = sandbox.sync(shop.root)
    assert (again.code, changes_since(sandbox, before)) == (0, [])
    assert "flux.release-moved" not in again.stderr


def test_a_killed_replacement_uninstalls_and_installs_once(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """Rename the release, and kill the process again and again."""
    assert sandbox.sync(shop.root).code == 0
    before = len(sandbox.changes())
    shop.release(releaseName="till")
    for number in range(12):
        sandbox.killed(shop.root, turns=4 + 4 * number)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    assert [(record.name, record.number) for record in records(sandbox)] == [("till", 1)]
    assert revision_statuses(sandbox) == [(1, "deployed")]
    made = [item for item in changes_since(sandbox, before) if item.startswith("create ")]
    records_made = [item for item in made if "sh.helm" in item]
    assert records_made == ["create secrets/sh.helm.release.v1.till.v1"]
    hooks = [item for item in made if "jobs/" in item]
    assert hooks == ["create jobs/before", "create jobs/later"]


def test_the_history_of_a_removed_release_is_kept_if_the_release_says_so(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.release(uninstall={"keepHistory": True, "disableHooks": True})
    sandbox.sync(shop.root)
    before = len(sandbox.changes())
    remove_release(shop)

    ended = sandbox.sync(shop.root)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert revision_statuses(sandbox) == [(1, "uninstalled")]
    assert changes_since(sandbox, before) == ["delete services/web", "delete configmaps/web"]
    shop.release(targetNamespace="quay", releaseName="web", install={"createNamespace": True})
    back = sandbox.sync(shop.root)
    assert back.code == 0, back.stdout + back.stderr
    assert revision_statuses(sandbox) == [(1, "uninstalled"), (2, "deployed")]


def test_a_new_release_after_a_kept_history_is_not_uninstalled(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.put(namespace("quay"))
    shop.release(uninstall={"keepHistory": True})
    sandbox.sync(shop.root)
    shop.release(values={"to": "two"})
    sandbox.sync(shop.root)
    shop.release(targetNamespace="quay", releaseName="web")
    moved = sandbox.sync(shop.root)
    assert moved.code == 0, moved.stdout + moved.stderr
    before = len(sandbox.changes())

    again = sandbox.sync(shop.root)

    assert (again.code, "flux.release-moved" in again.stderr) == (0, False)
    assert changes_since(sandbox, before) == []
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "uninstalled"), (3, "deployed")]


def test_the_records_of_a_release_without_objects_are_deleted(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    for name in ("before", "later", "service"):
        shop.drop(f"templates/{name}.yaml")
    sandbox.sync(shop.root)
    sandbox.ask(Write(verb=Verb.DELETE, ref=Ref(CONFIG_MAP, "shop", "web")))
    remove_release(shop)

    ended = sandbox.sync(shop.root)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert records(sandbox) == []


def test_a_suspended_release_is_not_uninstalled(
    wording: RecordedWording, sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    sandbox.sync(shop.root)
    sandbox.ask(build_suspension("HelmRelease/shop/web", "other-client"))
    remove_release(shop)

    ended = sandbox.sync(shop.root)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert any(
        "warning[units.orphan]" in line and "`HelmRelease/shop/web`" in line
        for line in ended.stderr.splitlines()
    )
    wording(line for line in ended.stderr.splitlines() if "Flux" in line)
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert "web" in sandbox.all(CONFIG_MAP, "shop")


def _lists_all_secrets(request: Request) -> bool:
    if not isinstance(request, List):
        return False
    return request.selection.kind.name == "Secret" and not request.selection.namespace


def test_without_permission_to_list_all_secrets_the_searched_namespaces_are_reported(
    sandbox: PersistentSandbox, shop: ChartRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_with_few_rights(
        world: Dispatcher,
        *requests: Request,
        cluster: str,
        identity: ImpersonatedUser | None,
        timeout: Ms | None = None,
    ) -> tuple[Outcome, ...]:
        outcomes = await send_requests(
            world, *requests, cluster=cluster, identity=identity, timeout=timeout
        )
        return tuple(
            Forbidden("secrets is forbidden") if _lists_all_secrets(request) else outcome
            for request, outcome in zip(requests, outcomes, strict=True)
        )

    assert "flux.release-unknown" not in sandbox.sync(shop.root).stderr
    monkeypatch.setattr(reader, "send_requests", ask_with_few_rights)
    shop.release(releaseName="other")

    moved = sandbox.sync(shop.root)

    assert moved.code == 0, moved.stdout + moved.stderr
    assert "flux.release-unknown" in moved.stderr
    assert any(
        "note[flux.release-unknown]" in line and "`shop`" in line
        for line in moved.stderr.splitlines()
    )
    assert [record.name for record in records(sandbox)] == ["other"]
