"""Verdicts for which Argo CD gives no message, with our own one."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.health.argo import judge
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Health, Verdict


def verdict_on(body: dict[str, Json]) -> Verdict:
    verdict = judge(body)
    assert verdict is not None
    return verdict


def an_object(kind: str, spec: dict[str, Json], status: dict[str, Json]) -> dict[str, Json]:
    version, _, name = kind.rpartition(" ")
    metadata: dict[str, Json] = {"name": "web", "generation": 5}
    return {
        "apiVersion": version,
        "kind": name,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def with_condition(**condition: Json) -> dict[str, Json]:
    return {"conditions": [{**condition}]}


@pytest.mark.parametrize(
    "address",
    [{"ip": "192.0.2.1"}, {"hostname": "web.example"}, {}],
    ids=["IP address", "host name", "neither"],
)
def test_an_ingress_names_the_address_it_was_given(
    address: dict[str, Json], wording: RecordedWording
) -> None:
    status: dict[str, Json] = {"loadBalancer": {"ingress": [address]}}

    verdict = verdict_on(an_object("networking.k8s.io/v1 Ingress", {}, status))

    assert verdict == Verdict(Health.HEALTHY, "AddressAssigned", verdict.message)
    wording(verdict.message)


def test_a_service_without_a_load_balancer_waits_for_nothing() -> None:
    verdict = verdict_on(an_object("v1 Service", {"type": "ClusterIP"}, {}))

    assert (verdict.health, verdict.reason) == (Health.HEALTHY, "NothingToWaitFor")


def test_a_claim_names_its_volume(wording: RecordedWording) -> None:
    body = an_object("v1 PersistentVolumeClaim", {"volumeName": "pv-7"}, {"phase": "Bound"})

    verdict = verdict_on(body)

    assert verdict == Verdict(Health.HEALTHY, "Bound", verdict.message)
    wording(verdict.message)


def test_an_unschedulable_pod_has_the_message_of_the_scheduler() -> None:
    status = {
        "phase": "Pending",
        **with_condition(
            type="PodScheduled", status="False", reason="Unschedulable", message="no node is free"
        ),
    }

    verdict = verdict_on(an_object("v1 Pod", {"restartPolicy": "Always"}, status))

    assert verdict == Verdict(Health.PROGRESSING, "Unschedulable", "no node is free")


def test_a_scheduled_pod_counts_its_ready_containers(wording: RecordedWording) -> None:
    containers: list[Json] = [{"name": "web", "ready": True}, {"name": "side", "ready": False}]
    status: dict[str, Json] = {"phase": "Running", "containerStatuses": containers}

    verdict = verdict_on(an_object("v1 Pod", {"restartPolicy": "Always"}, status))

    wording(verdict.message)


def test_a_verdict_on_a_gateway_has_the_generation_of_its_condition() -> None:
    status = with_condition(type="Programmed", status="True", observedGeneration=5)

    verdict = verdict_on(an_object("gateway.networking.k8s.io/v1 Gateway", {}, status))

    assert verdict == Verdict(
        Health.HEALTHY, "Programmed", "Gateway is healthy", observed_generation=5
    )


def test_the_message_of_a_condition_without_one_is_its_reason() -> None:
    status = with_condition(type="Accepted", status="False", reason="Invalid", message="")

    verdict = verdict_on(an_object("gateway.networking.k8s.io/v1 Gateway", {}, status))

    assert verdict == Verdict(Health.DEGRADED, "Invalid", "Invalid")


def test_the_reason_of_a_condition_without_one_is_its_name() -> None:
    status = with_condition(type="Ready", status="False", message="no")

    verdict = verdict_on(an_object("cert-manager.io/v1 Issuer", {}, status))

    assert verdict == Verdict(Health.DEGRADED, "NotReady", "no")


def test_an_object_at_which_argo_cds_script_stops_is_unknown() -> None:
    body = an_object("argoproj.io/v1alpha1 Rollout", {}, {"replicas": 1})

    verdict = verdict_on(body)

    assert (verdict.health, verdict.reason) == (Health.UNKNOWN, "NotUnderstood")


def test_a_long_message_is_cut_and_kept_on_one_line() -> None:
    status = with_condition(type="Ready", status="False", message="a\nb " + "c" * 500)

    verdict = verdict_on(an_object("cert-manager.io/v1 Issuer", {}, status))

    assert verdict.message.startswith("a b ccc")
    assert len(verdict.message) == 200
