"""Prune and delete only delete the objects of their own unit."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.builders import make_object
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.cluster_snapshots import scenario_of
from tests.support.deletions import a_setting, deploy
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import JsonObject
from tidegate.workspace.request import unit_for_path
from tidegate.world.dispatcher import Dispatcher

Ran = subprocess.CompletedProcess[str]
PLACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: place}\n"
INSIDE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: place}\n"
FOREIGN_OBJECTS: list[JsonObject] = [
    make_object("v1 ConfigMap", "unowned", namespace="place"),
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "theirs",
            "namespace": "place",
            "annotations": {"tidegate.dev/unit": "default/other"},
        },
    },
]


class Workspace:
    """Directories, and a simulated cluster with the objects of some of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def directory(self, path: str, **files: str) -> Path:
        folder = self._folder / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        return folder

    def create_cluster(self, *folders: Path, other_objects: tuple[JsonObject, ...] = ()) -> None:
        """Write a scenario whose cluster has these units and foreign objects."""

        async def make() -> JsonObject:
            world = build_sandbox(SimulationConfig())
            for folder in folders:
                await deploy(world, unit_for_path(str(folder), namespace="default"))
            for body in other_objects:
                require_live(await ClusterClient(Dispatcher(world)).apply(body, manager="another"))
            return await scenario_of(world)

        (self._folder / "scenario.yaml").write_text(json.dumps(asyncio.run(make())))

    def run(self, verb: str, folder: Path, *args: str) -> Ran:
        scenario = ("--sandbox", "--scenario", str(self._folder / "scenario.yaml"))
        return tidegate(verb, folder, *scenario, *args)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def names_by_event(ran: Ran, event_type: str) -> list[str]:
    """The names of the objects that have an event of this type."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return sorted(event["name"] for event in events if event["event"] == event_type)


def test_an_empty_directory_does_not_prune_all_objects(workspace: Workspace) -> None:
    shop = workspace.directory("shop", first=a_setting("first"), second=a_setting("second"))
    workspace.create_cluster(shop)
    for path in shop.iterdir():
        path.unlink()

    refused = workspace.run("sync", shop, "--prune", "-o", "json")
    shown = workspace.run("sync", shop, "--prune", "--dry-run")
    agreed = workspace.run("sync", shop, "--prune", "--allow-empty", "-o", "json")

    assert (refused.returncode, refused.stdout) == (3, "")
    error = json.loads(refused.stderr)
    assert (error["code"], error["severity"]) == ("plan.empty", "error")
    assert "`default/shop`" in error["message"]
    assert "`--allow-empty`" in error["fix"]
    assert shown.returncode == 3
    assert (agreed.returncode, names_by_event(agreed, "object.pruned")) == (0, ["first", "second"])


def test_without_prune_an_empty_directory_changes_nothing(workspace: Workspace) -> None:
    shop = workspace.directory("shop", first=a_setting("first"))
    workspace.create_cluster(shop)
    (shop / "first.yaml").unlink()

    ran = workspace.run("sync", shop, "-o", "json")

    assert (ran.returncode, names_by_event(ran, "object.pruned")) == (0, [])


def pruning(workspace: Workspace, shop: Path, *args: str) -> Ran:
    """The namespace has left Git."""
    for name in ("place", "inside"):
        (shop / f"{name}.yaml").unlink()
    return workspace.run("sync", shop, "--prune", "-o", "json", *args)


def deleting(workspace: Workspace, shop: Path, *args: str) -> Ran:
    return workspace.run("delete", shop, "--yes", "-o", "json", *args)


class Removal(Protocol):
    """A way to remove the namespace."""

    def __call__(self, workspace: Workspace, shop: Path, *args: str) -> Ran: ...


@pytest.fixture
def shop(workspace: Workspace) -> Path:
    """A unit with a namespace that has objects of others, too."""
    shop = workspace.directory("shop", place=PLACE, inside=INSIDE, rest=a_setting("rest"))
    workspace.create_cluster(shop, other_objects=tuple(FOREIGN_OBJECTS))
    return shop


@pytest.mark.parametrize("remove", [pruning, deleting])
def test_a_namespace_with_objects_of_other_owners_is_not_deleted(
    workspace: Workspace, shop: Path, remove: Removal
) -> None:
    ran = remove(workspace, shop)

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    (refused,) = [event for event in events if event["event"] == "object.refused"]
    assert (ran.returncode, refused["name"], refused["reason"]) == (3, "place", "Contents")
    assert "ConfigMap place/theirs, ConfigMap place/unowned" in refused["message"]
    assert refused["message"].count("ConfigMap ") == 2
    assert names_by_event(ran, "object.pruned") == []


@pytest.mark.parametrize("remove", [pruning, deleting])
def test_a_confirmed_namespace_is_deleted_with_objects_of_other_owners(
    workspace: Workspace, shop: Path, remove: Removal
) -> None:
    ran = remove(workspace, shop, "--yes-delete-contents")

    assert ran.returncode == 0, ran.stderr
    assert {"inside", "place"} <= set(names_by_event(ran, "object.pruned"))


def test_units_with_the_same_directory_name_do_not_delete_objects_of_each_other(
    workspace: Workspace,
) -> None:
    web = workspace.directory("web/overlays/prod", web=a_setting("web"))
    api = workspace.directory("api/overlays/prod", api=a_setting("api"))
    workspace.create_cluster(web)

    ran = workspace.run("sync", api, "--prune", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert names_by_event(ran, "object.written") == ["api"]
    assert names_by_event(ran, "object.pruned") == []


def test_an_object_taken_from_another_unit_is_reported_before_the_first_write(
    wording: RecordedWording, workspace: Workspace
) -> None:
    web = workspace.directory("web", first=a_setting("shared"))
    api = workspace.directory("api", first=a_setting("shared"), second=a_setting("api-only"))
    workspace.create_cluster(web)

    ran, shown = workspace.run("sync", api, "-o", "json"), workspace.run("sync", api)

    types = [json.loads(line)["event"] for line in ran.stdout.splitlines()]
    assert (ran.returncode, names_by_event(ran, "object.adopted")) == (0, ["shared"])
    assert types.index("object.adopted") < types.index("object.written")
    wording(line for line in shown.stdout.splitlines() if "default/web" in line)


def test_a_dry_run_names_objects_of_other_owners_in_a_namespace(
    wording: RecordedWording, workspace: Workspace, shop: Path
) -> None:
    for name in ("place", "inside"):
        (shop / f"{name}.yaml").unlink()

    ran = workspace.run("sync", shop, "--prune", "--dry-run")

    assert "ConfigMap place/theirs, ConfigMap place/unowned" in ran.stderr
    wording(ran.stderr)


def test_the_unit_name_of_another_directory_is_refused_without_force_owner(
    workspace: Workspace,
) -> None:
    shop = workspace.directory("shop", first=a_setting("first"))
    other = workspace.directory("other", second=a_setting("second"))
    workspace.create_cluster(shop)

    refused = workspace.run("sync", other, "--name", "shop", "--prune")
    adopted = workspace.run(
        "sync", other, "--name", "shop", "--prune", "--force-owner", "-o", "json"
    )

    assert refused.returncode == 3
    assert "error[plan.name]" in refused.stderr
    assert adopted.returncode == 0, adopted.stderr
    assert names_by_event(adopted, "object.pruned") == ["first"]


@pytest.mark.parametrize("removed", [(), ("--allow-empty",)])
def test_a_source_that_cannot_be_read_prunes_nothing(
    workspace: Workspace, removed: tuple[str, ...]
) -> None:
    shop = workspace.directory("shop", first=a_setting("first"), second=a_setting("second"))
    workspace.create_cluster(shop)
    (shop / "first.yaml").unlink()
    (shop / "two.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two\n")

    ran = workspace.run("sync", shop, "--prune", "-o", "json", *removed)

    assert ran.returncode == 3
    (finding,) = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (finding["code"], finding["severity"]) == ("documents.syntax", "error")
    assert names_by_event(ran, "object.pruned") == []


def object_of_release(name: str, release: str) -> JsonObject:
    """A ConfigMap as Helm 3 and 4 leave it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": release,
                "meta.helm.sh/release-namespace": "default",
            },
        },
    }


