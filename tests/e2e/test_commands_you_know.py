"""What people type has a command here: the page names it, and it runs on a real API server."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import jq  # type: ignore[import-not-found]
import pytest

from plane import ControlPlane
from tests.e2e.test_statuses import IN_ORDER
from tests.support.dialect_kinds import serve
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.kubectl import kubectl
from tests.support.live_statuses import commit
from tests.support.repositories import (
    Repository,
    application,
    deployment,
    git_repository,
    job,
    kustomization,
    namespace,
    setting,
)
from tests.support.tidegate_runs import ROOT
from tidegate.model.k8s.objects import JsonObject

PAGE = ROOT / "docs" / "reference" / "commands-you-know.md"
TYPED = ROOT / "tests" / "data" / "commands" / "typed.txt"
CELL = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"`(tidegate [^`]+)`")
OF_GIT = ("flux", "tree")
"""A command that asks no cluster here."""
WATCHES = "--watch"
"""A command with it does not end by itself."""
WRITES = (
    ("argocd", "app", "sync"),
    ("argocd", "app", "delete"),
    ("flux", "reconcile"),
    ("jobs", "rerun"),
)
HOMES = {
    "cert-manager": "cert-manager",
    "postgresql": "database",
    "redis": "cache",
    "authentik": "auth",
}
WAVES = {"database-init": -1, "keycloak": 0, "write": 3}


def rows() -> dict[str, list[str]]:
    """The rest of the row, by the command of the user."""
    result = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            _, theirs, *rest, _ = CELL.split(line)
            result[theirs.strip().strip("`").replace("\\|", "|")] = [item.strip() for item in rest]
    return result


def ours() -> list[str]:
    """All commands of Tidegate, each once; those that delete come last."""
    result = dict.fromkeys(
        command for cells in rows().values() if len(cells) > 1 for command in CODE.findall(cells[0])
    )
    return sorted(result, key=lambda item: " delete " in item)


def test_the_page_has_one_row_for_each_command() -> None:
    assert set(rows()) == set(TYPED.read_text().splitlines())


def test_each_row_has_a_command_or_an_alternative() -> None:
    for theirs, cells in rows().items():
        assert all(cells), theirs
        assert len(cells) == 1 or CODE.search(cells[0]), theirs


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


def a_platform(root: Path) -> Repository:
    """Applications in waves with Jobs, and Kustomizations in layers with HelmReleases."""
    made = Repository(root)
    for name, wave in WAVES.items():
        app = application(f"fineract-dev-{name}", f"apps/{name}", wave=wave, into="fineract-dev")
        app["metadata"]["labels"] = {"project": "fineract-dev"}  # type: ignore[index,call-overload]
        made.put(f"argocd/applications/dev/{name}.yaml", app)
    migration = job("fineract-schema-migration", hook="PreSync", wave=6)
    made.put("apps/database-init/all.yaml", migration, setting("databases"))
    made.put(
        "apps/keycloak/all.yaml",
        deployment("keycloak"),
        job("apply-keycloak-config", hook="PostSync"),
    )
    made.put("apps/write/all.yaml", deployment("fineract-write"))
    main = "clusters/main"
    made.put(
        f"{main}/flux-system/sync.yaml",
        git_repository(),
        kustomization("flux-system", f"./{main}", into=""),
    )
    layers = {"infrastructure": (), "databases": ("infrastructure",), "apps": ("databases",)}
    for name, after in layers.items():
        made.put(
            f"{main}/{name}.yaml", kustomization(name, f"./gitops/{name}", after=after, into="")
        )
    spaces = [namespace(name) for name in (*HOMES.values(), "fineract-dev")]
    made.put("gitops/infrastructure/all.yaml", *spaces, helm_release("cert-manager"))
    made.put("gitops/databases/all.yaml", helm_release("postgresql"), helm_release("redis"))
    made.put("gitops/apps/all.yaml", helm_release("authentik"))
    made.put("chart/Chart.yaml", {"apiVersion": "v2", "name": "small", "version": "1.0.0"})
    made.put("chart/templates/all.yaml", setting("settings"))
    return made


def helm_release(name: str) -> JsonObject:
    source: JsonObject = {"kind": "GitRepository", "name": "platform", "namespace": "flux-system"}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": HOMES[name]},
        "spec": {"interval": "10m", "chart": {"spec": {"chart": "./chart", "sourceRef": source}}},
    }


@pytest.mark.kube
@pytest.mark.timeout(400)
def test_each_listed_command_has_the_documented_effect(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    root = a_platform(tmp_path / "platform").root
    commit(root)
    for name in ("argocd", "flux-system", "fineract-dev"):
        kubectl(cluster.kubeconfig("admin"), "create", "namespace", name)
    target = ("--kubeconfig", str(cluster.kubeconfig("tidegate")), "--context", "plane")

    def typed(command: str) -> CommandResult:
        words = tuple(shlex.split(command)[1:])
        option = ("-C",) if words[0] in ("argocd", "flux") else ()
        path = () if "." in words else (*option, str(root))
        writes = any(words[: len(written)] == written for written in WRITES)
        agreed = ("--yes", "--timeout", "100s") if writes else ()
        target_flags = () if words[:2] == OF_GIT else target
        return type_in(*words, *path, *agreed, *target_flags, folder=root, HOME=str(tmp_path))

    first = type_in("sync", ".", "--yes", *target, folder=root, HOME=str(tmp_path))
    assert first.code == 0, first.stdout + first.stderr

    shown = {}
    for command in ours():
        if WATCHES in command:
            continue
        shown[command] = ran = typed(command)
        assert ran.code == 0, (command, ran.stdout + ran.stderr)

    jobs = shown["tidegate jobs list"].stdout
    assert "Job fineract-dev/fineract-schema-migration" in jobs
    assert "Job fineract-dev/apply-keycloak-config" in jobs
    table = [json_row(line) for line in shown["tidegate argocd app list -o json"].lines]
    assert sorted(table, key=lambda row: int(row[0])) == [
        [str(wave), f"fineract-dev-{name}", "Synced"] for name, wave in WAVES.items()
    ]
    releases = shown["tidegate flux get helmreleases -A"].lines[1:]
    assert {tuple(line.split()[:2]) for line in releases} == {
        (at, name) for name, at in HOMES.items()
    }
    assert "Job fineract-dev/fineract-schema-migration" in shown[RERUN].stdout


RERUN = "tidegate jobs rerun fineract-schema-migration"


def json_row(line: str) -> list[str]:
    """What the filter of their documents makes of one of our lines."""
    result: str = jq.compile(IN_ORDER.removeprefix(".[] |")).input_text(line).first()
    return result.split("\t")
