"""One directory, two real clusters, one rollout: each by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from plane.audit import read_audit
from tests.e2e.conftest import Site
from tests.e2e.output import events_of, lines_with
from tests.support.repositories import Repository, application, setting
from tests.support.rollout_audit import WRITES
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json

pytestmark = pytest.mark.kube


def both(item: Site, other: Site, folder: Path) -> Path:
    """A kubeconfig with a context for each."""
    sites = {"here": item, "there": other}
    clusters: list[Json] = [
        {
            "name": name,
            "cluster": {
                "server": site.plane.server,
                "certificate-authority": str(site.plane.ca),
            },
        }
        for name, site in sites.items()
    ]
    users: list[Json] = [
        {"name": name, "user": {"token": site.plane.token("tidegate")}}
        for name, site in sites.items()
    ]
    contexts: list[Json] = [
        {"name": f"context-{name}", "context": {"cluster": name, "user": name}} for name in sites
    ]
    body: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": users,
        "contexts": contexts,
    }
    path = folder / "both"
    path.write_bytes(to_json(body))
    return path


def written(site: Site, namespace: str) -> list[str]:
    """The ConfigMaps that were written into a namespace, in order."""
    return [
        entry.object_ref.name
        for entry in read_audit(site.plane.audit_log)
        if entry.verb in WRITES
        and entry.object_ref.resource == "configmaps"
        and entry.object_ref.namespace == namespace
        and entry.user_agent.startswith("tidegate")
        and "dryRun" not in entry.request_uri
    ]


async def test_a_directory_is_synced_to_two_clusters_and_a_second_run_writes_nothing(
    site: Site, own_site: Site, tmp_path: Path
) -> None:
    unit = write_unit(
        tmp_path / "home" / "unit", a=config_map("first"), b=config_map("second", wave="1")
    )
    place = (
        *("--kubeconfig", both(site, own_site, tmp_path)),
        *("--cluster", "here=context-here", "--cluster", "there=context-there"),
        *("--namespace", "two-clusters", "--sync-option", "CreateNamespace=true"),
    )
    command = Tidegate(unit.parent)

    first = await command.run("sync", "--yes", unit, *place, "-o", "json")
    second = await command.run("sync", "--yes", unit, *place, "-o", "json")
    status = await command.run("status", unit, *place[:-2])
    gone = await command.run("delete", unit, *place, "--yes")

    assert first.code == 0, first.stdout + first.stderr
    assert len(events_of(first.stdout, "object.written")) == 6
    assert second.code == 0, second.stdout + second.stderr
    assert events_of(second.stdout, "object.written") == []
    assert status.stdout.count("Healthy") == 4, status.stdout + status.stderr
    assert gone.code == 0, gone.stdout + gone.stderr
    for item in (site, own_site):
        assert written(item, "two-clusters") == ["first", "second", "second", "first"]


async def test_units_are_synced_to_their_destination_clusters(
    site: Site, own_site: Site, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "home" / "platform", "-named")
    sync: Json = {"automated": {"prune": True}, "syncOptions": ["CreateNamespace=true"]}
    repository.put("root.yaml", application("root", "apps", into="argocd"))
    for wave, name in enumerate(("here", "there")):
        unit = application(name, "web", cluster=name, wave=wave, sync=sync)
        repository.put(f"apps/{name}.yaml", unit)
    repository.put("web/all.yaml", setting("web"))
    login = ("--kubeconfig", both(site, own_site, tmp_path), "--context", "context-here")
    named = ("--cluster", "here=context-here", "--cluster", "there=context-there")
    command = Tidegate(tmp_path / "home")

    refused = await command.run("sync", "--yes", repository.root, *login, *named[:2])
    first = await command.run("sync", "--yes", repository.root, *login, *named)
    second = await command.run("sync", "--yes", repository.root, *login, *named, "-o", "json")
    gone = await command.run("delete", repository.root, *login, *named, "--yes")

    assert refused.code == 3
    assert lines_with(refused.stderr, "error[plan.cluster]", "`there`")
    assert first.code == 0, first.stdout + first.stderr
    assert second.code == 0, second.stdout + second.stderr
    assert events_of(second.stdout, "object.written") == []
    assert gone.code == 0, gone.stdout + gone.stderr
    for item in (site, own_site):
        assert written(item, "shop-named") == ["web", "web"]
