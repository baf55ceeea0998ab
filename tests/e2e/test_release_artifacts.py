"""Releases on a real API server whose charts lie in a registry: helm and their statuses tell which.

The registry is on loopback, and stands for any other.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import events_of
from tests.e2e.release_harbour import VERSIONS, ReleaseHarbour
from tests.support.registry import FakeRegistry
from tests.support.release_artifacts import LAYER, a_chart, release_of_artifact, release_of_registry
from tests.support.unit_conditions import condition
from tests.support.web_server import listening
from tidegate.model.k8s.json_fields import get_mappings, get_text

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


@pytest.fixture
def harbour(served_plane: ControlPlane, tmp_path: Path) -> ReleaseHarbour:
    made = ReleaseHarbour.open(served_plane, tmp_path)
    made.give_own()
    return made


def charts(harbour: ReleaseHarbour) -> list[str]:
    """Which chart each revision is of, in the eyes of both."""
    messages = (
        json.loads(harbour.helm("history", "web", "-o", "json", version=version))
        for version in VERSIONS
    )
    three, four = ([item["chart"] for item in history] for history in messages)
    assert three == four
    return four


async def test_a_tag_that_moves_is_an_upgrade_whose_digest_helm_and_the_release_tell(
    harbour: ReleaseHarbour,
) -> None:
    registry = FakeRegistry()
    first = registry.push("1.0.0", a_chart("one"), LAYER)
    async with listening(registry.app()) as origin:
        release_of_artifact(harbour.shop.root, origin, home=harbour.home, tag="1.0.0")
        await harbour.tidegate()
        again = await harbour.tidegate("sync", "-o", "json")
        assert events_of(again.stdout, "object.written") == []
        second = registry.push("1.0.0", a_chart("two"), LAYER)
        await harbour.tidegate()

    assert harbour.stands() == [(1, "superseded"), (2, "deployed")]
    versions = [f"1.0.0+{item.removeprefix('sha256:')[:12]}" for item in (first, second)]
    assert charts(harbour) == [f"shop-{version}" for version in versions]
    assert harbour.setting() == {"version": versions[1], "to": "two"}
    unit_resource = harbour.own()
    assert get_text(unit_resource, "status", "lastAttemptedRevision") == versions[1]
    assert get_text(unit_resource, "status", "lastAttemptedRevisionDigest") == second
    history = get_mappings(unit_resource, "status", "history")
    assert [get_text(item, "ociDigest") for item in history] == [second, first]
    assert [get_text(item, "chartVersion") for item in history] == [*reversed(versions)]
    text = f"Helm upgrade succeeded for release {harbour.home}/web.v2 with chart shop@{versions[1]}"
    assert condition(unit_resource, "Ready") == ("True", "UpgradeSucceeded", text)


async def test_a_chart_of_a_registry_is_upgraded_with_its_version_and_tells_no_digest(
    harbour: ReleaseHarbour,
) -> None:
    registry = FakeRegistry()
    registry.push("1.0.0", a_chart("one"), LAYER)
    async with listening(registry.app()) as origin:
        release_of_registry(harbour.shop.root, origin, home=harbour.home, version="1.x")
        await harbour.tidegate()
        registry.push("1.1.0", a_chart("two", "1.1.0"), LAYER)
        await harbour.tidegate()

    assert harbour.stands() == [(1, "superseded"), (2, "deployed")]
    assert charts(harbour) == ["shop-1.0.0", "shop-1.1.0"]
    assert harbour.setting() == {"version": "1.1.0", "to": "two"}
    history = get_mappings(harbour.own(), "status", "history")
    assert [get_text(item, "chartVersion") for item in history] == ["1.1.0", "1.0.0"]
    assert [get_text(item, "ociDigest") for item in history] == ["", ""]
