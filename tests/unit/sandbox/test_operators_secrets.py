"""Operators that create Secrets: cert-manager, sealed-secrets, external-secrets, Vault."""

from __future__ import annotations

from tests.support.objects import SECRET, SERVICE, a_service, an_object
from tests.support.operator_stage import OperatorStage, an_operator
from tidegate.model.k8s.objects import JsonObject, Kind, Propagation, Ref
from tidegate.model.times import MINUTE, SECOND, Ms

ISSUER = Kind("cert-manager.io", "v1", "Issuer")
CERTIFICATE = Kind("cert-manager.io", "v1", "Certificate")
SEALED = Kind("bitnami.com", "v1alpha1", "SealedSecret")
STORE = Kind("external-secrets.io", "v1", "SecretStore")
CLUSTER_STORE = Kind("external-secrets.io", "v1", "ClusterSecretStore")
EXTERNAL = Kind("external-secrets.io", "v1", "ExternalSecret")
VAULT = Kind("vault.banzaicloud.com", "v1alpha1", "Vault")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")

CERT_MANAGER = an_operator("cert-manager", "registry.example/jetstack/cert-manager-controller:v1")
SEALER = an_operator("sealed-secrets", "registry.example/bitnami/sealed-secrets-controller:0.30")
EXTERNALS = an_operator("eso", "registry.example/external-secrets/external-secrets:v1")


def a_secret(name: str, **data: str) -> JsonObject:
    return an_object(SECRET, name, stringData={**data})


def endpoints_of(service: str) -> JsonObject:
    return {
        **an_object(SLICE, f"{service}-1"),
        "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}}],
        "ports": [{"name": "api", "port": 8200, "protocol": "TCP"}],
    }


async def test_a_certificate_waits_for_its_issuer_and_the_issuer_for_its_key_pair() -> None:
    stage = await OperatorStage().start(ISSUER, CERTIFICATE)
    await stage.operate(CERT_MANAGER)
    spec: JsonObject = {"secretName": "web-tls", "issuerRef": {"name": "ca"}}
    certificate = await stage.make(CERTIFICATE, "web", spec)
    issuer = await stage.make(ISSUER, "ca", {"ca": {"secretName": "ca-pair"}})
    await stage.wait(Ms(MINUTE))

    waiting = await stage.condition(certificate, "Ready")
    refusing = await stage.condition(issuer, "Ready")
    await stage.add(a_secret("ca-pair"))
    await stage.wait(Ms(10 * SECOND))

    assert (waiting["status"], waiting["reason"]) == ("False", "DoesNotExist")
    assert (refusing["status"], refusing["reason"]) == ("False", "ErrGetKeyPair")
    assert (await stage.condition(issuer, "Ready"))["reason"] == "KeyPairVerified"
    assert (await stage.condition(certificate, "Ready"))["status"] == "True"
    assert await stage.condition(certificate, "Issuing") == {}


async def test_a_certificate_creates_a_tls_secret_that_is_kept() -> None:
    stage = await OperatorStage().start(ISSUER, CERTIFICATE)
    await stage.operate(CERT_MANAGER)
    await stage.make(ISSUER, "self", {"selfSigned": {}})
    spec: JsonObject = {"secretName": "web-tls", "issuerRef": {"name": "self", "kind": "Issuer"}}
    certificate = await stage.make(CERTIFICATE, "web", spec)

    await stage.wait(Ms(10 * SECOND))
    keys = await stage.secret("web-tls")
    body = await stage.body(Ref(SECRET, "shop", "web-tls"))
    await stage.client.delete(certificate, propagation=Propagation.BACKGROUND)
    await stage.wait(Ms(10 * SECOND))

    assert keys == {"tls.crt": "simulated", "tls.key": "simulated", "ca.crt": "simulated"}
    assert body["type"] == "kubernetes.io/tls"
    assert await stage.exists(SECRET, "web-tls")


