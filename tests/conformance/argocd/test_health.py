"""How an Application is, as its own status tells: the worst of what counts of it."""

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
    """Writes that the server takes from nobody."""
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
    ("body", "told"),
    [
        (a_job(), ("Degraded", CAUSE)),
        (a_job(hook="PostSync"), ("Healthy", "")),
        (a_job(ignored=True), ("Healthy", "")),
    ],
    ids=["ordinary", "hook", "ignored"],
)
def test_a_job_that_failed_counts_unless_it_is_a_hook_or_says_that_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: JsonObject, told: tuple[str, str]
) -> None:
    made = one_application(tmp_path / "platform", setting("web"), body)
    ground = namespace("shop")
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, ground, failing=["failed-job"])

    ran = cluster.sync(made.root)

    assert ran.code == 4, ran.stdout + ran.stderr
    assert health(cluster) == told


@case(62)
@pytest.mark.parametrize(
    ("missing", "told"), [(["late"], "Healthy"), (["early", "late"], "Missing")]
)
@pytest.mark.parametrize("hook", [False, True])
def test_what_is_missing_counts_where_all_is_though_a_hook_be_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: list[str],
    told: str,
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
    assert health(cluster) == (told, "")


@case(62)
@pytest.mark.parametrize(
    ("child", "told"),
    [
        ("Healthy", "Healthy"),
        ("Degraded", "Degraded"),
        ("Suspended", "Suspended"),
        ("Missing", "Healthy"),
        ("Unknown", "Healthy"),
    ],
)
def test_a_child_counts_by_its_script_and_not_where_that_says_missing_or_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str, told: str
) -> None:
    made = three_levels(tmp_path / "platform")
    red = application("red", "red")
    get_mapping(red, "metadata")["labels"] = {"told": child}
    made.put("teams/red.yaml", red)
    rule: JsonObject = {"resource.customizations.health.argoproj.io_Application": BY_LABEL}
    made.put("argocd/cm.yaml", argo_settings(rule))
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    cluster.sync(made.root)

    cause = "" if told == "Healthy" else "Caused by argoproj.io/Application:argocd/red"
    assert health(cluster, "teams") == (told, cause)
