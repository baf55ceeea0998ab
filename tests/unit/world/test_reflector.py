"""A watched selection: what the caller gets, whatever happens to lists and streams."""

from __future__ import annotations

from tests.support.scripted_world import CONFIG_MAP, a_live, a_ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.world.messages import (
    Delivery,
    Expired,
    Forbidden,
    ListPage,
    LossReason,
    NoResponse,
    NotServed,
    ServerError,
    TooManyRequests,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.reflector import PAGE_SIZE, Reflector, ReflectorAction
from tidegate.world.requests import List, RequestId, Selection, Watch

NOW = Ms(1_000_000)
EVERYWHERE = Selection(CONFIG_MAP)
LOST = NoResponse(Delivery.MAYBE_SENT, LossReason.DISCONNECTED, "connection reset")


def list_results(turn: ReflectorAction) -> list[tuple[WatchEventType, str, str]]:
    return [
        (message.type, message.live.ref.name, message.live.resource_version)
        for message in turn.events
    ]


def make_reflector(*, since: str = "") -> Reflector:
    return Reflector(RequestId(1), EVERYWHERE, resource_version=since)


def make_watching_reflector(*names: str) -> Reflector:
    """One that has listed these, as of version 10."""
    reflector = make_reflector()
    reflector.start(NOW)
    reflector.on_list_page(ListPage(tuple(a_live(name) for name in names), "10"), NOW)
    return reflector


def test_a_reflector_starts_with_a_list() -> None:
    assert make_reflector().start(NOW) == ReflectorAction(request=List(EVERYWHERE, PAGE_SIZE))


def test_pages_are_requested_and_reported_in_order() -> None:
    reflector = make_reflector()
    reflector.start(NOW)

    first = reflector.on_list_page(ListPage((a_live("a"),), "10", continue_token="more"), NOW)
    last = reflector.on_list_page(ListPage((a_live("b"),), "10"), NOW)

    assert first.request == List(EVERYWHERE, PAGE_SIZE, "more")
    assert list_results(first) == [(WatchEventType.ADDED, "a", "1")]
    assert not first.synced_at
    assert list_results(last) == [(WatchEventType.ADDED, "b", "1")]
    assert last.synced_at == "10"
    assert last.request == Watch(EVERYWHERE, "10")


def test_a_caller_with_a_version_gets_a_watch_from_there() -> None:
    assert make_reflector(since="7").start(NOW).request == Watch(EVERYWHERE, "7")


def test_changes_of_a_watch_are_reported() -> None:
    reflector = make_watching_reflector("a")

    turns = [
        reflector.on_event(WatchEventType.MODIFIED, a_live("a", version=11), NOW),
        reflector.on_event(WatchEventType.ADDED, a_live("b", version=12), NOW),
        reflector.on_event(WatchEventType.DELETED, a_live("a", version=13), NOW),
    ]

    assert [list_results(turn)[0] for turn in turns] == [
        (WatchEventType.MODIFIED, "a", "11"),
        (WatchEventType.ADDED, "b", "12"),
        (WatchEventType.DELETED, "a", "13"),
    ]


def test_known_versions_are_not_reported_again() -> None:
    reflector = make_watching_reflector("a")

    assert list_results(reflector.on_event(WatchEventType.ADDED, a_live("a", version=1), NOW)) == []


def test_a_stream_that_ends_is_taken_up_where_it_was() -> None:
    reflector = make_watching_reflector("a")
    reflector.on_event(WatchEventType.MODIFIED, a_live("a", version=11), NOW)
    reflector.on_bookmark("15", NOW)

    turn = reflector.on_stream_end(None, Ms(NOW + MINUTE))

    assert turn.request == Watch(EVERYWHERE, "15")


def test_a_lost_stream_is_taken_up_after_a_rest() -> None:
    reflector = make_watching_reflector("a")

    turn = reflector.on_stream_end(LOST, NOW)
    alarm = reflector.timer

    assert turn.request is None
    assert alarm is not None
    assert alarm > NOW
    assert reflector.on_timer(alarm).request == Watch(EVERYWHERE, "10")


def test_watches_that_end_at_once_are_restarted_with_backoff() -> None:
    reflector = make_watching_reflector("a")
    now, rests = NOW, []
    for _ in range(6):
        reflector.on_stream_end(None, now)
        assert reflector.timer is not None
        rests.append(reflector.timer - now)
        now = reflector.timer
        reflector.on_timer(now)

    assert rests == sorted(rests)
    assert rests[-1] > 10 * rests[0]


def test_a_throttled_watch_is_restarted_after_retry_after() -> None:
    reflector = make_watching_reflector("a")

    reflector.on_stream_end(TooManyRequests("busy", Ms(5 * SECOND)), NOW)

    assert reflector.timer is not None
    assert reflector.timer >= NOW + 5 * SECOND


def test_after_an_expired_version_only_the_difference_is_reported() -> None:
    reflector = make_watching_reflector("same", "changed", "gone", "remade")
    reflector.on_stream_end(Expired("too old"), NOW)
    news = (
        a_live("same"),
        a_live("changed", version=20),
        a_live("remade", version=21, uid="u2"),
        a_live("new", version=22),
    )

    turn = reflector.on_list_page(ListPage(news, "30"), NOW)

    assert list_results(turn) == [
        (WatchEventType.MODIFIED, "changed", "20"),
        (WatchEventType.DELETED, "remade", "1"),
        (WatchEventType.ADDED, "remade", "21"),
        (WatchEventType.ADDED, "new", "22"),
        (WatchEventType.DELETED, "gone", "1"),
    ]
    assert turn.request == Watch(EVERYWHERE, "30")


def test_a_list_that_expires_between_pages_starts_again() -> None:
    reflector = make_reflector()
    reflector.start(NOW)
    reflector.on_list_page(ListPage((a_live("a"),), "10", continue_token="more"), NOW)

    turn = reflector.on_list_page(Expired("too old"), NOW)

    assert turn.request == List(EVERYWHERE, PAGE_SIZE)
    assert list_results(reflector.on_list_page(ListPage((a_live("a"),), "11"), NOW)) == []


def test_a_failed_list_is_tried_again_after_a_rest() -> None:
    reflector = make_reflector()
    reflector.start(NOW)

    reflector.on_list_page(ServerError(500, "InternalError", "no"), NOW)

    assert reflector.timer is not None
    assert reflector.on_timer(reflector.timer).request == List(EVERYWHERE, PAGE_SIZE)


def test_a_silent_watch_is_restarted() -> None:
    reflector = make_watching_reflector("a")
    reflector.on_bookmark("15", NOW)

    early = reflector.on_timer(Ms(NOW + 2 * MINUTE - 1))
    later = reflector.on_timer(Ms(NOW + 2 * MINUTE))

    assert early == ReflectorAction()
    assert later == ReflectorAction(request=Watch(EVERYWHERE, "15"), cancel_stream=True)


def test_every_message_of_a_watch_resets_the_silence_timeout() -> None:
    reflector = make_watching_reflector("a")

    reflector.on_bookmark("15", Ms(NOW + MINUTE))

    assert reflector.timer == NOW + 3 * MINUTE


def test_a_forbidden_request_ends_the_view_and_nothing_is_reported_as_deleted() -> None:
    reflector = make_watching_reflector("a")

    turn = reflector.on_stream_end(Forbidden("no"), NOW)

    assert turn == ReflectorAction(error=Forbidden("no"))
    assert reflector.timer is None


def test_objects_of_a_removed_kind_are_reported_as_deleted() -> None:
    reflector = make_watching_reflector("a")

    turn = reflector.on_stream_end(NotServed("gone"), NOW)

    assert turn.error == NotServed("gone")
    assert turn.events == (WatchEvent(RequestId(1), WatchEventType.DELETED, a_live("a")),)
    assert turn.events[0].live.ref == a_ref("a")
