"""HelmReleases whose charts lie in OCI artifacts: their versions tell which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.registry import FakeRegistry
from tests.support.release_artifacts import LAYER, a_chart, release_of_artifact
from tests.support.releases import CONFIG_MAP, RELEASE, records, release_sandbox, revision_statuses
from tests.support.web_server import listening_beside
from tidegate.model.k8s.json_fields import get_mappings, get_text


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    return release_sandbox(tmp_path, monkeypatch, with_unit_resource=True)


@case(64)
@pytest.mark.parametrize(("tag", "way"), [("1.0.0", "copy"), ("stable", "extract")])
def test_a_moved_tag_is_an_upgrade_with_the_same_chart_version(
    sandbox: PersistentSandbox, tmp_path: Path, tag: str, way: str
) -> None:
    registry = FakeRegistry()
    first = registry.push(tag, a_chart("one"), LAYER)
    with listening_beside(registry.app()) as origin:
        root = release_of_artifact(tmp_path / "repository", origin, way, tag=tag)
        for _ in range(2):
            done = sandbox.sync(root)
            assert done.code == 0, done.stderr
        assert revision_statuses(sandbox) == [(1, "deployed")]
        second = registry.push(tag, a_chart("two"), LAYER)
        done = sandbox.sync(root)

    assert done.code == 0, done.stderr
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]
    builds = [item.removeprefix("sha256:")[:12] for item in (first, second)]
    versions = [f"1.0.0+{build}" for build in builds]
    assert [record.chart for record in records(sandbox)] == [
        ("shop", version) for version in versions
    ]
    setting = sandbox.all(CONFIG_MAP, "shop")["web"]
    assert get_text(setting, "data", "version") == versions[1]
    assert get_text(setting, "data", "to") == "two"
    unit_resource = sandbox.all(RELEASE, "shop")["web"]
    assert get_text(unit_resource, "status", "lastAttemptedRevision") == versions[1]
    assert get_text(unit_resource, "status", "lastAttemptedRevisionDigest") == second
    history = get_mappings(unit_resource, "status", "history")
    assert [get_text(item, "ociDigest") for item in history] == [second, first]
    ready = next(
        condition
        for condition in get_mappings(unit_resource, "status", "conditions")
        if condition["type"] == "Ready"
    )
    assert get_text(ready, "message").endswith(f"shop/web.v2 with chart shop@{versions[1]}")


@case(64)
def test_the_digest_of_an_artifact_is_part_of_the_chart_version(
    sandbox: PersistentSandbox, tmp_path: Path
) -> None:
    registry = FakeRegistry()
    digest = registry.push("2.0.0", a_chart("one"), LAYER)
    registry.tags[digest] = registry.tags["2.0.0"]
    with listening_beside(registry.app()) as origin:
        root = release_of_artifact(tmp_path / "repository", origin, digest=digest)
        done = sandbox.sync(root)

    assert done.code == 0, done.stderr
    assert records(sandbox)[0].chart[1] == f"1.0.0+{digest.removeprefix('sha256:')[:12]}"


@case(64)
def test_a_tag_that_differs_from_the_chart_version_is_rejected(
    sandbox: PersistentSandbox, tmp_path: Path
) -> None:
    registry = FakeRegistry()
    registry.push("1.0.1", a_chart("one"), LAYER)
    with listening_beside(registry.app()) as origin:
        root = release_of_artifact(tmp_path / "repository", origin, tag="1.0.1")
        refused = sandbox.sync(root)

    assert refused.code != 0
    assert lines_with(refused.stderr, "error[", "`1.0.1`", "`1.0.0`")
    assert records(sandbox) == []
