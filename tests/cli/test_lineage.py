"""`tree` and `trace`, from Git and from a cluster; `events` and `logs`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_statuses import a_chain
from tests.support.persistent_sandbox import KUSTOMIZATION, PersistentSandbox, definition
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    application,
    job,
    kustomization,
    setting,
    three_levels,
)
from tests.support.served_cluster import ServedCluster, served_cluster
from tests.support.tidegate_command import CommandResult
from tests.support.tidegate_runs import tidegate, write_unit
from tidegate.dialect.helm.record import ReleaseRecord, record_secret
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.times import Ms

POD = Kind("", "v1", "Pod")


def test_a_tree_shows_the_units_of_a_unit(tmp_path: Path) -> None:
    root = a_chain(tmp_path / "platform").root

    ran = tidegate("flux", "tree", "ks", "flux-system", "-C", root)
    compact = tidegate("flux", "tree", "kustomization", "flux-system", "--compact", "-C", root)
    document = json.loads(tidegate("flux", "tree", "ks", "data", "-C", root, "-o", "json").stdout)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "Kustomization/flux-system/flux-system",
        "├── Kustomization/flux-system/data",
        "│   ├── Deployment/shop/data",
        "│   └── Job/shop/prepare",
        "├── Kustomization/flux-system/ground",
        "│   └── Namespace/shop",
        "├── GitRepository/flux-system/platform",
        "└── Kustomization/flux-system/web",
        "    └── ConfigMap/shop/web",
    ]
    assert [line.lstrip("├─└ ") for line in compact.stdout.splitlines()[1:]] == [
        f"Kustomization/flux-system/{name}" for name in ("data", "ground", "web")
    ]
    assert [child["name"] for child in document["children"]] == [
        "Deployment/shop/data",
        "Job/shop/prepare",
    ]


def test_a_tree_of_an_application_has_waves_and_hooks(tmp_path: Path) -> None:
    root = three_levels(tmp_path / "platform").root

    ran = tidegate("tree", root, "--unit", "app/teams")
    base = tidegate("tree", root, "--unit", "base")

    assert ran.stdout.splitlines() == [
        "Application/argocd/teams",
        "├── Application/argocd/red",
        "│   ├── Deployment/shop/red-web",
        "│   └── ConfigMap/shop/red-late (wave 1)",
        "└── Application/argocd/blue (wave 1)",
        "    ├── ConfigMap/shop/blue-early",
        "    └── Deployment/shop/blue-web (wave 1)",
    ]
    assert "├── Job/shop/base-prepare (PreSync)" in base.stdout
    assert "└── Job/shop/base-after (PostSync)" in base.stdout


@pytest.mark.parametrize("served", [True, False])
def test_a_tree_of_a_cluster_shows_its_objects_and_which_are_not_in_git(
    wording: RecordedWording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: bool,  # noqa: FBT001
) -> None:
    cluster, made = (
        PersistentSandbox.make(tmp_path, monkeypatch, served=served),
        a_chain(tmp_path / "platform"),
    )
    args = ("flux", "tree", "ks", "data", "-C", made.root)
    early = cluster.reach(*args, "--context", "a")
    assert cluster.sync(made.root).code == 0
    made.put("data/all.yaml", job("prepare"), setting("new"))

    there = cluster.reach(*args, "--context", "a")
    git = cluster.reach(*args)

    assert early.code == 2, early.stdout
    assert "error[usage.unit]: " in early.stderr
    assert "`Kustomization/flux-system/data`" in early.stderr
    wording(there.stdout)
    wording(git.stderr.splitlines()[0])
    assert git.stdout.splitlines()[1:] == ["├── Job/shop/prepare", "└── ConfigMap/shop/new"]


def test_a_tree_of_a_cluster_shows_the_objects_of_a_plain_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    folder = write_unit(tmp_path / "web", settings=to_yaml(setting("web")))
    args = ("tree", folder, "--context", "a")

    early = cluster.reach(*args)
    assert cluster.sync(folder).code == 0
    there = cluster.reach(*args)

    assert early.code == 2, early.stdout
    assert "error[usage.unit]: " in early.stderr
    assert there.stdout.splitlines()[1:] == ["default/web", "└── ConfigMap/default/web"]


RELEASED: JsonObject = {
    "name": "redis",
    "namespace": "flux-system",
    "version": 3,
    "info": {"status": "deployed"},
    "manifest": "---\napiVersion: v1\nkind: Service\nmetadata: {name: redis}\n"
    "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: redis, namespace: data}\n",
}


def a_release() -> JsonObject:
    """A HelmRelease that has no status yet."""
    kind: JsonObject = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease"}
    metadata: JsonObject = {"name": "cache", "namespace": "flux-system"}
    return {**kind, "metadata": metadata, "spec": {}}


def test_a_tree_of_a_cluster_shows_units_that_only_the_cluster_has(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease")
    served = definition(helm, "helmreleases", status=True)
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served)
    made = a_chain(tmp_path / "platform")
    assert cluster.sync(made.root).code == 0
    made.drop("clusters/main/web.yaml")
    cluster.put(a_release())
    history: Json = [{"name": "redis", "namespace": "flux-system", "version": 3}]
    cluster.patch(helm, "flux-system", "cache", {"status": {"history": history}}, status=True)
    cluster.put(record_secret(ReleaseRecord(RELEASED), "flux-system", now=Ms(0)))
    elsewhere = kustomization("far", "./far", into="", kubeConfig={"secretRef": {"name": "far"}})
    cluster.put(elsewhere)
    entries: Json = [
        {"id": "flux-system_far_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"},
        {"id": "flux-system_web_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"},
        {"id": "flux-system_cache_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"},
        {"id": "_system__reader_rbac.authorization.k8s.io_ClusterRole", "v": "v1"},
        {"id": "flux-system_flux-system_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"},
    ]
    status: Json = {"inventory": {"entries": entries}}
    cluster.patch(KUSTOMIZATION, "flux-system", "flux-system", {"status": status}, status=True)

    args = ("flux", "tree", "ks", "flux-system", "--context", "a", "-C", made.root)
    ran, compact = cluster.reach(*args), cluster.reach(*args, "--compact")

    wording(ran.stdout.splitlines()[1:])
    assert "ClusterRole" not in compact.stdout


@pytest.mark.parametrize(
    "args", [("deploy", "data"), ("deployments/data",), ("Deployment", "data")]
)
def test_a_trace_leads_from_an_object_to_its_source_each_with_its_file(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    ran = tidegate("flux", "trace", *args, "-C", a_chain(tmp_path / "platform").root)

    assert ran.returncode == 0, ran.stderr
    blocks = [block.splitlines() for block in ran.stdout.split("---\n")]
    messages = [{line.split()[0]: line.split(maxsplit=1)[1] for line in block} for block in blocks]
    assert messages == [
        {
            "Object:": "Deployment/data",
            "Namespace:": "shop",
            "Status:": "Managed by Flux",
            "File:": "data/all.yaml:1:1",
        },
        {
            "Kustomization:": "data",
            "Namespace:": "flux-system",
            "Path:": "data",
            "File:": "clusters/main/data.yaml:1:1",
        },
        {
            "Kustomization:": "flux-system",
            "Namespace:": "flux-system",
            "Path:": "clusters/main",
            "File:": "clusters/main/self.yaml:1:1",
        },
        {
            "GitRepository:": "platform",
            "Namespace:": "flux-system",
            "URL:": "https://git.example.com/shop/platform.git",
            "Branch:": "main",
            "File:": "clusters/main/source.yaml:1:1",
        },
    ]


def test_a_misspelt_name_is_reported_with_the_closest_one(tmp_path: Path) -> None:
    root = three_levels(tmp_path / "platform").root

    name = tidegate("trace", "deployment/red-wb", root)
    kind = tidegate("trace", "deploymnt/red-web", root)
    tree = tidegate("tree", root, "--unit", "app/tems")
    noun = tidegate("flux", "tree", "kustomizationz", "teams", "-C", root)

    assert {item.returncode for item in (name, kind, tree, noun)} == {2}
    assert "error[usage.object]: " in name.stderr
    assert "`red-wb`" in name.stderr
    assert "`red-web`" in name.stderr
    assert "`Deployment`" in kind.stderr
    assert "`teams`" in tree.stderr
    assert "'kustomization'" in noun.stderr


async def a_failed_rollout(cluster: ServedCluster, root: Path) -> CommandResult:
    ran = await cluster.roll_out("sync", root, "--yes")
    assert ran.code == 4, ran.stdout + ran.stderr
    return ran


async def test_trace_events_and_logs_show_what_failed(
    wording: RecordedWording, tmp_path: Path
) -> None:
    made = a_chain(tmp_path / "platform")
    async with served_cluster(tmp_path, failing=["prepare"]) as cluster:
        await a_failed_rollout(cluster, made.root)
        pod = next(name for name in await cluster.names(POD, "shop") if "prepare" in name)
        traced = await cluster.run("trace", f"pod/{pod}", made.root)
        lone = await cluster.run(
            "flux", "trace", "cm", "kube-root-ca.crt", "-n", "shop", "-C", made.root
        )
        all_of_it = await cluster.run("events", made.root)
        of_unit = await cluster.run(
            "flux", "events", "--for", "ks/data", "-o", "json", "-C", made.root
        )
        logs = await cluster.run("flux", "logs", "ks/data", "-C", made.root)
        quiet = await cluster.run("logs", made.root, "--unit", "ground")

    assert traced.stdout.split("---\n")[0].split()[1] == f"Pod/{pod}"
    assert "Object:        Job/prepare\n" in traced.stdout
    assert "Status:        HealthCheckFailed: health check failed after" in traced.stdout
    assert lone.code == 2
    assert "error[usage.unmanaged]: " in lone.stderr
    assert "`ConfigMap/kube-root-ca.crt`" in lone.stderr
    heads, *rows = all_of_it.stdout.splitlines()
    assert re.split(r"\s{2,}", heads)[1:] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert any("HealthCheckFailed" in row and "Kustomization/data" in row for row in rows)
    messages = {
        (item["object"], item["reason"]) for item in map(json.loads, of_unit.stdout.splitlines())
    }
    assert {
        ("Job/prepare", "BackoffLimitExceeded"),
        ("Kustomization/data", "HealthCheckFailed"),
    } <= messages
    assert ("Kustomization/web", "DependencyNotReady") not in messages
    wording(logs.stdout.splitlines()[0].replace(pod, "POD"))
    assert (quiet.code, quiet.stdout) == (0, "")
    wording(quiet.stderr.splitlines()[0])


LOGIN: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login"},
    "stringData": {"password": "hunter2-hunter2"},
}


def test_follow_prints_the_logs_of_all_pods_until_they_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["one", "two", "by hunter2-hunter2"]
    prints: Json = {"effect": "prints", "lines": [*lines]}
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, failing=["broken"], behaviours=[prints])
    made = a_chain(tmp_path / "platform")
    generated = job("made", hook="")
    get_mapping(generated, "metadata")["generateName"] = (
        f"{get_mapping(generated, 'metadata').pop('name')}-"
    )
    get_mapping(generated, "metadata")["annotations"] = {"argocd.argoproj.io/hook": "PreSync"}
    made.put("apps/red.yaml", application("red", "red"))
    made.put("red/all.yaml", generated, LOGIN)
    assert cluster.sync(made.root).code == 0
    follow = ("flux", "logs", "-f", "-C", made.root)

    ended = cluster.reach(*follow, "red")
    goes_on = cluster.reach(*follow, "data", "--tail", "1", "--timeout", "3s")
    document = cluster.reach(*follow, "red", "--tail", "1", "-o", "json")

    assert ended.code == 0, ended.stderr
    messages = [line.partition(" | ") for line in ended.stdout.splitlines()]
    assert [text for _, _, text in messages] == ["one", "two", "by ***"]
    assert {
        source.startswith("made-") and source.endswith("/main") for source, _, _ in messages
    } == {True}
    assert sorted(line.partition("-")[0] for line in goes_on.stdout.splitlines()) == [
        *("data", "prepare")
    ]
    assert json.loads(document.stdout)["line"] == "by ***"


async def test_follow_prints_the_logs_of_pods_that_are_created_later(tmp_path: Path) -> None:
    made = a_chain(tmp_path / "platform")
    async with served_cluster(tmp_path, prints=("begun",)) as cluster:
        args = ("logs", made.root, "--unit", "data", "--follow", "--timeout", "2m")
        async with cluster.typing(*args) as typed:
            synced = await cluster.roll_out("sync", made.root, "--yes")
            await cluster.has_printed(typed, "prepare-")
            await cluster.has_printed(typed, "data-")
            deleted = await cluster.roll_out("delete", made.root, "--yes")
            follower = await typed.ran

    assert (synced.code, deleted.code) == (0, 0), synced.stderr + deleted.stderr
    assert follower.code == 0, follower.stderr
    assert follower.stdout.count("| begun") == 2
