"""A selection kept whole: what the caller is told, whatever happens to lists and streams."""

from __future__ import annotations

from tests.fakes.script import CONFIG_MAP, a_live, a_ref
from tidegate.model.moment import MINUTE, SECOND, Ms
from tidegate.world.calls import List, Selection, Ticket, Watch
from tidegate.world.facts import (
    Change,
    Changed,
    Expired,
    Failed,
    Forbidden,
    Listed,
    Loss,
    Lost,
    NotServed,
    Sent,
    Throttled,
)
from tidegate.world.mirror import PAGE, Mirror, MirrorTurn

NOW = Ms(1_000_000)
EVERYWHERE = Selection(CONFIG_MAP)
LOST = Lost(Sent.MAYBE, Loss.DISCONNECTED, "connection reset")


def told(turn: MirrorTurn) -> list[tuple[Change, str, str]]:
    return [(fact.change, fact.live.ref.name, fact.live.version) for fact in turn.changes]


def a_mirror(*, since: str = "") -> Mirror:
    return Mirror(Ticket(1), EVERYWHERE, since=since)


def a_watching_mirror(*names: str) -> Mirror:
    """One that has listed these, as of version 10."""
    mirror = a_mirror()
    mirror.begin(NOW)
    mirror.listed(Listed(tuple(a_live(name) for name in names), "10"), NOW)
    return mirror


def test_it_begins_with_a_page_of_a_list() -> None:
    assert a_mirror().begin(NOW) == MirrorTurn(send=List(EVERYWHERE, PAGE))


def test_it_asks_for_page_after_page_and_tells_each_as_it_comes() -> None:
    mirror = a_mirror()
    mirror.begin(NOW)

    first = mirror.listed(Listed((a_live("a"),), "10", resume="more"), NOW)
    last = mirror.listed(Listed((a_live("b"),), "10"), NOW)

    assert first.send == List(EVERYWHERE, PAGE, "more")
    assert told(first) == [(Change.ADDED, "a", "1")]
    assert not first.whole_at
    assert told(last) == [(Change.ADDED, "b", "1")]
    assert last.whole_at == "10"
    assert last.send == Watch(EVERYWHERE, "10")


def test_a_caller_who_has_a_version_gets_a_stream_from_there() -> None:
    assert a_mirror(since="7").begin(NOW).send == Watch(EVERYWHERE, "7")


def test_changes_of_the_stream_are_told_as_they_come() -> None:
    mirror = a_watching_mirror("a")

    turns = [
        mirror.changed(Change.MODIFIED, a_live("a", version=11), NOW),
        mirror.changed(Change.ADDED, a_live("b", version=12), NOW),
        mirror.changed(Change.DELETED, a_live("a", version=13), NOW),
    ]

    assert [told(turn)[0] for turn in turns] == [
        (Change.MODIFIED, "a", "11"),
        (Change.ADDED, "b", "12"),
        (Change.DELETED, "a", "13"),
    ]


def test_what_the_caller_knows_already_is_not_told_again() -> None:
    mirror = a_watching_mirror("a")

    assert told(mirror.changed(Change.ADDED, a_live("a", version=1), NOW)) == []


def test_a_stream_that_ends_is_taken_up_where_it_was() -> None:
    mirror = a_watching_mirror("a")
    mirror.changed(Change.MODIFIED, a_live("a", version=11), NOW)
    mirror.bookmarked("15", NOW)

    turn = mirror.ended(None, Ms(NOW + MINUTE))

    assert turn.send == Watch(EVERYWHERE, "15")


def test_a_lost_stream_is_taken_up_after_a_rest() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.ended(LOST, NOW)
    alarm = mirror.alarm

    assert turn.send is None
    assert alarm is not None
    assert alarm > NOW
    assert mirror.due(alarm).send == Watch(EVERYWHERE, "10")


def test_streams_that_end_as_soon_as_they_begin_are_taken_up_more_and_more_slowly() -> None:
    mirror = a_watching_mirror("a")
    now, rests = NOW, []
    for _ in range(6):
        mirror.ended(None, now)
        assert mirror.alarm is not None
        rests.append(mirror.alarm - now)
        now = mirror.alarm
        mirror.due(now)

    assert rests == sorted(rests)
    assert rests[-1] > 10 * rests[0]


def test_a_server_that_throttles_watches_is_asked_when_it_says() -> None:
    mirror = a_watching_mirror("a")

    mirror.ended(Throttled("busy", Ms(5 * SECOND)), NOW)

    assert mirror.alarm is not None
    assert mirror.alarm >= NOW + 5 * SECOND


def test_after_an_expired_version_it_lists_again_and_tells_only_the_difference() -> None:
    mirror = a_watching_mirror("same", "changed", "gone", "remade")
    mirror.ended(Expired("too old"), NOW)
    news = (
        a_live("same"),
        a_live("changed", version=20),
        a_live("remade", version=21, uid="u2"),
        a_live("new", version=22),
    )

    turn = mirror.listed(Listed(news, "30"), NOW)

    assert told(turn) == [
        (Change.MODIFIED, "changed", "20"),
        (Change.DELETED, "remade", "1"),
        (Change.ADDED, "remade", "21"),
        (Change.ADDED, "new", "22"),
        (Change.DELETED, "gone", "1"),
    ]
    assert turn.send == Watch(EVERYWHERE, "30")


def test_a_list_that_expires_between_pages_begins_anew() -> None:
    mirror = a_mirror()
    mirror.begin(NOW)
    mirror.listed(Listed((a_live("a"),), "10", resume="more"), NOW)

    turn = mirror.listed(Expired("too old"), NOW)

    assert turn.send == List(EVERYWHERE, PAGE)
    assert told(mirror.listed(Listed((a_live("a"),), "11"), NOW)) == []


def test_a_failed_list_is_tried_again_after_a_rest() -> None:
    mirror = a_mirror()
    mirror.begin(NOW)

    mirror.listed(Failed(500, "InternalError", "no"), NOW)

    assert mirror.alarm is not None
    assert mirror.due(mirror.alarm).send == List(EVERYWHERE, PAGE)


def test_a_silent_stream_is_hung_up_and_taken_up_anew() -> None:
    mirror = a_watching_mirror("a")
    mirror.bookmarked("15", NOW)

    early = mirror.due(Ms(NOW + 2 * MINUTE - 1))
    late = mirror.due(Ms(NOW + 2 * MINUTE))

    assert early == MirrorTurn()
    assert late == MirrorTurn(send=Watch(EVERYWHERE, "15"), hang_up=True)


def test_every_word_from_the_stream_puts_the_silence_off() -> None:
    mirror = a_watching_mirror("a")

    mirror.bookmarked("15", Ms(NOW + MINUTE))

    assert mirror.alarm == NOW + 3 * MINUTE


def test_what_is_forbidden_ends_the_view_and_nothing_is_said_to_be_gone() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.ended(Forbidden("no"), NOW)

    assert turn == MirrorTurn(refused=Forbidden("no"))
    assert mirror.alarm is None


def test_a_kind_that_is_gone_takes_its_objects_along() -> None:
    mirror = a_watching_mirror("a")

    turn = mirror.ended(NotServed("gone"), NOW)

    assert turn.refused == NotServed("gone")
    assert turn.changes == (Changed(Ticket(1), Change.DELETED, a_live("a")),)
    assert turn.changes[0].live.ref == a_ref("a")