async def test_a_certificate_that_changes_is_issued_again() -> None:
    stage = await OperatorStage().start(ISSUER, CERTIFICATE)
    await stage.operate(CERT_MANAGER)
    await stage.make(ISSUER, "self", {"selfSigned": {}})
    spec: JsonObject = {"secretName": "web-tls", "issuerRef": {"name": "self"}}
    certificate = await stage.make(CERTIFICATE, "web", spec)
    await stage.wait(Ms(10 * SECOND))

    await stage.client.patch(certificate, {"spec": {"dnsNames": ["shop.example"]}})
    await stage.wait(Ms(SECOND))
    issuing = await stage.condition(certificate, "Ready")
    await stage.wait(Ms(10 * SECOND))
    issued = await stage.condition(certificate, "Ready")

    assert (issuing["status"], issuing["observedGeneration"]) == ("False", 2)
    assert (issued["status"], issued["observedGeneration"]) == ("True", 2)


async def test_a_certificate_of_an_acme_server_has_no_ca() -> None:
    stage = await OperatorStage().start(ISSUER, CERTIFICATE)
    await stage.operate(CERT_MANAGER)
    await stage.make(ISSUER, "le", {"acme": {"server": "https://acme.example.com"}})
    stores: JsonObject = {"jks": {"create": True}, "pkcs12": {"create": False}}
    spec: JsonObject = {"secretName": "web-tls", "issuerRef": {"name": "le"}, "keystores": stores}
    await stage.make(CERTIFICATE, "web", spec)

    await stage.wait(Ms(10 * SECOND))

    assert set(await stage.secret("web-tls")) == {"tls.crt", "tls.key", "keystore.jks"}


async def test_the_secret_of_a_sealed_secret_has_its_name() -> None:
    stage = await OperatorStage().start(SEALED)
    await stage.operate(SEALER)
    template: JsonObject = {"metadata": {"name": "other"}}

    await stage.make(SEALED, "login", {"encryptedData": {"user": "Ag"}, "template": template})
    await stage.wait(Ms(5 * SECOND))

    assert await stage.exists(SECRET, "login")
    assert not await stage.exists(SECRET, "other")


async def test_an_external_secret_with_merge_updates_a_secret_and_creates_none() -> None:
    stage = await OperatorStage().start(STORE, EXTERNAL)
    await stage.operate(EXTERNALS)
    await stage.make(STORE, "fake", {"provider": {"fake": {}}})
    spec: JsonObject = {
        "secretStoreRef": {"name": "fake"},
        "target": {"name": "app", "creationPolicy": "Merge"},
        "data": [{"secretKey": "token", "remoteRef": {"key": "web"}}],
    }
    external = await stage.make(EXTERNAL, "web", spec)
    await stage.wait(Ms(10 * SECOND))

    alone = await stage.condition(external, "Ready")
    was_created = await stage.exists(SECRET, "app")
    await stage.add(a_secret("app", user="ann"))
    await stage.wait(Ms(10 * SECOND))

    assert (alone["status"], alone["reason"], was_created) == ("True", "SecretMissing", False)
    assert (await stage.condition(external, "Ready"))["reason"] == "SecretSynced"
    assert await stage.secret("app") == {"user": "ann", "token": "simulated"}


async def test_a_sealed_secret_creates_the_secret_of_its_template_and_deletes_it() -> None:
    stage = await OperatorStage().start(SEALED)
    await stage.operate(SEALER)
    template: JsonObject = {"type": "example.com/login", "metadata": {"labels": {"app": "web"}}}
    sealed = await stage.make(
        SEALED, "login", {"encryptedData": {"user": "Ag", "password": "Ag"}, "template": template}
    )

    await stage.wait(Ms(5 * SECOND))
    keys = await stage.secret("login")
    created = await stage.body(Ref(SECRET, "shop", "login"))
    await stage.client.delete(sealed, propagation=Propagation.BACKGROUND)
    await stage.wait(Ms(5 * SECOND))

    assert keys == {"user": "simulated", "password": "simulated"}
    assert created["type"] == "example.com/login"
    assert not await stage.exists(SECRET, "login")


