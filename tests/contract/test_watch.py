"""Promises about watches, at the world itself and on a line."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import CONFIG_MAP, a_config_map, labelled
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import (
    Bookmark,
    ListPage,
    Message,
    Response,
    WatchEnded,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import Selection, View


def here(
    client: ClusterClient, *, labels: str = "watched=yes", view: View = View.FULL
) -> Selection:
    return Selection(CONFIG_MAP, client.namespace, label_selector=labels, view=view)


async def version_of(client: ClusterClient) -> str:
    page = await client.page(here(client))
    assert isinstance(page, ListPage)
    return page.resource_version


def changes(messages: list[Message]) -> list[tuple[WatchEventType, str]]:
    return [
        (message.type, message.live.ref.name)
        for message in messages
        if isinstance(message, WatchEvent)
    ]


def the(change: WatchEventType, name: str) -> Callable[[Message], bool]:
    return lambda message: (
        isinstance(message, WatchEvent) and message.type is change and message.live.ref.name == name
    )


def is_whole(message: Message) -> bool:
    return isinstance(message, Response)


async def test_a_watch_reports_every_change_in_order(bare: ClusterClient) -> None:
    bare.watch(here(bare), since=await version_of(bare))

    ref = require_live(await bare.create(labelled(a_config_map(), watched="yes"))).ref
    await bare.patch(ref, {"data": {"color": "red"}})
    await bare.delete(ref)
    messages = await bare.until(the(WatchEventType.DELETED, "web"))

    assert changes(messages) == [
        (WatchEventType.ADDED, "web"),
        (WatchEventType.MODIFIED, "web"),
        (WatchEventType.DELETED, "web"),
    ]


async def test_a_watch_from_a_version_reports_later_changes(bare: ClusterClient) -> None:
    await bare.create(labelled(a_config_map("before"), watched="yes"))
    version = await version_of(bare)
    await bare.create(labelled(a_config_map("after"), watched="yes"))

    bare.watch(here(bare), since=version)
    messages = await bare.until(the(WatchEventType.ADDED, "after"))

    assert changes(messages) == [(WatchEventType.ADDED, "after")]


async def test_a_watch_is_resumed_from_the_version_of_its_last_change(bare: ClusterClient) -> None:
    first = bare.watch(here(bare), since=await version_of(bare))
    await bare.create(labelled(a_config_map("one"), watched="yes"))
    messages = await bare.until(the(WatchEventType.ADDED, "one"))
    bare.cancel(first)
    await bare.create(labelled(a_config_map("two"), watched="yes"))
    last = messages[-1]
    assert isinstance(last, WatchEvent)

    bare.watch(here(bare), since=last.live.resource_version)
    messages = await bare.until(the(WatchEventType.ADDED, "two"))

    assert changes(messages) == [(WatchEventType.ADDED, "two")]


async def test_a_deletion_event_has_the_last_state(bare: ClusterClient) -> None:
    created = require_live(await bare.create(labelled(a_config_map(color="blue"), watched="yes")))
    bare.watch(here(bare), since=created.resource_version)

    await bare.delete(created.ref)
    messages = await bare.until(the(WatchEventType.DELETED, "web"))

    deleted = messages[-1]
    assert isinstance(deleted, WatchEvent)
    assert deleted.live.uid == created.uid
    assert b'"color":"blue"' in deleted.live.body
    assert deleted.live.resource_version != created.resource_version


async def test_leaving_a_selection_is_reported_as_a_deletion(bare: ClusterClient) -> None:
    created = require_live(await bare.create(labelled(a_config_map(), watched="yes")))
    bare.watch(here(bare), since=created.resource_version)

    await bare.patch(created.ref, {"metadata": {"labels": {"watched": "no"}}})
    messages = await bare.until(the(WatchEventType.DELETED, "web"))

    assert changes(messages) == [(WatchEventType.DELETED, "web")]


async def test_entering_a_selection_is_reported_as_an_addition(bare: ClusterClient) -> None:
    created = require_live(await bare.create(a_config_map()))
    bare.watch(here(bare), since=created.resource_version)

    await bare.patch(created.ref, {"metadata": {"labels": {"watched": "yes"}}})
    messages = await bare.until(the(WatchEventType.ADDED, "web"))

    assert changes(messages) == [(WatchEventType.ADDED, "web")]


async def test_an_apply_without_changes_is_not_reported(bare: ClusterClient) -> None:
    await bare.apply(labelled(a_config_map(color="blue"), watched="yes"))
    bare.watch(here(bare), since=await version_of(bare))

    await bare.apply(labelled(a_config_map(color="blue"), watched="yes"))
    await bare.apply(labelled(a_config_map("next"), watched="yes"))
    messages = await bare.until(the(WatchEventType.ADDED, "next"))

    assert changes(messages) == [(WatchEventType.ADDED, "next")]


async def test_an_idle_watch_gets_bookmarks(bare: ClusterClient) -> None:
    request_id = bare.watch(here(bare), since=await version_of(bare))
    unseen = require_live(await bare.create(a_config_map("unseen")))

    messages = await bare.until(lambda message: isinstance(message, Bookmark))

    mark = messages[-1]
    assert isinstance(mark, Bookmark)
    assert mark.request_id == request_id
    assert int(mark.resource_version) >= int(unseen.resource_version)


async def test_a_watch_that_has_lasted_long_enough_ends_in_good_order(bare: ClusterClient) -> None:
    request_id = bare.watch(here(bare), since=await version_of(bare))

    messages = await bare.until(lambda message: isinstance(message, WatchEnded))

    assert messages[-1] == WatchEnded(request_id)


async def test_a_cancelled_watch_reports_nothing_more(bare: ClusterClient) -> None:
    cancelled = bare.watch(here(bare), since=await version_of(bare))
    other = bare.watch(here(bare), since=await version_of(bare))

    bare.cancel(cancelled)
    await bare.create(labelled(a_config_map(), watched="yes"))
    messages = await bare.until(the(WatchEventType.ADDED, "web"))

    assert {message.request_id for message in messages if isinstance(message, WatchEvent)} == {
        other
    }


async def test_a_watch_of_metadata_leaves_the_rest_out(bare: ClusterClient) -> None:
    bare.watch(here(bare, view=View.METADATA), since=await version_of(bare))

    await bare.create(labelled(a_config_map(color="blue"), watched="yes"))
    messages = await bare.until(the(WatchEventType.ADDED, "web"))

    added = messages[-1]
    assert isinstance(added, WatchEvent)
    assert added.live.ref.kind == CONFIG_MAP
    assert b"blue" not in added.live.body


async def test_a_watch_reports_existing_objects_before_changes(
    client: ClusterClient,
) -> None:
    await client.create(labelled(a_config_map("one"), watched="yes"))

    client.watch(here(client))
    first = await client.until(is_whole)
    await client.create(labelled(a_config_map("two"), watched="yes"))
    then = await client.until(the(WatchEventType.ADDED, "two"))

    assert changes(first) == [(WatchEventType.ADDED, "one")]
    assert changes(then) == [(WatchEventType.ADDED, "two")]


async def test_a_watch_continues_after_the_server_ends_it(
    client: ClusterClient, watching: Ms
) -> None:
    client.watch(here(client))
    await client.until(is_whole)
    await client.rest(Ms(client.world.now() + watching + SECOND))

    await client.create(labelled(a_config_map(), watched="yes"))
    messages = await client.until(the(WatchEventType.ADDED, "web"))

    assert changes(messages) == [(WatchEventType.ADDED, "web")]
