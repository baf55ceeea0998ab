"""Health of an Application in its status: that of its least healthy relevant object."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.argocd.stage import case
from tests.support.persistent_sandbox import APPLICATION, PersistentSandbox
from tests.support.repositories import (
    Repository,
    application,
    argo_settings,
    job,
    namespace,
    setting,
    three_levels,
)
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject

IGNORED = "argocd.argoproj.io/ignore-healthcheck"
CAUSE = "Caused by batch/Job:shop/failed-job"
BY_LABEL = "return {status = (obj.metadata.labels or {}).told or 'Healthy'}"


def health(cluster: PersistentSandbox, name: str = "web") -> tuple[str, str]:
    mapping = get_mapping(cluster.all(APPLICATION, "argocd")[name], "status", "health")
    return get_text(mapping, "status"), get_text(mapping, "message")


def refused(*names: str) -> list[Json]:
    """Faults that reject every apply of these objects."""
    return [{"effect": "conflict", "when": {"verb": "apply", "name": name}} for name in names]


def one_application(root: Path, *objects: JsonObject) -> Repository:
    made = Repository(root)
    made.put("bootstrap/root.yaml", application("root", "apps", into="argocd"))
    made.put("apps/web.yaml", application("web", "web"))
    made.put("web/all.yaml", *objects)
    return made


def a_job(*, hook: str = "", ignored: bool = False) -> JsonObject:
    made = job("failed-job", hook=hook)
    if ignored:
        get_mapping(made, "metadata")["annotations"] = {IGNORED: "true"}
    return made


@case(62)
@pytest.mark.parametrize(
    ("body", "expected_health"),
    [
        (a_job(), ("Degraded", CAUSE)),
        (a_job(hook="PostSync"), ("Healthy", "")),
        (a_job(ignored=True), ("Healthy", "")),
    ],
    ids=["ordinary", "hook", "ignored"],
)
def test_a_failed_job_degrades_the_application_unless_it_is_a_hook_or_ignored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: JsonObject,
    expected_health: tuple[str, str],
) -> None:
    made = one_application(tmp_path / "platform", setting("web"), body)
    ground = namespace("shop")
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, ground, failing=["failed-job"])

    ran = cluster.sync(made.root)

    assert ran.code == 4, ran.stdout + ran.stderr
    assert health(cluster) == expected_health


@case(62)
@pytest.mark.parametrize(
    ("missing", "expected_health"), [(["late"], "Healthy"), (["early", "late"], "Missing")]
)
@pytest.mark.parametrize("hook", [False, True])
def test_the_application_is_missing_if_all_its_objects_but_hooks_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: list[str],
    expected_health: str,
    *,
    hook: bool,
) -> None:
    hooks = [setting("before", hook="PreSync")] if hook else []
    objects = (*hooks, setting("early"), setting("late", wave=1))
    made = one_application(tmp_path / "platform", *objects)
    faults = refused(*missing)
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), faults=faults)

    ran = cluster.sync(made.root)

    assert ran.code == 4, ran.stdout + ran.stderr
    assert health(cluster) == (expected_health, "")


@case(62)
@pytest.mark.parametrize(
    ("child", "expected_health"),
    [
        ("Healthy", "Healthy"),
        ("Degraded", "Degraded"),
        ("Suspended", "Suspended"),
        ("Missing", "Healthy"),
        ("Unknown", "Healthy"),
    ],
)
def test_the_health_of_a_child_application_counts_unless_missing_or_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str, expected_health: str
) -> None:
    made = three_levels(tmp_path / "platform")
    red = application("red", "red")
    get_mapping(red, "metadata")["labels"] = {"told": child}
    made.put("teams/red.yaml", red)
    rule: JsonObject = {"resource.customizations.health.argoproj.io_Application": BY_LABEL}
    made.put("argocd/cm.yaml", argo_settings(rule))
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    cluster.sync(made.root)

    cause = "" if expected_health == "Healthy" else "Caused by argoproj.io/Application:argocd/red"
    assert health(cluster, "teams") == (expected_health, cause)
