"""Clusters that are registered or removed during the rollout of their ApplicationSets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.appset_repository import a_step
from tests.support.repositories import URL, WAVE, Repository, application, setting
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json, JsonObject

REGISTERED: JsonObject = {"argocd.argoproj.io/secret-type": "cluster"}
SEALED = "AgBy3i4OJSWK+PiTySYZZA9rO43cGDEq"


def external(name: str, tier: str = "edge") -> JsonObject:
    """What makes a cluster Secret when it is synced."""
    template: Json = {
        "metadata": {"labels": {**REGISTERED, "tier": tier}},
        "data": {"name": name, "server": f"https://{name}.example", "config": "{{ .config }}"},
    }
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "secretStoreRef": {"name": "vault", "kind": "ClusterSecretStore"},
            "target": {"name": name, "template": template},
            "data": [{"secretKey": "config", "remoteRef": {"key": name}}],
        },
    }


def sealed(name: str, tier: str) -> JsonObject:
    labels: Json = {**REGISTERED, "tier": tier}
    return {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "encryptedData": {"name": SEALED, "server": SEALED, "config": SEALED},
            "template": {"metadata": {"name": name, "namespace": "argocd", "labels": labels}},
        },
    }


def secret(name: str, tier: str = "edge") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "labels": {**REGISTERED, "tier": tier},
        },
        "stringData": {"name": name, "server": f"https://{name}.example", "config": "{}"},
    }


def web_set(*, wave: int = 0, **more: Json) -> JsonObject:
    template: Json = {
        "metadata": {"name": "web-{{name}}", "labels": {"step": "{{metadata.labels.tier}}"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": URL, "path": "web", "targetRevision": "HEAD"},
            "destination": {"name": "{{name}}", "namespace": "shop"},
            "syncPolicy": {"automated": {}},
        },
    }
    metadata: JsonObject = {"name": "web", "namespace": "argocd", "annotations": {WAVE: str(wave)}}
    selector: Json = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    spec: JsonObject = {"generators": [{"clusters": {"selector": selector}}], "template": template}
    kind: JsonObject = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    return {**kind, "metadata": metadata, "spec": {**spec, **more}}


class Platform:
    """A unit that creates clusters, an ApplicationSet for them, and a unit after both."""

    def __init__(self, root: Path, *fleet: JsonObject) -> None:
        self.made = Repository(root / "platform")
        self.put = self.made.put
        self.put("apps/fleet.yaml", application("fleet", "fleet", into="argocd"))
        self.put("fleet/all.yaml", *fleet)
        self.put("apps/set.yaml", web_set(wave=1))
        self.put("apps/tail.yaml", application("tail", "tail", wave=2))
        self.put("web/all.yaml", setting("web"))
        self.put("tail/all.yaml", setting("tail"))

    def simulate(self, engine: str, *args: str | Path) -> list[str]:
        """The units that were rolled out, in the order of their begin."""
        root = self.made.root
        here = ("--offline", "--repo-map", f"{URL}={root}", "--engine", engine)
        ran = tidegate("simulate", root, *here, "-o", "json", *args)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        events = [json.loads(line) for line in ran.stdout.splitlines()]
        applied = (event["unit"] for event in events if event["event"] == "step.applying")
        return [*dict.fromkeys(unit.rpartition("/")[2] for unit in applied if unit.count("/") == 2)]

    def sync(self, *args: str) -> list[tuple[str, str]]:
        """The events of these units."""
        root = self.made.root
        here = ("--offline", "--repo-map", f"{URL}={root}", "--sandbox", "--yes", "-o", "json")
        ran = tidegate("sync", root, *here, *args)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        events = [json.loads(line) for line in ran.stdout.splitlines()]
        return [(event["event"], event.get("unit", "").rpartition("/")[2]) for event in events]


@pytest.mark.parametrize("maker", [external("east"), sealed("east", "edge")])
def test_an_appset_waits_for_applications_of_a_cluster_registered_meanwhile(
    tmp_path: Path, maker: JsonObject
) -> None:
    platform = Platform(tmp_path, maker)

    result = platform.sync()

    ended = [name for what, name in result if what == "unit.finished"]
    assert result.index(("unit.finished", "fleet")) < result.index(("step.applying", "web-east"))
    assert result.index(("unit.finished", "web-east")) < result.index(("step.applying", "tail"))
    assert ended.index("web-east") < ended.index("web"), "the set waits for it"


@pytest.mark.parametrize("engine", ["tidegate", "argocd"])
def test_a_simulation_follows_the_semantics_of_each_engine(tmp_path: Path, engine: str) -> None:
    platform = Platform(tmp_path, external("east"), sealed("west", "edge"))

    begun = platform.simulate(engine)

    assert sorted(begun) == ["fleet", "tail", "web-east", "web-west"]
    assert begun[0] == "fleet"


def test_argo_cd_generates_after_its_last_sync(tmp_path: Path) -> None:
    platform = Platform(tmp_path, external("east"))
    platform.made.drop("apps/tail.yaml")
    platform.put("apps/set.yaml", web_set())

    assert platform.simulate("argocd") == ["fleet", "web-east"]


def test_a_late_member_has_its_turn_in_its_own_step(tmp_path: Path) -> None:
    platform = Platform(tmp_path, sealed("east", "1"), secret("west", "2"))
    steps: Json = [a_step("1", 1), a_step("2", None)]
    strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": steps}}
    platform.put("apps/set.yaml", web_set(wave=1, strategy=strategy))

    assert platform.simulate("tidegate") == ["fleet", "web-east", "web-west", "tail"]


def test_a_cluster_that_is_forgotten_meanwhile_gets_nothing(tmp_path: Path) -> None:
    platform = Platform(tmp_path, external("east"))
    given = json.dumps([secret("old")])
    old = '{"apiVersion": "v1", "kind": "Secret", "namespace": "argocd", "name": "old"}'
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        f'{{"given": {{"namespaces": ["argocd"], "objects": {given}}},'
        f' "edits": [{{"effect": "delete", "at": "1s", "object": {old}}}]}}\n'
    )

    begun = platform.simulate("tidegate", "--scenario", scenario)

    assert begun == ["fleet", "web-east", "tail"], "nothing of `web-old`"


def test_without_a_new_cluster_nothing_is_planned_again(tmp_path: Path) -> None:
    platform = Platform(tmp_path, secret("east"))

    result = platform.sync()

    assert ("rollout.superseded", "") not in result
    assert result.index(("unit.finished", "web-east")) < result.index(("step.applying", "tail"))
