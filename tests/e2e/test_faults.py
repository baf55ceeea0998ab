"""A line keeps working when servers, connections and watches do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Site, a_config_map
from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.faulty_proxy import Fault, every, once
from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.world.messages import (
    AlreadyExists,
    Delivery,
    Message,
    NoResponse,
    NotFound,
    Response,
    ServerError,
    Success,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import Selection, Verb, Write

pytestmark = pytest.mark.kube

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def ours(client: ClusterClient) -> Selection:
    return Selection(CONFIG_MAP, client.namespace, label_selector="test=yes")


def read_result(name: str) -> Callable[[Message], bool]:
    return lambda message: isinstance(message, WatchEvent) and message.live.ref.name == name


def is_whole(message: Message) -> bool:
    return isinstance(message, Response)


async def test_all_applies_succeed_when_every_tenth_response_is_an_error(
    site: Site,
) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        site.proxy.policy = every(10, Fault.THROTTLED, Fault.SERVER_ERROR, Fault.SERVER_ERROR_AFTER)
        writes = [an_apply(client, f"m{number}") for number in range(200)]

        outcomes = await client.ask(*writes)
        page = await client.page(ours(client))

    assert all(isinstance(outcome, Success) for outcome in outcomes)
    assert {item.ref.name for item in require_items(page)} == {
        f"m{number}" for number in range(200)
    }
    assert len(site.proxy.seen) > 220


async def test_a_watch_is_complete_when_every_third_response_is_an_error(site: Site) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        site.proxy.policy = every(3, Fault.THROTTLED, Fault.SERVER_ERROR, Fault.DROPPED_BEFORE)
        client.watch(ours(client))
        await client.until(is_whole)
        for number in range(30):
            require_live(await client.apply(a_config_map(f"m{number}")))

        messages = await client.until(read_result("m29"))

    names = [message.live.ref.name for message in messages if isinstance(message, WatchEvent)]
    assert names == [f"m{number}" for number in range(30)]


@pytest.mark.parametrize("fault", [Fault.DROPPED_BEFORE, Fault.DROPPED_AFTER])
async def test_an_apply_is_repeated_after_a_lost_connection(site: Site, fault: Fault) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        site.proxy.policy = once(fault, "PATCH")

        outcome = await client.apply(a_config_map(color="blue"))

    assert require_body(outcome)["data"] == {"color": "blue"}
    assert [seen for seen in site.proxy.seen if seen.endswith("/web")] == [
        f"PATCH /api/v1/namespaces/{client.namespace}/configmaps/web"
    ] * 2


async def test_a_create_is_not_repeated_after_a_lost_connection(
    site: Site,
) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        site.proxy.policy = once(Fault.DROPPED_AFTER, "POST")

        outcome = await client.create(a_config_map())
        again = await client.create(a_config_map())

    assert isinstance(outcome, NoResponse)
    assert outcome.delivery is Delivery.MAYBE_SENT
    assert isinstance(again, AlreadyExists)


@pytest.mark.parametrize("fault", [Fault.DROPPED_BEFORE, Fault.DROPPED_AFTER])
async def test_a_delete_by_name_is_not_repeated_after_a_lost_connection(
    site: Site, fault: Fault
) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        ref = require_live(await client.create(a_config_map())).ref
        site.proxy.policy = once(fault, "DELETE")

        outcome = await client.delete(ref)

    assert isinstance(outcome, NoResponse)
    assert outcome.delivery is Delivery.MAYBE_SENT
    assert [seen for seen in site.proxy.seen if seen.startswith("DELETE")] == [
        f"DELETE /api/v1/namespaces/{client.namespace}/configmaps/web"
    ]


async def test_a_delete_by_uid_is_repeated_and_gets_not_found(site: Site) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        created = require_live(await client.create(a_config_map()))
        site.proxy.policy = once(Fault.DROPPED_AFTER, "DELETE")

        outcome = await client.delete(created.ref, uid=created.uid)

    assert isinstance(outcome, NotFound)


async def test_a_silent_watch_is_restarted_without_missing_a_change(site: Site) -> None:
    kubeconfig = site.kubeconfig(url=site.proxy.url)
    async with site.client(kubeconfig, quiet=Ms(2 * SECOND)) as client:
        client.watch(ours(client))
        await client.until(is_whole)
        site.proxy.silent = True
        await client.apply(a_config_map("unheard"))
        await client.apply(a_config_map("unheard", color="red"))
        site.proxy.silent = False

        messages = await client.until(
            lambda message: isinstance(message, WatchEvent) and b"red" in message.live.body
        )

    received = [
        (message.type, message.live.ref.name)
        for message in messages
        if isinstance(message, WatchEvent)
    ]
    assert received == [(WatchEventType.ADDED, "unheard"), (WatchEventType.MODIFIED, "unheard")]


async def test_requests_and_watches_survive_an_api_server_restart(own_site: Site) -> None:
    async with own_site.client(own_site.kubeconfig()) as client:
        client.watch(ours(client))
        await client.until(is_whole)
        own_site.plane.kill("apiserver")
        client.world.client().submit(an_apply(client, "during"))
        await client.rest(Ms(client.world.now() + 500))
        own_site.plane.revive("apiserver")

        messages = await client.until(read_result("during"), within=MINUTE)
        require_live(await client.apply(a_config_map("after")))
        messages += await client.until(read_result("after"), within=MINUTE)

    names = [message.live.ref.name for message in messages if isinstance(message, WatchEvent)]
    assert names == ["during", "after"]


async def test_a_watch_survives_a_restart_with_a_compacted_history(own_site: Site) -> None:
    plane = own_site.plane
    async with own_site.client(own_site.kubeconfig()) as client:
        gone = require_live(await client.apply(a_config_map("gone"))).ref
        require_live(await client.apply(a_config_map("stays")))
        client.watch(ours(client))
        await client.until(is_whole)
        plane.kill("apiserver")
        plane.revive("apiserver")
        async with own_site.client(own_site.kubeconfig()) as other:
            await other.delete(gone)
            require_live(
                await ClusterClient(other.world, namespace=client.namespace).apply(
                    a_config_map("new")
                )
            )
        plane.compact()
        plane.kill("apiserver")
        plane.revive("apiserver")

        messages = await client.until(read_result("gone"), within=MINUTE)

    changes = [
        (message.type, message.live.ref.name)
        for message in messages
        if isinstance(message, WatchEvent)
    ]
    assert changes == [(WatchEventType.ADDED, "new"), (WatchEventType.DELETED, "gone")]


async def test_a_rotated_token_file_is_used_at_once(site: Site, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.plane.token("tidegate"))
    review: JsonObject = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "metadata": {},
    }

    async with site.client(site.kubeconfig(user={"tokenFile": str(token)})) as client:
        before = require_body(await client.create(review))
        token.write_text(site.plane.token("admin"))
        after = require_body(await client.create(review))

    assert [user_of(before), user_of(after)] == ["tidegate", "admin"]


async def test_a_token_rotated_after_a_rejection_is_used(site: Site, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.plane.token("tidegate"))

    async with site.client(site.kubeconfig(user={"tokenFile": str(token)})) as client:
        token.write_text("revoked")
        refused = await client.apply(a_config_map())
        token.write_text(site.plane.token("tidegate"))
        accepted = await client.apply(a_config_map())

    assert isinstance(refused, ServerError)
    assert refused.status == 401
    assert isinstance(accepted, Success)


def user_of(review: JsonObject) -> Json:
    status = review["status"]
    assert isinstance(status, dict)
    user = status["userInfo"]
    assert isinstance(user, dict)
    return user["username"]


def an_apply(client: ClusterClient, name: str, **data: str) -> Write:
    ref = Ref(CONFIG_MAP, client.namespace, name)
    return Write(verb=Verb.APPLY, ref=ref, body=to_json(a_config_map(name, **data)), manager="test")
