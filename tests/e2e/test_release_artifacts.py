"""Releases with charts of a registry on a real API server: helm and the statuses show the version.

The registry is on loopback, and represents any other.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_namespace import VERSIONS, ReleaseNamespace
from tests.support.registry import FakeRegistry
from tests.support.release_artifacts import LAYER, a_chart, release_of_artifact, release_of_registry
from tests.support.unit_conditions import condition
from tests.support.web_server import listening
from tidegate.model.k8s.json_fields import get_mappings, get_text

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


@pytest.fixture
def stage(served_plane: ControlPlane, tmp_path: Path) -> ReleaseNamespace:
    made = ReleaseNamespace.open(served_plane, tmp_path)
    made.apply_release()
    return made


def charts(stage: ReleaseNamespace) -> list[str]:
    """Which chart each revision is of, in the eyes of both."""
    messages = (
        json.loads(stage.helm("history", "web", "-o", "json", version=version))
        for version in VERSIONS
    )
    three, four = ([item["chart"] for item in history] for history in messages)
    assert three == four
    return four


async def test_a_moved_tag_is_an_upgrade_with_the_digest_in_helm_and_in_the_status(
    stage: ReleaseNamespace,
) -> None:
    registry = FakeRegistry()
    first = registry.push("1.0.0", a_chart("one"), LAYER)
    async with listening(registry.app()) as origin:
        release_of_artifact(stage.shop.root, origin, namespace=stage.namespace, tag="1.0.0")
        await stage.tidegate()
        again = await stage.tidegate("sync", "-o", "json")
        assert events_of(again.stdout, "object.written") == []
        second = registry.push("1.0.0", a_chart("two"), LAYER)
        await stage.tidegate()

    assert stage.revision_statuses() == [(1, "superseded"), (2, "deployed")]
    versions = [f"1.0.0+{item.removeprefix('sha256:')[:12]}" for item in (first, second)]
    assert charts(stage) == [f"shop-{version}" for version in versions]
    assert stage.setting() == {"version": versions[1], "to": "two"}
    unit_resource = stage.unit_resource()
    assert get_text(unit_resource, "status", "lastAttemptedRevision") == versions[1]
    assert get_text(unit_resource, "status", "lastAttemptedRevisionDigest") == second
    history = get_mappings(unit_resource, "status", "history")
    assert [get_text(item, "ociDigest") for item in history] == [second, first]
    assert [get_text(item, "chartVersion") for item in history] == [*reversed(versions)]
    text = (
        f"Helm upgrade succeeded for release {stage.namespace}/web.v2 with chart shop@{versions[1]}"
    )
    assert condition(unit_resource, "Ready") == ("True", "UpgradeSucceeded", text)


async def test_a_chart_of_a_registry_is_upgraded_with_its_version(
    stage: ReleaseNamespace,
) -> None:
    registry = FakeRegistry()
    registry.push("1.0.0", a_chart("one"), LAYER)
    async with listening(registry.app()) as origin:
        release_of_registry(stage.shop.root, origin, namespace=stage.namespace, version="1.x")
        await stage.tidegate()
        registry.push("1.1.0", a_chart("two", "1.1.0"), LAYER)
        await stage.tidegate()

    assert stage.revision_statuses() == [(1, "superseded"), (2, "deployed")]
    assert charts(stage) == ["shop-1.0.0", "shop-1.1.0"]
    assert stage.setting() == {"version": "1.1.0", "to": "two"}
    history = get_mappings(stage.unit_resource(), "status", "history")
    assert [get_text(item, "chartVersion") for item in history] == ["1.1.0", "1.0.0"]
    assert [get_text(item, "ociDigest") for item in history] == ["", ""]
