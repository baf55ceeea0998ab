"""What a HelmRelease says of its actions: how long they may take, and what they leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.kept_sandbox import KeptSandbox
from tests.fakes.releases import CONFIG_MAP, ChartRepository, config_map, hook, stands
from tests.fakes.repositories import namespace
from tests.fakes.tidegate_command import Ran
from tidegate.documents.dump import to_yaml
from tidegate.model.moment import MINUTE
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import text

REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
CONTAINER: Json = {"name": "main", "image": "busybox"}
HANGS: Json = {"effect": "slow", "by": "9h", "when": {"kind": "Job", "name": "back"}}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptSandbox:
    """A cluster in which the Job `migrate` fails, and the Job `back` takes hours."""
    home, place = tmp_path / "home", namespace("shop")
    home.mkdir()
    bad = ["migrate"]
    return KeptSandbox.make(home, monkeypatch, place, served=False, failing=bad, behaviours=[HANGS])


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("values.yaml", "to: one\n")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    return made


@pytest.mark.parametrize("cleans", [True, False])
def test_what_a_failed_upgrade_has_made_goes_where_the_release_says_so(
    sandbox: KeptSandbox, shop: ChartRepository, *, cleans: bool
) -> None:
    sandbox.sync(shop.root)
    shop.put("templates/more.yaml", config_map("more", to="more"))
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(values={"to": "two"}, upgrade={"cleanupOnFail": cleans})

    failed = sandbox.sync(shop.root)

    assert failed.code != 0
    assert stands(sandbox) == [(1, "deployed"), (2, "failed")]
    settings = sandbox.all(CONFIG_MAP, "shop")
    assert text(settings["web"], "data", "to") == "two"
    assert ("more" in settings) is not cleans


def lasted(ran: Ran, word: str) -> int:
    """How long the first step waited that has this in its name, until it failed."""
    events = [
        one for one in map(json.loads, ran.stdout.splitlines()) if word in one.get("step", "")
    ]
    began, failed = (
        next(one["at"] for one in events if one["event"] == told)
        for told in ("step.applying", "step.failed")
    )
    return int(failed - began)


def test_a_rollback_has_a_time_of_its_own(sandbox: KeptSandbox, shop: ChartRepository) -> None:
    shop.put("templates/back.yaml", hook("back", "post-rollback"))
    shop.release(timeout="30m", rollback={"timeout": "20m"})
    sandbox.sync(shop.root)
    shop.put("templates/hook.yaml", hook("migrate", "post-upgrade"))
    shop.release(upgrade={"remediation": {"remediateLastFailure": True}})

    failed = sandbox.sync(shop.root, "-o", "json")

    assert 20 * MINUTE <= lasted(failed, "post-rollback") < 21 * MINUTE
    assert stands(sandbox)[-1] == (3, "failed")


def test_an_end_has_a_time_of_its_own(sandbox: KeptSandbox, shop: ChartRepository) -> None:
    held = config_map("held").replace("name: held", "name: held\n  finalizers: [shop/held]")
    shop.put("templates/held.yaml", held)
    shop.release(timeout="30m", uninstall={"timeout": "20m"})
    sandbox.sync(shop.root)

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes", "-o", "json")

    assert ended.code != 0
    assert 20 * MINUTE <= lasted(ended, "delete") < 21 * MINUTE


@pytest.mark.parametrize("way", ["background", "foreground", "orphan"])
def test_what_objects_own_goes_or_stays_as_the_release_says(
    sandbox: KeptSandbox, shop: ChartRepository, way: str
) -> None:
    labels: Json = {"app": "web"}
    pod: Json = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec: Json = {"selector": {"matchLabels": labels}, "template": pod}
    metadata: Json = {"name": "web"}
    body: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    shop.put("templates/deployment.yaml", to_yaml(body))
    shop.release(uninstall={"deletionPropagation": way})
    sandbox.sync(shop.root)
    assert len(sandbox.all(REPLICA_SET, "shop")) == 1

    ended = sandbox.run("delete", shop.root, "--sandbox", "--yes")

    assert ended.code == 0, ended.stderr
    deleted = any(one.startswith("delete replicasets/web") for one in sandbox.deeds())
    left = len(sandbox.all(REPLICA_SET, "shop"))
    assert (deleted, left) == ((False, 1) if way == "orphan" else (True, 0))
