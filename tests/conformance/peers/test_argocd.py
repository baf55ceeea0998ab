"""Argo CD and Tidegate after each other on one cluster: neither changes objects of the other.

They run a real Argo CD: `make test-peers`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.conformance.peers.argocd import ArgoCd, argo_cd
from tests.conformance.peers.cases import Case, server, sync_policy, task, web
from tests.conformance.peers.record import GIT
from tests.support.kubectl import kubectl
from tests.support.repositories import setting
from tests.support.tidegate_runs import tidegate
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]
FILES = web(
    task("pre", hook="PreSync"),
    setting("a"),
    setting("gone"),
    task("once"),
    server("app", wave=1),
    sync=sync_policy(prune=True),
)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCd]:
    with (
        ControlPlane.start() as plane,
        argo_cd(plane, tmp_path_factory.mktemp("argocd")) as running,
    ):
        yield running


class Place:
    """A repository of one case, and its objects in the cluster."""

    def __init__(self, name: str, peer: ArgoCd, folder: Path) -> None:
        self.case, self.peer, self.root = Case(name, FILES), peer, folder / name
        self.url = f"file://{self.root}"
        subprocess.run([*GIT, "init", "-q", "-b", "main", str(self.root)], check=True)
        self.case.write(self.root, FILES, self.url)
        self.commit()

    def commit(self) -> None:
        for words in (("add", "-A"), ("commit", "-qm", "next")):
            subprocess.run([*GIT, "-C", str(self.root), *words], check=True)

    def deploy_with_argo_cd(self) -> None:
        path = self.root / "apps" / "web.yaml"
        self.peer.apply(*(item.body for item in read_documents(path.read_text(), str(path))))
        self.peer.settle(limit=90)

    def tidegate(self, verb: str, *words: str) -> str:
        """Run a command on the repository and the cluster; return its output."""
        login = self.peer.plane.kubeconfig("tidegate")
        ran = tidegate(
            *(verb, self.root, "--kubeconfig", login, "--context", "plane"),
            *("--repo-map", f"{self.url}={self.root}", *words),
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def versions(self) -> dict[str, tuple[str, object]]:
        """The uid of each object of the case, and what it contains.

        The generation of a Deployment also counts changes of its annotations.
        """
        kinds = "configmaps,jobs,deployments,pods"
        words = ("get", kinds, "-n", self.case.namespace, "-o", "json")
        listed: JsonObject = json.loads(kubectl(self.peer.admin, *words))
        return {
            f"{body['kind']}/{get_text(body, 'metadata', 'name')}": (
                get_text(body, "metadata", "uid"),
                body.get("spec", body.get("data")),
            )
            for body in get_mappings(listed, "items")
        }

    def state(self) -> tuple[str, str]:
        """Sync status and health of the Application."""
        (body,) = (
            body
            for body in self.peer.applications()
            if get_text(body, "metadata", "name") == f"{self.case.name}-web"
        )
        return get_text(body, "status", "sync", "status"), get_text(
            body, "status", "health", "status"
        )


def test_tidegate_after_argo_cd_changes_nothing_and_reruns_no_job(
    peer: ArgoCd, tmp_path: Path
) -> None:
    place = Place("to-tidegate", peer, tmp_path)
    place.deploy_with_argo_cd()
    before = place.versions()

    place.tidegate("sync", "--yes")
    after_first = place.versions()
    second = [
        json.loads(line) for line in place.tidegate("sync", "--yes", "-o", "json").splitlines()
    ]

    assert after_first == before
    assert place.versions() == before
    assert [item for item in second if item["event"] == "object.written"] == []
    peer.refresh()
    peer.settle(limit=60)
    assert place.state() == ("Synced", "Healthy")


def test_tidegate_prunes_objects_that_argo_cd_deployed(peer: ArgoCd, tmp_path: Path) -> None:
    place = Place("to-prune", peer, tmp_path)
    place.deploy_with_argo_cd()
    place.case.write(
        place.root,
        {"web/all.yaml": (setting("a"), task("once"), server("app", wave=1))},
        place.url,
    )
    place.commit()

    plan = json.loads(place.tidegate("plan", "-o", "json"))

    pruned = [item["name"] for item in plan["objects"] if item["operation"] == "prune"]
    assert pruned == ["gone"]
    assert plan["states"] == [
        {"unit": "Application/argocd/to-prune-web", "sync": "OutOfSync", "health": "Healthy"}
    ]
    place.tidegate("sync", "--yes")
    assert "ConfigMap/gone" not in place.versions()


def test_argo_cd_after_tidegate_finds_nothing_to_change_and_restarts_nothing(
    peer: ArgoCd, tmp_path: Path
) -> None:
    place = Place("to-argocd", peer, tmp_path)
    place.tidegate("sync", "--yes")
    before = place.versions()

    place.deploy_with_argo_cd()
    adopted = place.versions()
    state = place.state()
    peer.sync("to-argocd-web")
    peer.settle(limit=90)

    assert (adopted, state) == (before, ("Synced", "Healthy"))
    kept = {name: version for name, version in place.versions().items() if "pre" not in name}
    assert kept == {name: version for name, version in before.items() if "pre" not in name}
