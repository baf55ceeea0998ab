"""Real clusters: rights, sizes and ways to sign in that unit tests cannot show."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Site, a_config_map
from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Forbidden, Message, Response, Success, WatchEnded, WatchEvent
from tidegate.world.requests import Selection, View
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

CONFIG_MAP = Kind("", "v1", "ConfigMap")
WHO: JsonObject = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "SelfSubjectReview",
    "metadata": {},
}


def is_whole(message: Message) -> bool:
    return isinstance(message, Response | WatchEnded)


async def who_am_i(client: ClusterClient) -> tuple[Json, Json]:
    status = require_body(await client.create(WHO))["status"]
    assert isinstance(status, dict)
    user = status["userInfo"]
    assert isinstance(user, dict)
    return user["username"], user.get("groups")


async def a_reader(client: ClusterClient) -> None:
    """Let the guest read ConfigMaps in the client's namespace, and nowhere else."""
    name: JsonObject = {"name": "reader"}
    role: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": name,
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
        ],
    }
    binding: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": name,
        "subjects": [{"kind": "User", "name": "guest", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
    }
    require_live(await client.apply(role))
    require_live(await client.apply(binding))


async def test_a_user_with_access_to_one_namespace_watches_only_that_namespace(site: Site) -> None:
    guest_config = site.kubeconfig(user={"token": site.plane.token("guest")})
    async with (
        site.client(site.kubeconfig()) as client,
        real_world(kubeconfig=guest_config) as world,
    ):
        await a_reader(client)
        require_live(await client.apply(a_config_map("seen")))
        guest = ClusterClient(Dispatcher(ResilientWorld(world)), namespace=client.namespace)
        await guest.eventually(
            lambda: guest.page(Selection(CONFIG_MAP, client.namespace)),
            lambda outcome: not isinstance(outcome, Forbidden),
        )

        guest.watch(Selection(CONFIG_MAP, label_selector="test=yes"), within=(client.namespace,))
        messages = await guest.until(is_whole)

    assert [message.live.ref.name for message in messages if isinstance(message, WatchEvent)] == [
        "seen"
    ]
    assert isinstance(messages[-1], Response)


async def test_a_watch_without_permission_is_forbidden(site: Site) -> None:
    async with real_world(
        kubeconfig=site.kubeconfig(user={"token": site.plane.token("guest")})
    ) as world:
        guest = ClusterClient(Dispatcher(ResilientWorld(world)))

        guest.watch(Selection(CONFIG_MAP))
        messages = await guest.until(is_whole)

    ended = messages[-1]
    assert isinstance(ended, WatchEnded)
    assert isinstance(ended.outcome, Forbidden)


async def test_a_long_list_is_read_page_by_page(site: Site) -> None:
    async with site.client(site.kubeconfig(url=site.proxy.url)) as client:
        names = {f"m{number}" for number in range(1_200)}
        for name in sorted(names):
            require_live(await client.create(a_config_map(name)))
        site.proxy.seen.clear()

        client.watch(
            Selection(CONFIG_MAP, client.namespace, label_selector="test=yes", view=View.METADATA)
        )
        messages = await client.until(is_whole)

    assert {
        message.live.ref.name for message in messages if isinstance(message, WatchEvent)
    } == names
    assert len([seen for seen in site.proxy.seen if seen.endswith("/configmaps")]) >= 3


async def test_a_watch_delivers_an_object_of_one_megabyte(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        client.watch(Selection(CONFIG_MAP, client.namespace, label_selector="test=yes"))
        await client.until(is_whole)

        require_live(await client.create(a_config_map("large", text="x" * 1_000_000)))
        messages = await client.until(lambda message: isinstance(message, WatchEvent))

    large = messages[-1]
    assert isinstance(large, WatchEvent)
    assert len(large.live.body) > 1_000_000


async def test_a_client_certificate_authenticates(site: Site) -> None:
    certificate, key = site.plane.client_certificate("alice", ["system:masters", "shop"])
    user: dict[str, Json] = {"client-certificate": str(certificate), "client-key": str(key)}

    async with site.client(site.kubeconfig(user=user)) as client:
        name, groups = await who_am_i(client)

    assert name == "alice"
    assert isinstance(groups, list)
    assert "shop" in groups


async def test_a_credential_plugin_provides_a_token(site: Site, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, os\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"status = {{'token': {site.plane.token('tidegate')!r}}}\n"
        "print(json.dumps({'apiVersion': asked['apiVersion'], 'kind': 'ExecCredential',"
        " 'status': status}))\n"
    )
    user: dict[str, Json] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(plugin)],
            "interactiveMode": "Never",
        }
    }

    async with site.client(site.kubeconfig(user=user)) as client:
        name, _ = await who_am_i(client)

    assert name == "tidegate"


async def test_impersonation_of_the_kubeconfig_is_used(site: Site) -> None:
    user: dict[str, Json] = {
        "token": site.plane.token("tidegate"),
        "as": "bob",
        "as-groups": ["shop", "mail"],
    }

    async with real_world(kubeconfig=site.kubeconfig(user=user)) as world:
        client = ClusterClient(Dispatcher(ResilientWorld(world)))
        name, groups = await who_am_i(client)
        refused = await client.create(a_config_map())

    assert name == "bob"
    assert groups == ["shop", "mail", "system:authenticated"]
    assert isinstance(refused, Forbidden)


async def test_a_request_can_impersonate_another_user(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        guest = ClusterClient(
            client.world, namespace=client.namespace, identity=ImpersonatedUser(user="guest")
        )

        outcome = await guest.create(a_config_map())

    assert isinstance(outcome, Forbidden)
    assert "guest" in outcome.message


async def test_a_server_name_for_tls_may_differ_from_the_address(site: Site) -> None:
    kubeconfig = site.kubeconfig(cluster={"tls-server-name": "kubernetes.default.svc"})

    async with site.client(kubeconfig) as client:
        outcome = await client.apply(a_config_map())

    assert isinstance(outcome, Success)


async def test_items_of_a_list_have_the_requested_kind(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        require_live(await client.apply(a_config_map()))

        page = await client.page(Selection(CONFIG_MAP, client.namespace, label_selector="test=yes"))

    assert [item.ref.kind for item in require_items(page)] == [CONFIG_MAP]
