from __future__ import annotations

import pytest

from tests.support.objects import (
    CRD,
    POD,
    PVC,
    SECRET,
    SERVICE,
    a_claim,
    a_definition,
    a_deployment,
    a_job,
    a_service,
    a_stateful_set,
    an_object,
)
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.schema.builtin import served_kinds
from tidegate.schema.immutable import find_immutable, read_immutable_fields

BOUND: JsonObject = {"status": {"phase": "Bound"}}
ESTABLISHED: JsonObject = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
BALANCED: JsonObject = a_service(type="LoadBalancer")
ADDRESS: JsonObject = a_service(clusterIP="10.0.0.1")
POD_BODY: JsonObject = an_object(POD, "p", spec={"activeDeadlineSeconds": 10})


def is_frozen(path: str, live: JsonObject, expected: JsonObject | None = None) -> bool:
    place = tuple(path.split("."))
    return find_immutable([place], live, expected or live) == (place,)


@pytest.mark.parametrize(
    ("live", "path"),
    [
        (a_deployment(), "spec.selector.matchLabels.app"),
        (a_stateful_set(), "spec.serviceName"),
        (a_stateful_set(), "spec.volumeClaimTemplates"),
        (a_job(), "spec.template.spec.containers.image"),
        (a_job(), "spec.completions"),
        (a_job(suspend=True), "spec.template.spec.containers.image"),
        (ADDRESS, "spec.clusterIP"),
        (ADDRESS, "spec.ipFamilies"),
        (BALANCED, "spec.loadBalancerClass"),
        (a_claim(), "spec.accessModes"),
        (a_claim(), "spec.resources.requests.storage"),
        (a_claim(storageClassName="fast"), "spec.storageClassName"),
        (an_object(SECRET, "s"), "type"),
        (an_object(SECRET, "s", immutable=True), "data.a"),
        (an_object(POD, "p"), "spec.containers.env"),
        (an_object(POD, "p"), "spec.containers"),
        (an_object(Kind("", "v1", "PersistentVolume"), "v"), "spec.csi.driver"),
        ({**a_definition("example.org"), **ESTABLISHED}, "spec.scope"),
        (a_definition("example.org"), "spec.names.plural"),
    ],
)
def test_these_fields_are_immutable(live: JsonObject, path: str) -> None:
    assert is_frozen(path, live)


@pytest.mark.parametrize(
    ("live", "path"),
    [
        (a_deployment(), "spec.template.spec.containers.image"),
        (a_deployment(), "metadata.labels"),
        (a_stateful_set(), "spec.template.spec.containers.image"),
        (a_job(), "spec.parallelism"),
        (a_job(suspend=True), "spec.template.spec.nodeSelector.disk"),
        (a_job(completionMode="Indexed", completions=3, parallelism=3), "spec.completions"),
        (a_service(), "spec.clusterIP"),
        (a_service(), "spec.loadBalancerClass"),
        ({**a_claim(), **BOUND}, "spec.resources.requests.storage"),
        (a_claim(), "spec.storageClassName"),
        (an_object(SECRET, "s"), "data.a"),
        (an_object(POD, "p"), "spec.containers.image"),
        (an_object(POD, "p"), "spec.activeDeadlineSeconds"),
        (an_object(Kind("", "v1", "PersistentVolume"), "v"), "spec.capacity.storage"),
        (a_definition("example.org"), "spec.scope"),
        (an_object(Kind("example.org", "v1", "Job"), "j"), "spec.template"),
    ],
)
def test_these_fields_are_mutable(live: JsonObject, path: str) -> None:
    assert not is_frozen(path, live)


def test_a_bound_claim_grows_and_does_not_shrink() -> None:
    live, path = {**a_claim(size="2Gi"), **BOUND}, "spec.resources.requests.storage"

    assert not is_frozen(path, live, a_claim(size="3Gi"))
    assert is_frozen(path, live, a_claim(size="1024Mi"))


def test_the_deadline_of_a_pod_can_only_decrease() -> None:
    path = "spec.activeDeadlineSeconds"

    assert not is_frozen(path, POD_BODY, an_object(POD, "p", spec={"activeDeadlineSeconds": 5}))
    assert is_frozen(path, POD_BODY, an_object(POD, "p", spec={"activeDeadlineSeconds": 50}))
    assert is_frozen(path, POD_BODY, an_object(POD, "p", spec={}))


def test_a_service_can_become_an_external_name() -> None:
    outside = an_object(SERVICE, "web", spec={"type": "ExternalName", "externalName": "a.b"})

    assert not is_frozen("spec.clusterIP", ADDRESS, outside)


def test_every_row_is_of_a_kind_of_an_api_server() -> None:
    served = {(served_kind.kind.group, served_kind.kind.name) for served_kind in served_kinds()}
    # Served only where a feature gate is on.
    gated = {
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("coordination.k8s.io", "LeaseCandidate"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }

    assert set(read_immutable_fields()) - served - gated == set()
    assert (CRD.group, CRD.name) in read_immutable_fields()
    assert (PVC.group, PVC.name) in read_immutable_fields()
