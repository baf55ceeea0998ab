"""Every command, on a narrow and on a wide terminal, on one cluster each.

The recorded text is the output of all commands, in order, after one failed rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.releases import config_map, helm_release
from tests.support.repositories import (
    URL,
    Repository,
    application,
    deployment,
    git_repository,
    job,
    kustomization,
    namespace,
    setting,
)
from tidegate.model.k8s.objects import Json
from tidegate.report.styled_text import text_width

SCREENS = Path(__file__).parents[1] / "data" / "screens" / "verbs"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "templates/web.yaml": config_map("web", to="one"),
}
READS = {
    "app-list": "app list",
    "app-get": "app get database",
    "app-get-tree": "app get database -o tree",
    "app-resources": "app resources keycloak",
    "app-history": "app history database",
    "app-diff": "app diff keycloak --context a",
    "app-manifests": "app manifests keycloak -o names",
    "app-wait": "app wait database --timeout 1m",
    "get-kustomizations": "get kustomizations",
    "get-kustomization": "get ks web",
    "get-helmreleases": "get helmreleases",
    "get-sources": "get sources",
    "get-all-namespaces": "get all -A",
    "build": "flux build kustomization web -o names",
    "diff": "flux diff kustomization data --context a",
    "tree": "flux tree kustomization flux-system",
    "tree-living": "tree kustomization flux-system --context a",
    "trace": "trace job/prepare --context a",
    "events": "events -n flux-system",
    "events-everywhere": "events",
    "logs": "logs --unit data",
    "logs-follow": "logs data --follow --timeout 2s",
    "jobs-list": "jobs list",
    "verify": "verify {}",
    "status": "status {}",
}
CHANGES = {
    "app-set": "app set keycloak --parameter image=2",
    "suspend": "flux suspend ks web",
    "resume": "flux resume ks web",
    "reconcile": "flux reconcile ks ground --sandbox",
    "reconcile-helmrelease": "reconcile hr web --sandbox",
    "app-sync": "app sync keycloak --sandbox",
    "jobs-rerun": "jobs rerun migrate --sandbox",
    "app-delete": "app delete database --sandbox",
}
"""Commands that change the cluster; they run after those that only read."""


def a_platform(root: Path) -> Repository:
    """Applications in two waves, with a hook; Kustomizations of which one fails; a release."""
    made = Repository(root)
    made.put("argocd/database.yaml", application("database", "database", wave=-1))
    made.put("argocd/keycloak.yaml", application("keycloak", "keycloak", wave=1))
    made.put("database/all.yaml", job("migrate", hook="PreSync"), setting("schema", wave=1))
    made.put("keycloak/all.yaml", setting("settings", wave=-1), deployment("keycloak"))
    made.put("clusters/main/source.yaml", git_repository())
    made.put("clusters/main/self.yaml", kustomization("flux-system", "./clusters/main", into=""))
    made.put("clusters/main/ground.yaml", kustomization("ground", "./ground", into=""))
    made.put("clusters/main/data.yaml", kustomization("data", "./data", after=("ground",)))
    made.put("clusters/main/web.yaml", kustomization("web", "./web", after=("data",)))
    made.put("ground/all.yaml", namespace("layers"))
    made.put("data/all.yaml", deployment("data"), job("prepare"))
    made.put("web/all.yaml", setting("web"))
    source: Json = {"kind": "GitRepository", "name": "platform"}
    chart: Json = {"spec": {"chart": "./chart", "sourceRef": source}}
    made.put("clusters/main/release.yaml", helm_release("flux-system", chart=chart))
    for name, text in CHART.items():
        file = made.root / "chart" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return made


@pytest.fixture(scope="module", params=[80, 160])
def typed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, dict[str, str]]]:
    """The output of each command on a terminal of this width."""
    user_home, room = tmp_path_factory.mktemp("screens"), request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "dumb")
        prints: Json = {"effect": "prints", "lines": ["begun"]}
        given = namespace("shop")
        cluster = PersistentSandbox.make(
            user_home, patch, given, failing=["prepare"], behaviours=[prints]
        )
        root = a_platform(user_home / "platform").root
        ran = cluster.sync(root, "--repo-map", f"{URL}={root}")
        assert ran.code == 4, ran.stdout + ran.stderr
        yield (
            room,
            {name: shown(cluster, args, root, room) for name, args in (READS | CHANGES).items()},
        )


def shown(cluster: PersistentSandbox, args: str, root: Path, room: int) -> str:
    """The screen after a command: its standard output and its standard error."""
    place = () if "{}" in args else ("-C", root)
    texts = [part.format(root) for part in args.split()]
    ran = cluster.reach(*texts, *place, "--repo-map", f"{URL}={root}", room=room)
    return (ran.stdout + ran.stderr).replace(str(root), "platform")


@pytest.mark.parametrize("verb", [*READS, *CHANGES])
def test_a_screen_is_as_recorded(
    verb: str, typed: tuple[int, dict[str, str]], pytestconfig: pytest.Config
) -> None:
    room, screens = typed
    golden = SCREENS / f"{verb}-{room}.txt"
    if pytestconfig.getoption("--golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(screens[verb])

    assert screens[verb] == golden.read_text()
    if verb in READS:
        assert max(map(text_width, screens[verb].splitlines())) <= room
