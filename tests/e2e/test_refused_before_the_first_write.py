"""Objects that a real API server refuses whatever the plan writes before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Site, a_config_map
from tests.e2e.output import events_of
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import a_namespace
from tests.support.tidegate_command import CommandResult, Tidegate
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.kinds import CONFIG_MAP
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.world.messages import NotFound, ServerError

pytestmark = pytest.mark.kube

LAST: JsonObject = {"argocd.argoproj.io/sync-wave": "1"}
UID = "11111111-2222-3333-4444-555555555555"
WEBHOOK = "admissionregistration.k8s.io/v1"


def a_pod(**spec: Json) -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "main", "image": "main:1"}], **spec}
    metadata: JsonObject = {"name": "web", "annotations": LAST}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def an_identified_object() -> JsonObject:
    metadata: JsonObject = {"name": "last", "uid": UID, "annotations": LAST}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def a_webhook(client: ClusterClient) -> JsonObject:
    """A webhook for Secrets of the client's namespace, whose Service does not exist."""
    rule: JsonObject = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["secrets"],
    }
    selector: JsonObject = {"kubernetes.io/metadata.name": client.namespace}
    hook: JsonObject = {
        "name": "gate.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 2,
        "clientConfig": {"service": {"namespace": f"{client.namespace}-hooks", "name": "gate"}},
        "namespaceSelector": {"matchLabels": selector},
        "rules": [rule],
    }
    metadata: JsonObject = {"name": client.namespace}
    kind = "ValidatingWebhookConfiguration"
    return {"apiVersion": WEBHOOK, "kind": kind, "metadata": metadata, "webhooks": [hook]}


def a_secret(name: str = "last") -> JsonObject:
    metadata: JsonObject = {"name": name, "annotations": LAST}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def sync(
    site: Site, client: ClusterClient, directory: Path, *bodies: JsonObject
) -> CommandResult:
    """Roll out a ConfigMap, `first`, and these objects."""
    unit = directory / client.namespace
    unit.mkdir()
    text = "---\n".join(map(to_yaml, (a_config_map("first"), *bodies)))
    (unit / "unit.yaml").write_text(text)
    options = ("--kubeconfig", str(site.kubeconfig()), "--namespace", client.namespace)
    limit = ("--timeout", "20s", "-o", "json")
    return await Tidegate(directory).run("sync", unit, "--yes", *options, *limit)


async def assert_refused(ran: CommandResult, client: ClusterClient, reason: str) -> str:
    """Return the message of the only refusal, before which nothing was written."""
    (refused,) = events_of(ran.stdout, "object.refused")
    first = await client.get(Ref(CONFIG_MAP, client.namespace, "first"))
    assert (ran.code, refused["reason"]) == (3, reason)
    assert isinstance(first, NotFound)
    return str(refused["message"])


@pytest.mark.parametrize(
    "spec", [{"serviceAccountName": "no-account"}, {"priorityClassName": "no-class"}]
)
async def test_a_pod_that_needs_what_nothing_creates_is_refused(
    site: Site, tmp_path: Path, spec: JsonObject
) -> None:
    async with site.client(site.kubeconfig()) as client:
        ran = await sync(site, client, tmp_path, a_pod(**spec))

        message = await assert_refused(ran, client, "Missing")

    assert str(next(iter(spec.values()))) in message


async def test_a_pod_whose_account_the_plan_creates_is_rolled_out(
    site: Site, tmp_path: Path
) -> None:
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "builder"},
    }
    async with site.client(site.kubeconfig()) as client:
        ran = await sync(site, client, tmp_path, account, a_pod(serviceAccountName="builder"))

    assert ran.code == 0, ran.stdout + ran.stderr


async def test_an_object_with_the_uid_of_another_is_refused(site: Site, tmp_path: Path) -> None:
    async with site.client(site.kubeconfig()) as client:
        ran = await sync(site, client, tmp_path, an_identified_object())

        message = await assert_refused(ran, client, "Conflict")

    assert "metadata.uid" in message


async def test_an_object_of_a_webhook_that_does_not_answer_is_refused(
    site: Site, tmp_path: Path
) -> None:
    async with site.client(site.kubeconfig()) as client:
        hook = require_live(await client.create(a_webhook(client))).ref
        await client.eventually(
            lambda: client.apply(a_secret("tried"), dry_run=True),
            lambda outcome: isinstance(outcome, ServerError),
        )
        ran = await sync(site, client, tmp_path, a_secret())
        await client.delete(hook)

        message = await assert_refused(ran, client, "WebhookUnreachable")

    assert "`gate.example.org`" in message


async def test_a_webhook_whose_server_is_in_the_plan_is_no_error_yet(
    site: Site, tmp_path: Path
) -> None:
    async with site.client(site.kubeconfig()) as client:
        place = f"{client.namespace}-hooks"
        require_live(await client.create(a_namespace(place)))
        hook = require_live(await client.create(a_webhook(client))).ref
        await client.eventually(
            lambda: client.apply(a_secret("tried"), dry_run=True),
            lambda outcome: isinstance(outcome, ServerError),
        )
        service: JsonObject = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "gate", "namespace": place},
            "spec": {"ports": [{"port": 443}], "selector": {"app": "gate"}},
        }
        ran = await sync(site, client, tmp_path, service, a_secret())
        await client.delete(hook)
        first = await client.get(Ref(CONFIG_MAP, client.namespace, "first"))

    assert events_of(ran.stdout, "object.refused") == []
    assert not isinstance(first, NotFound)
