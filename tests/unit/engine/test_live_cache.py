"""What counts as news of an object."""

from __future__ import annotations

import pytest

from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.model.k8s.objects import ClusterRef, Kind, LiveObject, Ref
from tidegate.world.messages import WatchEvent, WatchEventType
from tidegate.world.requests import RequestId

REF = Ref(Kind("", "v1", "ConfigMap"), "default", "settings")
SPOT = ClusterRef("", REF)


def a_live(version: str, *, uid: str = "one") -> LiveObject:
    return LiveObject(REF, uid, 0, version, b"{}")


def read_result(live: LiveObject, change: WatchEventType = WatchEventType.MODIFIED) -> WatchEvent:
    return WatchEvent(RequestId(1), change, live)


@pytest.fixture
def live_cache() -> LiveCache:
    """One object is desired, and our write of it returned version 5."""
    live_cache = LiveCache()
    live_cache.track([SPOT])
    live_cache.store(SPOT, a_live("5"))
    return live_cache


@pytest.mark.parametrize("version", ["5", "4"])
def test_the_response_of_a_write_and_older_versions_are_no_changes(
    live_cache: LiveCache, version: str
) -> None:
    news = live_cache.apply_watch_event("", read_result(a_live(version)))

    assert news is None
    assert live_cache.objects[SPOT].resource_version == "5"


@pytest.mark.parametrize("live", [a_live("6"), a_live("x"), a_live("4", uid="two")])
def test_another_state_and_another_object_are_news(live_cache: LiveCache, live: LiveObject) -> None:
    news = live_cache.apply_watch_event("", read_result(live))

    assert news == SPOT
    assert live_cache.objects[SPOT] is live


def test_an_end_is_news_whatever_its_version(live_cache: LiveCache) -> None:
    news = live_cache.apply_watch_event("", read_result(a_live("5"), WatchEventType.DELETED))

    assert news == SPOT
    assert SPOT not in live_cache.objects


def test_an_unrelated_object_is_no_change(live_cache: LiveCache) -> None:
    other = LiveObject(Ref(REF.kind, "default", "other"), "two", 0, "9", b"{}")

    news = live_cache.apply_watch_event("", read_result(other))

    assert news is None
    assert list(live_cache.objects) == [SPOT]
