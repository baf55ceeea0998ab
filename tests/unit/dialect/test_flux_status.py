"""The status of a Kustomization, in the words of Flux."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.dialect.flux.status.kustomization import inventory_id, kustomization_status
from tidegate.dialect.times import format_go_duration
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.progress import (
    ObjectProgress,
    ObjectResult,
    SourceRevision,
    StatusUpdate,
    UnitPhase,
    UnitProgress,
)
from tidegate.model.times import Ms
from tidegate.model.units.source import Revision
from tidegate.model.units.unit import UnitId

OWN = UnitId("Kustomization", "", "flux-system", "apps")
REVISION = "main@sha1:0123456789abcdef0123456789abcdef01234567"
SOURCES = (SourceRevision(Revision("main", REVISION.partition("@")[2])),)
DEPLOYMENT = Kind("apps", "v1", "Deployment")
WEB = ObjectProgress(ref=Ref(DEPLOYMENT, "shop", "web"), is_live=True, in_sync=True)


def an_account(*objects: ObjectProgress, **more: object) -> UnitProgress:
    usual: dict[str, object] = {
        "phase": UnitPhase.FINISHED,
        "result": "passed",
        "has_operation": True,
    }
    times: dict[str, object] = {"started_at": Ms(60_000), "now": Ms(72_300)}
    return UnitProgress(unit=OWN, objects=objects, **(usual | times | more))  # type: ignore[arg-type]


def a_kustomization(status: JsonObject | None = None, **more: Json) -> JsonObject:
    spec: JsonObject = {"interval": "10m", "timeout": "5m", "wait": True, **more}
    metadata: Json = {"name": "apps", "namespace": "flux-system", "generation": 3}
    result: JsonObject = {"status": status} if status is not None else {}
    return {"kind": "Kustomization", "metadata": metadata, "spec": spec, **result}


def status_update(account: UnitProgress, resource: JsonObject | None = None) -> StatusUpdate:
    result = kustomization_status(resource or a_kustomization(), account, SOURCES)
    assert result is not None
    return result


def conditions(result: StatusUpdate) -> dict[str, tuple[str, str, str]]:
    return {
        get_text(condition, "type"): (
            get_text(condition, "status"),
            get_text(condition, "reason"),
            get_text(condition, "message"),
        )
        for condition in get_mappings(result.status, "conditions")
    }


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (Ref(DEPLOYMENT, "team-a", "web"), "team-a_web_apps_Deployment"),
        (Ref(Kind("", "v1", "Namespace"), "", "team-a"), "_team-a__Namespace"),
        (Ref(Kind("", "v1", "ConfigMap"), "a", "b"), "a_b__ConfigMap"),
        (
            Ref(Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"), "", "system:auth"),
            "_system__auth_rbac.authorization.k8s.io_ClusterRole",
        ),
    ],
)
def test_an_object_is_kept_by_the_name_that_flux_gives_it(ref: Ref, name: str) -> None:
    assert inventory_id(ref) == name


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,9}[a-z0-9])?", fullmatch=True)
GROUPS = st.sampled_from(["", "apps", "batch", "rbac.authorization.k8s.io", "cert-manager.io"])


@given(
    st.one_of(st.just(""), NAMES),
    NAMES,
    GROUPS,
    st.from_regex(r"[A-Z][A-Za-z]{1,8}", fullmatch=True),
)
def test_flux_reads_the_name_back(namespace: str, name: str, group: str, kind: str) -> None:
    is_rbac = group.startswith("rbac.")
    name = f"system:{name}" if is_rbac else name

    whole = inventory_id(Ref(Kind(group, "v1", kind), namespace, name))

    first, _, rest = whole.partition("_")
    rest, _, last = rest.rpartition("_")
    rest, _, before = rest.rpartition("_")
    assert (first, rest.replace("__", ":"), before, last) == (namespace, name, group, kind)


def test_a_ready_status_has_the_revision_and_the_duration_of_the_health_check() -> None:
    result = status_update(an_account(WEB))

    assert conditions(result) == {
        "Ready": ("True", "ReconciliationSucceeded", f"Applied revision: {REVISION}"),
        "Healthy": ("True", "Succeeded", "Health check passed in 12.3s"),
    }
    assert get_value(result.status, "observedGeneration") == 3
    assert get_value(result.status, "lastAppliedRevision") == REVISION
    assert [note[1] for note in result.events] == ["ReconciliationSucceeded"]


def test_without_health_checks_the_status_has_no_healthy_condition() -> None:
    kustomization = a_kustomization(status_update(an_account(WEB)).status, wait=False)

    assert set(conditions(status_update(an_account(WEB), kustomization))) == {"Ready"}


def test_a_running_unit_is_reconciling_and_has_no_applied_revision() -> None:
    going = an_account(WEB, phase=UnitPhase.RUNNING, result="")
    waiting = an_account(
        ObjectProgress(ref=WEB.ref, is_live=True, is_awaited=True),
        phase=UnitPhase.RUNNING,
        result="",
    )

    assert conditions(status_update(going)) == {
        "Ready": ("Unknown", "Progressing", "Reconciliation in progress"),
        "Reconciling": (
            "True",
            "Progressing",
            f"Detecting drift for revision {REVISION} with a timeout of 5m0s",
        ),
    }
    message = f"Running health checks for revision {REVISION} with a timeout of 5m0s"
    assert conditions(status_update(waiting))["Healthy"] == ("Unknown", "Progressing", message)
    assert "lastAppliedRevision" not in status_update(going).status
    assert "observedGeneration" not in status_update(going).status


@pytest.mark.parametrize(
    ("health", "message"),
    [
        (
            Health.DEGRADED,
            "failed early due to stalled resources: [Deployment/shop/web status: 'Failed']",
        ),
        (
            Health.PROGRESSING,
            "timeout waiting for: [Deployment/shop/web status: 'InProgress']",
        ),
    ],
)
def test_an_object_that_did_not_become_healthy_is_named(health: Health, message: str) -> None:
    ill = ObjectProgress(ref=WEB.ref, is_live=True, health=health, result=ObjectResult.FAILED)

    result = status_update(an_account(ill, result="failed", is_gate_failure=True))

    assert conditions(result) == {
        "Ready": ("False", "HealthCheckFailed", f"health check failed after 12.3s: {message}"),
        "Healthy": ("False", "HealthCheckFailed", message),
        "Reconciling": (
            "True",
            "ProgressingWithRetry",
            f"health check failed after 12.3s: {message}",
        ),
    }


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"message": "it is refused"}, "ReconciliationFailed"),
        ({"message": "there is no path", "is_valid": False}, "BuildFailed"),
    ],
)
def test_other_failures_have_their_reasons(more: dict[str, object], reason: str) -> None:
    result = status_update(an_account(WEB, result="failed", **more))

    assert conditions(result)["Ready"] == ("False", reason, str(more["message"]))


def test_an_object_that_could_not_be_pruned_is_kept_and_reported() -> None:
    stuck = ObjectProgress(
        ref=Ref(DEPLOYMENT, "shop", "old"),
        is_live=True,
        is_desired=False,
        result=ObjectResult.FAILED,
    )

    result = status_update(an_account(WEB, stuck, result="failed", message="it is still there"))

    assert conditions(result)["Ready"][1] == "PruneFailed"
    names = [get_text(entry, "id") for entry in get_mappings(result.status, "inventory", "entries")]
    assert names == ["shop_web_apps_Deployment", "shop_old_apps_Deployment"]


def test_a_waiting_unit_names_its_first_dependency() -> None:
    kustomization = a_kustomization(dependsOn=[{"name": "a"}, {"name": "b", "namespace": "team"}])
    units = [UnitId("Kustomization", "", *name) for name in (("team", "b"), ("flux-system", "a"))]

    both = an_account(phase=UnitPhase.WAITING, has_operation=False, waits_for=tuple(units))
    last = an_account(phase=UnitPhase.WAITING, has_operation=False, waits_for=(units[0],))
    other = an_account(phase=UnitPhase.WAITING, has_operation=False, waits_for=(OWN,))

    assert conditions(status_update(both, kustomization))["Ready"] == (
        "False",
        "DependencyNotReady",
        "dependency 'flux-system/a' is not ready",
    )
    assert (
        conditions(status_update(last, kustomization))["Ready"][2]
        == "dependency 'team/b' is not ready"
    )
    assert kustomization_status(kustomization, other, SOURCES) is None
    assert "observedGeneration" not in status_update(both, kustomization).status


def test_history_has_one_snapshot_for_each_content_and_outcome_the_newest_first() -> None:
    status: JsonObject = {}
    for digest in ("a", "a", "b", "c", "d", "e", "f", "a"):
        status = status_update(an_account(WEB, digest=digest), a_kustomization(status)).status

    history = get_mappings(status, "history")

    assert len(history) == 5
    assert len({get_text(item, "digest") for item in history}) == 5
    assert get_value(history[0], "totalReconciliations") == 1, "what is forgotten begins anew"
    again = status_update(an_account(WEB, digest="a"), a_kustomization(status)).status
    assert get_value(get_mappings(again, "history")[0], "totalReconciliations") == 2


def test_a_repeated_status_is_the_same_to_the_byte() -> None:
    first = status_update(an_account(WEB)).status
    quiet = an_account(WEB, has_operation=False, started_at=Ms(900_000), now=Ms(900_100))

    assert status_update(quiet, a_kustomization(first)).status == first


def test_a_message_that_is_too_long_for_a_condition_is_cut() -> None:
    result = status_update(an_account(WEB, result="failed", message="ä" * 40_000))

    message = conditions(result)["Ready"][2]
    assert len(message.encode()) <= 32_768
    assert message.endswith("ä...")


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (0, "0s"),
        (58, "58ms"),
        (12_300, "12.3s"),
        (300_000, "5m0s"),
        (3_600_000, "1h0m0s"),
        (3_661_500, "1h1m1.5s"),
    ],
)
def test_durations_are_written_like_go(span: int, expected: str) -> None:
    assert format_go_duration(Ms(span)) == expected


def test_a_partial_apply_is_merged_into_the_inventory() -> None:
    before: JsonObject = {"inventory": {"entries": [{"id": "shop_old_apps_Deployment", "v": "v1"}]}}
    new = ObjectProgress(ref=Ref(DEPLOYMENT, "shop", "late"), is_live=False)

    result = status_update(
        an_account(WEB, new, result="failed", message="no"), a_kustomization(before)
    )

    names = [
        get_text(entry, "id")
        for entry in get_mappings(get_mapping(result.status, "inventory"), "entries")
    ]
    assert names == ["shop_web_apps_Deployment", "shop_old_apps_Deployment"]
