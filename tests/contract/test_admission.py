"""Promises about who refuses what: namespaces that go, webhooks, service accounts, rights."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import (
    NAMESPACE,
    POD,
    a_config_map,
    a_container,
    a_namespace,
    a_service,
    an_object,
    at,
    held,
)
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import Forbidden, NotFound, ServerError, Success
from tidegate.world.requests import PatchType

WEBHOOK = Kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
LONG = Ms(60 * SECOND)


def a_webhook(
    client: ClusterClient, *, failure_policy: str, resources: str = "configmaps"
) -> JsonObject:
    """Asks about every ConfigMap of the client's namespace; its Service is not there."""
    hook: JsonObject = {
        "name": "gate.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": failure_policy,
        "timeoutSeconds": 2,
        "clientConfig": {"service": {"namespace": client.namespace, "name": "nobody"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": client.namespace}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resources],
            }
        ],
    }
    return an_object(WEBHOOK, client.namespace, webhooks=[hook])


async def a_dying_namespace(client: ClusterClient) -> tuple[ClusterClient, Ref]:
    """A namespace that is being deleted and cannot go, and what holds it."""
    inside = ClusterClient(client.world, namespace=f"{client.namespace}-dying")
    await client.create(a_namespace(inside.namespace))
    holding = require_live(await inside.create(held(a_config_map("holding")))).ref
    await client.delete(Ref(NAMESPACE, "", inside.namespace))
    return inside, holding


async def test_a_namespace_that_is_being_deleted_takes_nothing_new(client: ClusterClient) -> None:
    inside, holding = await a_dying_namespace(client)

    outcome = await inside.create(a_config_map("late"))
    phase = at(
        require_body(await client.get(Ref(NAMESPACE, "", inside.namespace))), "status", "phase"
    )
    await inside.patch(holding, {"metadata": {"finalizers": None}})

    assert phase == "Terminating"
    assert isinstance(outcome, Forbidden)
    assert "NamespaceTerminating" in {cause.reason for cause in outcome.causes}


async def test_a_namespace_is_deleted_after_its_contents(client: ClusterClient) -> None:
    inside, holding = await a_dying_namespace(client)

    def is_gone(live: LiveObject | None) -> bool:
        return live is None

    await inside.patch(holding, {"metadata": {"finalizers": None}})

    assert await client.settled(Ref(NAMESPACE, "", inside.namespace), is_gone, within=LONG) is None
    assert isinstance(await inside.get(holding), NotFound)


async def test_a_webhook_that_fails_closed_and_is_not_there_refuses_writes(
    client: ClusterClient,
) -> None:
    hook = require_live(await client.create(a_webhook(client, failure_policy="Fail"))).ref

    outcome = await client.eventually(
        lambda: client.create(an_unnamed_config_map()),
        lambda outcome: isinstance(outcome, ServerError),
    )
    await client.delete(hook)

    assert isinstance(outcome, ServerError)
    assert outcome.status == 500
    assert 'failed calling webhook "gate.example.org"' in outcome.message


async def test_a_webhook_that_fails_closed_refuses_dry_runs_too(client: ClusterClient) -> None:
    hook = require_live(await client.create(a_webhook(client, failure_policy="Fail"))).ref

    outcome = await client.eventually(
        lambda: client.create(an_unnamed_config_map(), dry_run=True),
        lambda outcome: isinstance(outcome, ServerError),
    )
    await client.delete(hook)

    assert isinstance(outcome, ServerError)
    assert "failed calling webhook" in outcome.message


async def test_a_webhook_is_called_for_an_update_without_changes(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.apply(a_config_map())).ref
    hook = require_live(await client.create(a_webhook(client, failure_policy="Fail"))).ref

    outcome = await client.eventually(
        lambda: client.apply(a_config_map(), dry_run=True),
        lambda outcome: isinstance(outcome, ServerError),
    )
    await client.delete(hook)

    assert isinstance(outcome, ServerError)
    assert "failed calling webhook" in outcome.message
    assert isinstance(await client.get(ref), Success)


async def test_a_webhook_is_called_before_already_exists_is_returned(
    client: ClusterClient,
) -> None:
    require_live(await client.create(a_config_map()))
    hook = require_live(await client.create(a_webhook(client, failure_policy="Fail"))).ref

    outcome = await client.eventually(
        lambda: client.create(a_config_map()), lambda outcome: isinstance(outcome, ServerError)
    )
    await client.delete(hook)

    assert isinstance(outcome, ServerError)
    assert "failed calling webhook" in outcome.message


async def test_a_webhook_for_a_kind_is_not_called_for_its_status(client: ClusterClient) -> None:
    ref = require_live(await client.create(a_service(type="LoadBalancer"))).ref
    hook = require_live(
        await client.create(a_webhook(client, failure_policy="Fail", resources="services"))
    ).ref
    await client.eventually(
        lambda: client.patch(ref, {"spec": {"sessionAffinity": "ClientIP"}}),
        lambda outcome: isinstance(outcome, ServerError),
    )

    balancer: JsonObject = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    outcome = await client.patch(ref, {"status": balancer}, subresource="status")
    await client.delete(hook)

    assert isinstance(outcome, Success)


async def test_a_webhook_that_fails_open_and_is_not_there_lets_writes_pass(
    client: ClusterClient,
) -> None:
    closed = require_live(await client.create(a_webhook(client, failure_policy="Fail"))).ref
    await client.eventually(
        lambda: client.create(an_unnamed_config_map()),
        lambda outcome: isinstance(outcome, ServerError),
    )

    await client.patch(
        closed,
        [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}],
        patch_type=PatchType.JSON,
    )
    outcome = await client.eventually(
        lambda: client.create(an_unnamed_config_map()), lambda outcome: isinstance(outcome, Success)
    )
    await client.delete(closed)

    assert isinstance(outcome, Success)


async def test_a_pod_without_its_service_account_is_rejected(client: ClusterClient) -> None:
    pod = an_object(
        POD, "web", spec={"serviceAccountName": "nobody", "containers": [a_container("app")]}
    )

    outcome = await client.create(pod)

    assert isinstance(outcome, Forbidden)
    assert "nobody" in outcome.message


@pytest.mark.parametrize("name", ["Web", "web_1", "-web", "a" * 254])
async def test_a_name_that_is_no_name_is_refused(client: ClusterClient, name: str) -> None:
    outcome = await client.create(a_config_map(name))

    assert not isinstance(outcome, Success)


def an_unnamed_config_map() -> JsonObject:
    return {**a_config_map(), "metadata": {"generateName": "web-"}}
