"""Promises about watches, at the world itself and on a line."""

from __future__ import annotations

from collections.abc import Callable

from tests.promises.objects import CONFIG_MAP, a_config_map, labelled
from tidegate.model.moment import SECOND, Ms
from tidegate.testing import Desk, live_of
from tidegate.world.calls import Selection, View
from tidegate.world.facts import (
    Answer,
    Bookmark,
    Change,
    Changed,
    Ended,
    Fact,
    Listed,
)


def here(desk: Desk, *, labels: str = "watched=yes", view: View = View.FULL) -> Selection:
    return Selection(CONFIG_MAP, desk.namespace, labels=labels, view=view)


async def version_of(desk: Desk) -> str:
    page = await desk.page(here(desk))
    assert isinstance(page, Listed)
    return page.version


def changes(facts: list[Fact]) -> list[tuple[Change, str]]:
    return [(fact.change, fact.live.ref.name) for fact in facts if isinstance(fact, Changed)]


def the(change: Change, name: str) -> Callable[[Fact], bool]:
    return lambda fact: (
        isinstance(fact, Changed) and fact.change is change and fact.live.ref.name == name
    )


def is_whole(fact: Fact) -> bool:
    return isinstance(fact, Answer)


async def test_a_watch_tells_every_change_in_order(bare: Desk) -> None:
    bare.watch(here(bare), since=await version_of(bare))

    ref = live_of(await bare.create(labelled(a_config_map(), watched="yes"))).ref
    await bare.patch(ref, {"data": {"color": "red"}})
    await bare.delete(ref)
    facts = await bare.until(the(Change.DELETED, "web"))

    assert changes(facts) == [
        (Change.ADDED, "web"),
        (Change.MODIFIED, "web"),
        (Change.DELETED, "web"),
    ]


async def test_a_watch_from_a_version_tells_what_came_after_it(bare: Desk) -> None:
    await bare.create(labelled(a_config_map("before"), watched="yes"))
    version = await version_of(bare)
    await bare.create(labelled(a_config_map("after"), watched="yes"))

    bare.watch(here(bare), since=version)
    facts = await bare.until(the(Change.ADDED, "after"))

    assert changes(facts) == [(Change.ADDED, "after")]


async def test_a_watch_is_resumed_from_the_version_of_its_last_change(bare: Desk) -> None:
    first = bare.watch(here(bare), since=await version_of(bare))
    await bare.create(labelled(a_config_map("one"), watched="yes"))
    facts = await bare.until(the(Change.ADDED, "one"))
    bare.cancel(first)
    await bare.create(labelled(a_config_map("two"), watched="yes"))
    last = facts[-1]
    assert isinstance(last, Changed)

    bare.watch(here(bare), since=last.live.version)
    facts = await bare.until(the(Change.ADDED, "two"))

    assert changes(facts) == [(Change.ADDED, "two")]


async def test_a_deletion_tells_the_last_state(bare: Desk) -> None:
    created = live_of(await bare.create(labelled(a_config_map(color="blue"), watched="yes")))
    bare.watch(here(bare), since=created.version)

    await bare.delete(created.ref)
    facts = await bare.until(the(Change.DELETED, "web"))

    deleted = facts[-1]
    assert isinstance(deleted, Changed)
    assert deleted.live.uid == created.uid
    assert b'"color":"blue"' in deleted.live.body
    assert deleted.live.version != created.version


async def test_leaving_a_selection_looks_like_a_deletion(bare: Desk) -> None:
    created = live_of(await bare.create(labelled(a_config_map(), watched="yes")))
    bare.watch(here(bare), since=created.version)

    await bare.patch(created.ref, {"metadata": {"labels": {"watched": "no"}}})
    facts = await bare.until(the(Change.DELETED, "web"))

    assert changes(facts) == [(Change.DELETED, "web")]


async def test_entering_a_selection_looks_like_an_addition(bare: Desk) -> None:
    created = live_of(await bare.create(a_config_map()))
    bare.watch(here(bare), since=created.version)

    await bare.patch(created.ref, {"metadata": {"labels": {"watched": "yes"}}})
    facts = await bare.until(the(Change.ADDED, "web"))

    assert changes(facts) == [(Change.ADDED, "web")]


async def test_an_apply_that_changes_nothing_is_not_told(bare: Desk) -> None:
    await bare.apply(labelled(a_config_map(color="blue"), watched="yes"))
    bare.watch(here(bare), since=await version_of(bare))

    await bare.apply(labelled(a_config_map(color="blue"), watched="yes"))
    await bare.apply(labelled(a_config_map("next"), watched="yes"))
    facts = await bare.until(the(Change.ADDED, "next"))

    assert changes(facts) == [(Change.ADDED, "next")]


async def test_a_watch_that_sees_nothing_is_told_how_far_it_has_come(bare: Desk) -> None:
    ticket = bare.watch(here(bare), since=await version_of(bare))
    unseen = live_of(await bare.create(a_config_map("unseen")))

    facts = await bare.until(lambda fact: isinstance(fact, Bookmark))

    mark = facts[-1]
    assert isinstance(mark, Bookmark)
    assert mark.ticket == ticket
    assert int(mark.version) >= int(unseen.version)


async def test_a_watch_that_has_lasted_long_enough_ends_in_good_order(bare: Desk) -> None:
    ticket = bare.watch(here(bare), since=await version_of(bare))

    facts = await bare.until(lambda fact: isinstance(fact, Ended))

    assert facts[-1] == Ended(ticket)


async def test_a_cancelled_watch_says_nothing_more(bare: Desk) -> None:
    cancelled = bare.watch(here(bare), since=await version_of(bare))
    other = bare.watch(here(bare), since=await version_of(bare))

    bare.cancel(cancelled)
    await bare.create(labelled(a_config_map(), watched="yes"))
    facts = await bare.until(the(Change.ADDED, "web"))

    assert {fact.ticket for fact in facts if isinstance(fact, Changed)} == {other}


async def test_a_watch_of_metadata_leaves_the_rest_out(bare: Desk) -> None:
    bare.watch(here(bare, view=View.METADATA), since=await version_of(bare))

    await bare.create(labelled(a_config_map(color="blue"), watched="yes"))
    facts = await bare.until(the(Change.ADDED, "web"))

    added = facts[-1]
    assert isinstance(added, Changed)
    assert added.live.ref.kind == CONFIG_MAP
    assert b"blue" not in added.live.body


async def test_a_line_tells_what_is_there_before_it_tells_what_changes(desk: Desk) -> None:
    await desk.create(labelled(a_config_map("one"), watched="yes"))

    desk.watch(here(desk))
    first = await desk.until(is_whole)
    await desk.create(labelled(a_config_map("two"), watched="yes"))
    then = await desk.until(the(Change.ADDED, "two"))

    assert changes(first) == [(Change.ADDED, "one")]
    assert changes(then) == [(Change.ADDED, "two")]


async def test_a_line_goes_on_when_the_server_ends_the_watch(desk: Desk, watching: Ms) -> None:
    desk.watch(here(desk))
    await desk.until(is_whole)
    await desk.rest(Ms(desk.world.now() + watching + SECOND))

    await desk.create(labelled(a_config_map(), watched="yes"))
    facts = await desk.until(the(Change.ADDED, "web"))

    assert changes(facts) == [(Change.ADDED, "web")]
