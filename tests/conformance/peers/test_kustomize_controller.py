"""A Flux that comes later, and one that was there before: both find what the other left as theirs.

`--golden` keeps what the controller said of each Kustomization.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.conformance.peers.flux import HOME, artifacts, controller, kustomizations
from tests.support.controller_transcript import TRANSCRIPT, status_fields
from tests.support.dialect_kinds import serve
from tests.support.flux_layers import sops_age, three_layers
from tests.support.kubectl import kubectl
from tests.support.live_statuses import commit
from tests.support.repositories import Repository, namespace, setting
from tests.support.sops_program import AgeKey
from tests.support.unit_families import Fleet
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


@pytest.fixture
def fleet(cluster: ControlPlane, tmp_path: Path) -> Fleet:
    made, key = Repository(tmp_path / "platform"), AgeKey.generate()
    for body in (namespace(HOME), sops_age(HOME, key)):
        kubectl(cluster.kubeconfig("admin"), "create", "-f", "-", text=json.dumps(body))
    three_layers(made, key)
    return Fleet(cluster, made, served=True)


async def test_flux_and_tidegate_alternate_without_changes_to_each_others_objects(
    fleet: Fleet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    plane, repository = fleet.plane, fleet.repository
    first = commit(repository.root)
    ran = await fleet.run("sync", "--yes")
    assert ran.code == 0, ran.stdout + ran.stderr
    ours = {name: status_fields(item) for name, item in by_name(plane).items()}

    async with artifacts(plane) as store, controller(plane, tmp_path) as peer:
        revision = store.offer(repository.root, first)
        await peer.reconcile("1", revision)

        assert peer.writes() == [], "it finds nothing to change"
        theirs = {name: status_fields(item) for name, item in by_name(plane).items()}
        assert theirs == ours

        repository.drop("web/old.yaml")
        repository.put("web/new.yaml", setting("new"))
        second = commit(repository.root)
        await peer.reconcile("2", store.offer(repository.root, second))

        assert sorted(peer.writes()) == ["delete configmaps/old", "patch configmaps/new"]

    before = written(fleet)
    again = await fleet.run("sync", "--yes")
    assert again.code == 0, again.stdout + again.stderr
    assert written(fleet) == before, "we find nothing to change either"

    repository.drop("web/new.yaml")
    commit(repository.root)
    last = await fleet.run("sync", "--yes")
    assert last.code == 0, last.stdout + last.stderr
    assert written(fleet)[len(before) :] == [("delete", "configmaps/new")]

    if request.config.getoption("--golden"):
        TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
        TRANSCRIPT.write_text(json.dumps(theirs, indent=1) + "\n")
    assert json.loads(TRANSCRIPT.read_text()) == theirs


def by_name(plane: ControlPlane) -> dict[str, dict[str, Json]]:
    return {
        get_text(kustomization, "metadata", "name"): kustomization
        for kustomization in kustomizations(plane)
    }


def written(fleet: Fleet) -> list[tuple[str, str]]:
    """What we wrote, but our own records."""
    return [write for write in fleet.writes() if not write[1].startswith("secrets/tidegate-")]
