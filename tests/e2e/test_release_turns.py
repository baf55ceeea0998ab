"""Helm and we take turns with one release on a real API server, and nobody loses anything."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.helm_oracle import VERSION, VERSION_3, find_helm
from tests.e2e.release_harbour import VERSIONS, ReleaseHarbour
from tests.fakes.releases import config_map, hook
from tidegate.model.reading import mapping, text

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

HANGS = {"test.tidegate.dev/outcome": "hang"}
FORCED = "--force-conflicts"


@pytest.fixture
def harbour(plane: ControlPlane, tmp_path: Path) -> ReleaseHarbour:
    made = ReleaseHarbour.open(plane, tmp_path)
    made.shop.put("values.yaml", "to: one\n")
    say(made, "ours")
    return made


def say(harbour: ReleaseHarbour, key: str) -> None:
    """The chart has one more key, and no longer those it had."""
    template = config_map("web", to="'{{ .Values.to }}'", **{key: "'yes'"})
    harbour.shop.put("templates/web.yaml", template)


async def test_helm_3_helm_4_and_we_take_turns_with_one_release(harbour: ReleaseHarbour) -> None:
    say(harbour, "three")
    harbour.helm("install", "web", harbour.chart, "--set", "to=three", version=VERSION_3)
    say(harbour, "ours")
    await harbour.tidegate()
    assert harbour.setting() == {"to": "one", "ours": "yes"}

    say(harbour, "four")
    harbour.helm("upgrade", "web", harbour.chart, "--set", "to=four", FORCED)
    assert mapping(harbour.setting(), "")["to"] == "four"
    say(harbour, "ours")
    await harbour.tidegate()
    assert harbour.setting() == {"to": "one", "ours": "yes"}
    assert harbour.stands() == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "superseded"),
        (4, "deployed"),
    ]

    for version, to in zip(VERSIONS, ("3", "1"), strict=True):
        harbour.helm(
            "rollback", "web", to, *([FORCED] if version == VERSION else []), version=version
        )
        await harbour.tidegate()
        assert harbour.setting() == {"to": "one", "ours": "yes"}
        assert harbour.stands()[-2:] == []