async def test_a_store_backed_by_vault_is_not_ready_before_vault_answers() -> None:
    stage = await OperatorStage().start(STORE, EXTERNAL)
    await stage.operate(EXTERNALS)
    vault: JsonObject = {"server": "http://vault.shop.svc.cluster.local:8200", "path": "kv"}
    store = await stage.make(STORE, "vault", {"provider": {"vault": vault}})
    spec: JsonObject = {
        "secretStoreRef": {"name": "vault"},
        "data": [{"secretKey": "token", "remoteRef": {"key": "web"}}],
    }
    external = await stage.make(EXTERNAL, "web", spec)
    await stage.add(a_service("vault", {"name": "api", "port": 8200}))
    await stage.wait(Ms(MINUTE))

    refusing = await stage.condition(store, "Ready")
    waiting = await stage.condition(external, "Ready")
    await stage.add(endpoints_of("vault"))
    await stage.wait(Ms(10 * SECOND))

    assert (refusing["status"], refusing["reason"]) == ("False", "InvalidProviderConfig")
    assert (waiting["status"], waiting["reason"]) == ("False", "SecretSyncedError")
    assert (await stage.condition(external, "Ready"))["reason"] == "SecretSynced"
    assert await stage.secret("web") == {"token": "simulated"}


async def test_a_store_outside_of_the_cluster_needs_nothing_inside() -> None:
    stage = await OperatorStage().start(CLUSTER_STORE)
    await stage.operate(EXTERNALS)
    vault: JsonObject = {"server": "https://vault.example.com"}

    store = await stage.make(CLUSTER_STORE, "vault", {"provider": {"vault": vault}})
    await stage.wait(Ms(10 * SECOND))

    assert (await stage.condition(store, "Ready"))["status"] == "True"


async def test_an_external_secret_with_keys_of_the_store_marks_them_as_unknown() -> None:
    stage = await OperatorStage().start(STORE, EXTERNAL)
    await stage.operate(EXTERNALS)
    await stage.make(STORE, "fake", {"provider": {"fake": {}}})

    spec: JsonObject = {
        "secretStoreRef": {"name": "fake"},
        "target": {"name": "all", "creationPolicy": "Orphan"},
        "dataFrom": [{"extract": {"key": "web"}}],
    }
    await stage.make(EXTERNAL, "web", spec)
    await stage.wait(Ms(10 * SECOND))
    metadata = (await stage.body(Ref(SECRET, "shop", "all")))["metadata"]

    assert isinstance(metadata, dict)
    annotations = metadata["annotations"]
    assert isinstance(annotations, dict)
    assert annotations["sandbox.tidegate.dev/open-keys"] == "true"
    assert "ownerReferences" not in metadata


async def test_an_existing_secret_keeps_its_values_and_gets_missing_keys() -> None:
    stage = await OperatorStage().start(SEALED)
    await stage.operate(SEALER)
    await stage.add(an_object(SECRET, "login", data={"user": "YW5u"}))

    await stage.make(SEALED, "login", {"encryptedData": {"user": "Ag", "password": "Ag"}})
    await stage.wait(Ms(5 * SECOND))

    assert await stage.secret("login") == {"user": "ann", "password": "simulated"}


async def test_vault_is_sealed_first_and_answers_when_it_is_unsealed() -> None:
    stage = await OperatorStage().start(VAULT)
    await stage.operate(
        an_operator("vault-operator", "registry.example/bank-vaults/vault-operator:1")
    )
    vault = await stage.make(VAULT, "vault", {"size": 1})
    await stage.wait(Ms(10 * SECOND))

    sealed = await stage.condition(vault, "Healthy")
    answers_early = await stage.exists(SLICE, "vault-simulated")
    await stage.wait(Ms(30 * SECOND))

    assert (sealed["status"], sealed["reason"], answers_early) == ("False", "sealed", False)
    assert (await stage.condition(vault, "Healthy"))["status"] == "True"
    assert await stage.exists(SERVICE, "vault")
    assert await stage.exists(SLICE, "vault-simulated")
    assert "vault-root" in await stage.secret("vault-unseal-keys")
