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
    return [(fact.type, fact.live.ref.name, fact.live.resource_version) for fact in turn.events]


def a_mirror(*, since: str = "") -> Reflector:
    return Reflector(RequestId(1), EVERYWHERE, resource_version=since)


def a_watching_mirror(*names: str) -> Reflector:
    """One that has listed these, as of version 10."""
    mirror = a_mirror()
    mirror.start(NOW)
    mirror.on_list_page(ListPage(tuple(a_live(name) for name in names), "10"), NOW)
    return mirror


def test_it_begins_with_a_page_of_a_list() -> None:
    assert a_mirror().start(NOW) == ReflectorAction(request=List(EVERYWHERE, PAGE_SIZE))


def test_it_requests_page_after_page_and_reports_each_as_it_comes() -> None:
    mirror = a_mirror()
    mirror.start(NOW)

    first = mirror.on_list_page(ListPage((a_live("a"),), "10", continue_token="more"), NOW)
    last = mirror.on_list_page(ListPage((a_live("b"),), "10"), NOW)

    assert first.request == List(EVERYWHERE, PAGE_SIZE, "more")
    assert list_results(first) == [(WatchEventType.ADDED, "a", "1")]
    assert not first.synced_at
    assert list_results(last) == [(WatchEventType.ADDED, "b", "1")]
    assert last.synced_at == "10"
    assert last.request == Watch(EVERYWHERE, "10")


def test_a_caller_who_has_a_version_gets_a_stream_from_there() -> None:
    assert a_mirror(since="7").start(NOW).request == Watch(EVERYWHERE, "7")


def test_changes_of_the_stream_are_reported_as_they_come() -> None:
    mirror = a_watching_mirror("a")

    turns = [
        mirror.on_event(WatchEventType.MODIFIED, a_live("a", version=11), NOW),
        mirror.on_event(WatchEventType.ADDED, a_live("b", version=12), NOW),
        mirror.on_event(WatchEventType.DELETED, a_live("a", version=13), NOW),
    ]

    assert [list_results(turn)[0] for turn in turns] == [
        (WatchEventType.MODIFIED, "a", "11"),
        (WatchEventType.ADDED, "b", "12"),
        (WatchEventType.DELETED, "a", "13"),
    ]


def test_what_the_caller_knows_already_is_not_reported_again() -> None:
    mirror = a_watching_mirror("a")

    assert list_results(mirror.on_event(WatchEventType.ADDED, a_live("a", version=1), NOW)) == []


def test_a_stream_that_ends_is_taken_up_where_it_was() -> None:
    mirror = a_watching_mirror("a")
    mirror.on_event(WatchEventType.MODIFIED, a_live("a", version=11), NOW)
    mirror.on_bookmark("15", NOW)

    turn = mirror.on_stream_end(None, Ms(NOW + MINUTE))

    assert turn.request == Watch(EVERYWHERE, "15")


def test_a_lost_stream_is_taken_up_after_a_rest() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.on_stream_end(LOST, NOW)
    alarm = mirror.timer

    assert turn.request is None
    assert alarm is not None
    assert alarm > NOW
    assert mirror.on_timer(alarm).request == Watch(EVERYWHERE, "10")


def test_streams_that_end_as_soon_as_they_begin_are_taken_up_more_and_more_slowly() -> None:
    mirror = a_watching_mirror("a")
    now, rests = NOW, []
    for _ in range(6):
        mirror.on_stream_end(None, now)
        assert mirror.timer is not None
        rests.append(mirror.timer - now)
        now = mirror.timer
        mirror.on_timer(now)

    assert rests == sorted(rests)
    assert rests[-1] > 10 * rests[0]


def test_a_server_that_throttles_watches_is_asked_when_it_says() -> None:
    mirror = a_watching_mirror("a")

    mirror.on_stream_end(TooManyRequests("busy", Ms(5 * SECOND)), NOW)

    assert mirror.timer is not None
    assert mirror.timer >= NOW + 5 * SECOND


def test_after_an_expired_version_it_lists_again_and_reports_only_the_difference() -> None:
    mirror = a_watching_mirror("same", "changed", "gone", "remade")
    mirror.on_stream_end(Expired("too old"), NOW)
    news = (
        a_live("same"),
        a_live("changed", version=20),
        a_live("remade", version=21, uid="u2"),
        a_live("new", version=22),
    )

    turn = mirror.on_list_page(ListPage(news, "30"), NOW)

    assert list_results(turn) == [
        (WatchEventType.MODIFIED, "changed", "20"),
        (WatchEventType.DELETED, "remade", "1"),
        (WatchEventType.ADDED, "remade", "21"),
        (WatchEventType.ADDED, "new", "22"),
        (WatchEventType.DELETED, "gone", "1"),
    ]
    assert turn.request == Watch(EVERYWHERE, "30")


def test_a_list_that_expires_between_pages_begins_anew() -> None:
    mirror = a_mirror()
    mirror.start(NOW)
    mirror.on_list_page(ListPage((a_live("a"),), "10", continue_token="more"), NOW)

    turn = mirror.on_list_page(Expired("too old"), NOW)

    assert turn.request == List(EVERYWHERE, PAGE_SIZE)
    assert list_results(mirror.on_list_page(ListPage((a_live("a"),), "11"), NOW)) == []


def test_a_failed_list_is_tried_again_after_a_rest() -> None:
    mirror = a_mirror()
    mirror.start(NOW)

    mirror.on_list_page(ServerError(500, "InternalError", "no"), NOW)

    assert mirror.timer is not None
    assert mirror.on_timer(mirror.timer).request == List(EVERYWHERE, PAGE_SIZE)


def test_a_silent_stream_is_hung_up_and_taken_up_anew() -> None:
    mirror = a_watching_mirror("a")
    mirror.on_bookmark("15", NOW)

    early = mirror.on_timer(Ms(NOW + 2 * MINUTE - 1))
    late = mirror.on_timer(Ms(NOW + 2 * MINUTE))

    assert early == ReflectorAction()
    assert late == ReflectorAction(request=Watch(EVERYWHERE, "15"), cancel_stream=True)


def test_every_word_from_the_stream_puts_the_silence_off() -> None:
    mirror = a_watching_mirror("a")

    mirror.on_bookmark("15", Ms(NOW + MINUTE))

    assert mirror.timer == NOW + 3 * MINUTE


def test_a_forbidden_request_ends_the_view_and_nothing_is_reported_as_deleted() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.on_stream_end(Forbidden("no"), NOW)

    assert turn == ReflectorAction(error=Forbidden("no"))
    assert mirror.timer is None


def test_a_kind_that_is_gone_takes_its_objects_along() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.on_stream_end(NotServed("gone"), NOW)

    assert turn.error == NotServed("gone")
    assert turn.events == (WatchEvent(RequestId(1), WatchEventType.DELETED, a_live("a")),)
    assert turn.events[0].live.ref == a_ref("a")
