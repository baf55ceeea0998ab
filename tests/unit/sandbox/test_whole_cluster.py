"""A whole cluster: controllers, kubelet and operators together."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import a_container, a_job, a_pod_template, a_stateful_set
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import JsonObject, LiveObject
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import build_controllers
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld


def a_cluster() -> ClusterClient:
    sandbox = Sandbox(controllers=build_controllers(default_profile(), load_builtin_knowledge()))
    sandbox.preload(load_base_objects())
    return ClusterClient(Dispatcher(ResilientWorld(sandbox)))


def a_vault() -> JsonObject:
    labels = {"app.kubernetes.io/name": "vault", "component": "server"}
    template = a_pod_template(a_container("vault", "hashicorp/vault:1"), **labels)
    return a_stateful_set("vault", selector={"matchLabels": {**labels}}, template=template)


def is_ready(live: LiveObject | None) -> bool:
    return live is not None and b'"readyReplicas":1' in live.body


async def test_a_vault_is_not_ready_before_it_is_unsealed() -> None:
    client = a_cluster()
    vault = require_live(await client.apply(a_vault())).ref
    await client.rest(Ms(client.world.now() + 2 * MINUTE))

    sealed = require_live(await client.get(vault))
    require_live(await client.apply(a_job("vault-unseal")))
    unsealed = await client.settled(vault, is_ready, within=MINUTE)

    assert not is_ready(sealed)
    assert is_ready(unsealed)


async def test_a_new_cluster_has_namespaces_with_accounts_a_node_and_a_class_of_storage() -> None:
    client = a_cluster()

    refs = [await client.ref(body) for body in load_base_objects()]
    names = [str(require_live(await client.get(ref)).ref) for ref in refs]

    assert names == [
        "Namespace default",
        "Namespace kube-node-lease",
        "Namespace kube-public",
        "Namespace kube-system",
        "ServiceAccount default/default",
        "ServiceAccount kube-node-lease/default",
        "ServiceAccount kube-public/default",
        "ServiceAccount kube-system/default",
        "Node node-1",
        "StorageClass standard",
    ]
