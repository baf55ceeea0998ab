"""The status of an Application, by the rules of Argo CD."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.dialect.argo.status.application import (
    aggregate_health,
    application_status,
    sync_status,
)
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.progress import (
    ObjectProgress,
    ObjectResult,
    SourceRevision,
    UnitPhase,
    UnitProgress,
)
from tidegate.model.times import Ms
from tidegate.model.units.source import Revision
from tidegate.model.units.unit import UnitId

OWN = UnitId("Application", "", "argocd", "shop")
DEPLOYMENT, CONFIG = Kind("apps", "v1", "Deployment"), Kind("", "v1", "ConfigMap")
CHILD = Kind("argoproj.io", "v1alpha1", "Application")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCES = (SourceRevision(Revision("main", f"sha1:{COMMIT}"), "Helm"),)


def an_object(name: str = "web", kind: Kind = DEPLOYMENT, **more: object) -> ObjectProgress:
    """A live object that is in sync, apart from the given fields."""
    notes = more.pop("notes", None)
    body = msgspec.json.encode({"metadata": {"annotations": notes}})
    usual: dict[str, object] = {"in_sync": True, "is_live": True, "body": body}
    return ObjectProgress(ref=Ref(kind, "shop", name), **(usual | more))  # type: ignore[arg-type]


def an_account(*objects: ObjectProgress, **more: object) -> UnitProgress:
    usual: dict[str, object] = {
        "phase": UnitPhase.FINISHED,
        "result": "passed",
        "has_operation": True,
    }
    times: dict[str, object] = {"started_at": Ms(60_000), "now": Ms(90_000)}
    return UnitProgress(unit=OWN, objects=objects, **(usual | times | more))  # type: ignore[arg-type]


def an_application(**more: Json) -> JsonObject:
    spec: JsonObject = {
        "source": {"repoURL": "https://example.org/shop.git", "path": "shop"},
        "destination": {"name": "in-cluster", "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": True}},
    }
    return {"kind": "Application", "metadata": {"name": "shop"}, "spec": spec, **more}


def status_of(account: UnitProgress, resource: JsonObject | None = None) -> JsonObject:
    result = application_status(resource or an_application(), account, SOURCES)
    assert result is not None
    return result.status


@pytest.mark.parametrize(
    ("objects", "health", "message"),
    [
        ([], Health.HEALTHY, ""),
        ([an_object(is_hook=True, is_live=False)], Health.HEALTHY, ""),
        ([an_object(is_live=False), an_object("b", is_live=False)], Health.MISSING, ""),
        ([an_object(health=Health.HEALTHY), an_object("b", is_live=False)], Health.HEALTHY, ""),
        ([an_object(health=None)], Health.HEALTHY, ""),
        (
            [an_object(health=Health.PROGRESSING), an_object("b", health=Health.DEGRADED)],
            Health.DEGRADED,
            "Caused by apps/Deployment:shop/b",
        ),
        (
            [an_object(health=Health.SUSPENDED), an_object("b", health=Health.PROGRESSING)],
            Health.PROGRESSING,
            "Caused by apps/Deployment:shop/b",
        ),
        ([an_object(health=Health.MISSING)], Health.MISSING, "Caused by apps/Deployment:shop/web"),
        (
            [an_object(kind=CONFIG, health=Health.DEGRADED)],
            Health.DEGRADED,
            "Caused by /ConfigMap:shop/web",
        ),
        (
            [an_object(name, health=Health.DEGRADED) for name in "abcde"],
            Health.DEGRADED,
            f"Caused by {', '.join(f'apps/Deployment:shop/{name}' for name in 'abc')} and 2 more",
        ),
        (
            [
                an_object(
                    health=Health.DEGRADED,
                    notes={"argocd.argoproj.io/ignore-healthcheck": "true"},
                )
            ],
            Health.HEALTHY,
            "",
        ),
        ([an_object(is_hook=True, health=Health.DEGRADED)], Health.HEALTHY, ""),
        ([an_object("c", CHILD, health=Health.UNKNOWN)], Health.HEALTHY, ""),
        ([an_object("c", CHILD, health=Health.MISSING)], Health.HEALTHY, ""),
        (
            [an_object("c", CHILD, health=Health.DEGRADED)],
            Health.DEGRADED,
            "Caused by argoproj.io/Application:shop/c",
        ),
    ],
)
def test_the_health_of_an_application_is_the_worst_of_its_objects(
    objects: list[ObjectProgress], health: Health, message: str
) -> None:
    assert aggregate_health(an_account(*objects)) == (health, message)


def test_an_application_that_contains_itself_does_not_count_itself() -> None:
    itself = msgspec.structs.replace(
        an_object("shop", CHILD, health=Health.DEGRADED), ref=Ref(CHILD, "argocd", "shop")
    )

    assert aggregate_health(an_account(itself))[0] is Health.HEALTHY


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        ([], "Synced"),
        ([an_object()], "Synced"),
        ([an_object(), an_object("b", in_sync=False)], "OutOfSync"),
        ([an_object(is_hook=True, in_sync=False)], "Synced"),
        ([an_object(is_desired=False, in_sync=False)], "OutOfSync"),
        ([an_object(is_desired=False, in_sync=False, is_live=False)], "Synced"),
        (
            [
                an_object(
                    is_desired=False,
                    in_sync=False,
                    notes={"argocd.argoproj.io/compare-options": "IgnoreExtraneous"},
                )
            ],
            "Synced",
        ),
    ],
)
def test_an_application_is_synced_if_all_that_counts_is(
    objects: list[ObjectProgress], status: str
) -> None:
    assert sync_status(an_account(*objects)) == status


def test_history_grows_with_each_success_up_to_its_limit_and_counts_on() -> None:
    application = an_application()
    application["spec"] = {**get_mapping(application, "spec"), "revisionHistoryLimit": 2}
    for _ in range(4):
        application["status"] = status_of(an_account(an_object()), application)

    assert [get_value(item, "id") for item in get_mappings(application, "status", "history")] == [
        2,
        3,
    ]
    failed = status_of(an_account(an_object(), result="failed", message="no"), application)
    assert get_mappings(failed, "history") == get_mappings(application, "status", "history")


def test_a_wait_for_hooks_and_objects_names_a_hook_first() -> None:
    objects = (
        an_object("a", is_awaited=True, result=ObjectResult.CREATED),
        an_object(
            "prepare", Kind("batch", "v1", "Job"), is_hook=True, is_awaited=True, phase="presync"
        ),
        an_object("b", is_awaited=True),
    )

    running = status_of(an_account(*objects, phase=UnitPhase.RUNNING, result=""))
    state = get_mapping(running, "operationState")

    assert (get_text(state, "phase"), get_value(state, "finishedAt")) == ("Running", None)
    assert get_text(state, "message") == (
        "waiting for completion of hook batch/Job/prepare and 2 more resources"
    )
    only = status_of(an_account(objects[0], phase=UnitPhase.RUNNING, result=""))
    assert get_text(only, "operationState", "message") == (
        "waiting for healthy state of apps/Deployment/a"
    )


def test_a_status_without_an_operation_leaves_the_last_operation_alone() -> None:
    before = status_of(an_account(an_object(result=ObjectResult.CREATED)))
    application = an_application(status=before)

    after = status_of(an_account(an_object(), has_operation=False, now=Ms(900_000)), application)

    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"reconciledAt"}


def test_an_unfinished_operation_is_finished_when_everything_is_done() -> None:
    running = status_of(an_account(an_object(is_awaited=True), phase=UnitPhase.RUNNING, result=""))
    application = an_application(status=running)

    after = status_of(an_account(an_object(), has_operation=False, now=Ms(900_000)), application)

    state = get_mapping(after, "operationState")
    assert get_text(state, "phase") == "Succeeded"
    assert get_text(state, "startedAt") == get_text(running, "operationState", "startedAt")
    assert get_text(state, "finishedAt") == "1970-01-01T00:15:00Z"


def test_several_sources_have_a_revision_each() -> None:
    application = an_application()
    spec = get_mapping(application, "spec")
    chart: Json = {"repoURL": "https://example.org/charts", "chart": "shop"}
    application["spec"] = {"destination": spec["destination"], "sources": [chart, spec["source"]]}
    sources = (SourceRevision(Revision("1.2.3", "sha256:00"), "Helm"), *SOURCES)

    result = application_status(application, an_account(an_object()), sources)

    assert result is not None
    assert get_value(result.status, "sync", "revisions") == ["1.2.3", COMMIT]
    assert get_value(result.status, "sourceTypes") == ["Helm", "Helm"]
    assert "revision" not in get_mapping(result.status, "sync")


def test_a_time_changes_only_with_the_state_it_belongs_to() -> None:
    first = status_of(an_account(an_object(health=Health.HEALTHY)))
    later = an_account(an_object(health=Health.HEALTHY), now=Ms(900_000))
    worse = an_account(an_object(health=Health.DEGRADED), now=Ms(900_000))
    application = an_application(status=first)

    assert get_value(status_of(later, application), "health") == get_value(first, "health")
    assert (
        get_text(status_of(worse, application), "health", "lastTransitionTime")
        == "1970-01-01T00:15:00Z"
    )