def adopted_objects(ran: Ran) -> list[tuple[str, str]]:
    """The adopted objects and the reasons, in order."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return [
        (event["name"], event["reason"])
        for event in events
        if event["event"] == "object.adopted" and "`default/another`" in event["message"]
    ]


def test_objects_of_a_helm_release_are_reported_before_they_are_taken_over(
    workspace: Workspace, wording: RecordedWording
) -> None:
    web = workspace.directory("web", first=a_setting("first"), second=a_setting("second"))
    workspace.create_cluster(other_objects=(object_of_release("first", "another"),))

    planned = workspace.run("sync", web, "--dry-run")
    document = json.loads(workspace.run("sync", web, "--dry-run", "-o", "json").stdout)
    synced, shown = workspace.run("sync", web, "-o", "json"), workspace.run("sync", web)

    owners = {item["name"]: item["otherOwner"] for item in document["objects"]}
    assert owners == {"first": "Helm release `default/another`", "second": ""}
    assert (synced.returncode, adopted_objects(synced)) == (0, [("first", "Adopted")])
    wording(planned.stdout)
    wording(line for line in shown.stdout.splitlines() if "another" in line)


def test_objects_of_a_helm_release_are_refused_with_fail_on_shared_resource(
    workspace: Workspace,
) -> None:
    web = workspace.directory("web", first=a_setting("first"), second=a_setting("second"))
    workspace.create_cluster(other_objects=(object_of_release("first", "another"),))

    ran = workspace.run("sync", web, "--sync-option", "FailOnSharedResource=true", "-o", "json")

    error = json.loads(ran.stderr)
    assert (ran.returncode, ran.stdout, error["code"]) == (3, "", "plan.shared")
    assert "Helm release `default/another`" in error["message"]


@pytest.mark.parametrize("remove", ["delete", "prune"])
def test_an_object_that_helm_still_lists_is_reported_before_it_is_deleted(
    workspace: Workspace, remove: str
) -> None:
    web = workspace.directory("web", first=a_setting("first"), second=a_setting("second"))
    taken = object_of_release("first", "another")
    workspace.create_cluster(web, other_objects=(taken,))
    if remove == "prune":
        (web / "first.yaml").unlink()

    ran = (
        workspace.run("delete", web, "--yes", "-o", "json")
        if remove == "delete"
        else workspace.run("sync", web, "--prune", "-o", "json")
    )

    types = [json.loads(line)["event"] for line in ran.stdout.splitlines()]
    assert (ran.returncode, adopted_objects(ran)) == (0, [("first", "Deleted")]), ran.stderr
    assert types.index("object.adopted") < types.index("object.pruned")


def test_an_object_that_was_taken_over_is_not_reported_again(workspace: Workspace) -> None:
    web = workspace.directory("web", first=a_setting("first"))
    workspace.create_cluster(web, other_objects=(object_of_release("first", "another"),))
    (web / "first.yaml").write_text(a_setting("first", wave=1))

    ran = workspace.run("sync", web, "-o", "json")

    assert names_by_event(ran, "object.written") == ["first"]
    assert names_by_event(ran, "object.adopted") == []
