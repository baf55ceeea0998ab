"""What prune and delete leave alone because it is not theirs, from outside."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.builders import make_object
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.deletions import a_setting, bring
from tests.support.kept_clusters import scenario_of
from tests.support.tidegate_runs import tidegate
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.model.k8s.objects import JsonObject
from tidegate.workspace.request import unit_for_path
from tidegate.world.dispatcher import Dispatcher

Ran = subprocess.CompletedProcess[str]
PLACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: place}\n"
INSIDE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: place}\n"
STRANGERS: list[JsonObject] = [
    make_object("v1 ConfigMap", "nobodys", namespace="place"),
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


class Desert:
    """Directories, and a simulated cluster in which some of them have been brought."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def directory(self, path: str, **files: str) -> Path:
        folder = self._folder / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        return folder

    def brought(self, *folders: Path, strangers: tuple[JsonObject, ...] = ()) -> None:
        """Have units in the cluster, by their default names, and what strangers have put there."""

        async def make() -> JsonObject:
            world = build_sandbox(SimulationConfig())
            for folder in folders:
                await bring(world, unit_for_path(str(folder), namespace="default"))
            for body in strangers:
                require_live(await ClusterClient(Dispatcher(world)).apply(body, manager="somebody"))
            return await scenario_of(world)

        (self._folder / "scenario.yaml").write_text(json.dumps(asyncio.run(make())))

    def run(self, verb: str, folder: Path, *words: str) -> Ran:
        scenario = ("--sandbox", "--scenario", str(self._folder / "scenario.yaml"))
        return tidegate(verb, folder, *scenario, *words)


@pytest.fixture
def desert(tmp_path: Path) -> Desert:
    return Desert(tmp_path)


def list_messages(ran: Ran, word: str) -> list[str]:
    """The objects of which it was told so."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return sorted(event["name"] for event in events if event["event"] == word)


def test_an_empty_directory_is_not_taken_for_the_end_of_all_objects(desert: Desert) -> None:
    shop = desert.directory("shop", one=a_setting("one"), two=a_setting("two"))
    desert.brought(shop)
    for path in shop.iterdir():
        path.unlink()

    refused = desert.run("sync", shop, "--prune", "-o", "json")
    shown = desert.run("sync", shop, "--prune", "--dry-run")
    agreed = desert.run("sync", shop, "--prune", "--allow-empty", "-o", "json")

    assert (refused.returncode, refused.stdout) == (3, "")
    assert "`default/shop` has no objects, and pruning would delete all" in refused.stderr
    assert "`--allow-empty` goes on" in refused.stderr
    assert shown.returncode == 3
    assert (agreed.returncode, list_messages(agreed, "object.pruned")) == (0, ["one", "two"])


def test_without_prune_an_empty_directory_is_nothing_to_do(desert: Desert) -> None:
    shop = desert.directory("shop", one=a_setting("one"))
    desert.brought(shop)
    (shop / "one.yaml").unlink()

    ran = desert.run("sync", shop, "-o", "json")

    assert (ran.returncode, list_messages(ran, "object.pruned")) == (0, [])


def pruning(desert: Desert, shop: Path, *words: str) -> Ran:
    """The namespace has left Git."""
    for name in ("place", "inside"):
        (shop / f"{name}.yaml").unlink()
    return desert.run("sync", shop, "--prune", "-o", "json", *words)


def deleting(desert: Desert, shop: Path, *words: str) -> Ran:
    return desert.run("delete", shop, "--yes", "-o", "json", *words)


class Going(Protocol):
    """How the namespace goes."""

    def __call__(self, desert: Desert, shop: Path, *words: str) -> Ran: ...


@pytest.fixture
def shop(desert: Desert) -> Path:
    """A unit that brings a namespace, into which others have put something."""
    shop = desert.directory("shop", place=PLACE, inside=INSIDE, rest=a_setting("rest"))
    desert.brought(shop, strangers=tuple(STRANGERS))
    return shop


@pytest.mark.parametrize("goes", [pruning, deleting])
def test_a_namespace_does_not_take_the_objects_of_others_along(
    desert: Desert, shop: Path, goes: Going
) -> None:
    ran = goes(desert, shop)

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    (refused,) = [event for event in events if event["event"] == "object.refused"]
    assert (ran.returncode, refused["name"], refused["reason"]) == (3, "place", "Contents")
    assert "ConfigMap place/nobodys, ConfigMap place/theirs;" in refused["message"]
    assert list_messages(ran, "object.pruned") == []


@pytest.mark.parametrize("goes", [pruning, deleting])
def test_with_leave_it_takes_them_along(desert: Desert, shop: Path, goes: Going) -> None:
    ran = goes(desert, shop, "--yes-delete-contents")

    assert ran.returncode == 0, ran.stderr
    assert {"inside", "place"} <= set(list_messages(ran, "object.pruned"))


def test_units_of_one_last_directory_do_not_delete_each_others_objects(desert: Desert) -> None:
    web = desert.directory("web/overlays/prod", web=a_setting("web"))
    api = desert.directory("api/overlays/prod", api=a_setting("api"))
    desert.brought(web)

    ran = desert.run("sync", api, "--prune", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert list_messages(ran, "object.written") == ["api"]
    assert list_messages(ran, "object.pruned") == []


def test_what_another_unit_loses_is_told_before_the_first_write(desert: Desert) -> None:
    web = desert.directory("web", one=a_setting("shared"))
    api = desert.directory("api", one=a_setting("shared"), two=a_setting("own"))
    desert.brought(web)

    ran, shown = desert.run("sync", api, "-o", "json"), desert.run("sync", api)

    words = [json.loads(line)["event"] for line in ran.stdout.splitlines()]
    assert (ran.returncode, list_messages(ran, "object.adopted")) == (0, ["shared"])
    assert words.index("object.adopted") < words.index("object.written")
    line = "takes over ConfigMap default/shared: it belongs to the unit `default/web`"
    assert line in shown.stdout


def test_what_goes_along_is_counted_and_named_by_a_dry_run(desert: Desert, shop: Path) -> None:
    for name in ("place", "inside"):
        (shop / f"{name}.yaml").unlink()

    ran = desert.run("sync", shop, "--prune", "--dry-run")

    told_along = "takes 2 objects of others along: ConfigMap place/nobodys, ConfigMap place/theirs"
    assert told_along in ran.stderr


def test_a_name_that_another_directory_has_is_refused_unless_it_has_moved(desert: Desert) -> None:
    shop = desert.directory("shop", one=a_setting("one"))
    other = desert.directory("other", two=a_setting("two"))
    desert.brought(shop)

    refused = desert.run("sync", other, "--name", "shop", "--prune")
    adopted = desert.run("sync", other, "--name", "shop", "--prune", "--force-owner", "-o", "json")

    assert refused.returncode == 3
    assert "error[plan.name]" in refused.stderr
    assert adopted.returncode == 0, adopted.stderr
    assert list_messages(adopted, "object.pruned") == ["one"]


@pytest.mark.parametrize("leave", [(), ("--allow-empty",)])
def test_a_source_that_cannot_be_read_prunes_nothing(
    desert: Desert, leave: tuple[str, ...]
) -> None:
    shop = desert.directory("shop", one=a_setting("one"), two=a_setting("two"))
    desert.brought(shop)
    (shop / "one.yaml").unlink()
    (shop / "two.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two\n")

    ran = desert.run("sync", shop, "--prune", "-o", "json", *leave)

    assert ran.returncode == 3
    (finding,) = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (finding["code"], finding["severity"]) == ("documents.syntax", "error")
    assert list_messages(ran, "object.pruned") == []
