"""What others do and what is committed while a rollout is simulated: `edits` and `commits`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    application,
    argo_settings,
    deployment,
    job,
    namespace,
    setting,
)
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject

WEB: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
LATE: Json = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "late"}
HEALS: Json = {"automated": {"selfHeal": True}}


def scaled(at: str, count: int) -> JsonObject:
    return {"effect": "change", "at": at, "object": WEB, "with": {"spec": {"replicas": count}}}


def deleted(at: str, item: Json = LATE) -> JsonObject:
    return {"effect": "delete", "at": at, "object": item}


def shop(root: Path, sync: Json, *more: JsonObject) -> Repository:
    made = Repository(root / "platform")
    made.put("apps/web.yaml", namespace("shop"), application("web", "web", sync=sync))
    hook = job("prepare", hook="PreSync")
    web = deployment("web")
    web["spec"] = {**get_mapping(web, "spec"), "replicas": 1}
    made.put("web/all.yaml", hook, web, setting("late", wave=1), *more)
    return made


def played(made: Repository, scenario: JsonObject, engine: str = "argocd") -> JsonObject:
    """How it ended."""
    file = made.root.parent / "scenario.yaml"
    file.write_bytes(msgspec.json.encode(scenario))
    args = ("--engine", engine, "-o", "json", "--offline")
    ran = tidegate("simulate", made.root, "--scenario", file, *args)
    assert ran.stdout, ran.stderr
    ending: JsonObject = json.loads(ran.stdout.splitlines()[-1])
    ending["stderr"] = ran.stderr
    ending["hooks"] = ran.stdout.count('"event":"hook.finished"')
    return ending


def drifts(ending: JsonObject) -> list[JsonObject]:
    value = ending.get("drifts", [])
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def test_drift_is_reverted_with_increasing_delays(wording: RecordedWording, tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    edits: Json = [scaled("3m", 2), scaled("3m20s", 3), scaled("3m40s", 4), deleted("10m")]

    ending = played(made, {"edits": edits})

    first, second, third, fourth = drifts(ending)
    pauses = [
        (item["attempts"], round((int(str(item["healedAt"])) - int(str(item["at"]))) / 1000))
        for item in (first, second, third, fourth)
    ]
    wording(str(item["message"]) for item in (first, fourth))
    assert pauses == [(1, 0), (2, 0), (3, 0), (4, 0)], "each is long after the one before"
    assert ending["outcome"] == "passed"
    assert ending["hooks"] == 1, "a sync that heals runs none"


def test_an_edit_right_after_a_self_heal_waits_for_the_pause(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    edits: Json = [scaled("3m", 2), scaled("3m500ms", 3), scaled("3m3s", 4)]

    ending = played(made, {"edits": edits})

    seconds = [
        (round(int(str(drift["at"])) / 1000), round(int(str(drift["healedAt"])) / 1000))
        for drift in drifts(ending)
    ]
    assert seconds == [(180, 180), (180, 182), (183, 188)], "0, 2 and 6 seconds"


@pytest.mark.parametrize(
    ("sync", "engine"),
    [
        ({"automated": {}}, "argocd"),
        ({"automated": {"enabled": False, "selfHeal": True}}, "argocd"),
        (HEALS, "tidegate"),
    ],
    ids=["no-self-heal", "not-automated", "tidegate"],
)
def test_drift_without_self_heal_stays_out_of_sync(
    wording: RecordedWording, tmp_path: Path, sync: Json, engine: str
) -> None:
    made = shop(tmp_path, sync)

    (drift,) = drifts(played(made, {"edits": [deleted("3m")]}, engine))

    assert "healed" not in drift
    wording(str(drift["notHealedReason"]))


def test_an_edit_of_a_missing_object_is_reported(tmp_path: Path) -> None:
    missing: Json = {"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "missing"}

    ending = played(shop(tmp_path, HEALS), {"edits": [deleted("3m", missing)]})

    findings = [json.loads(line) for line in str(ending["stderr"]).splitlines()]
    (edit,) = [finding for finding in findings if finding["code"] == "simulate.edit"]
    assert edit["severity"] == "warning"
    assert "Secret shop/missing" in edit["message"]
    assert " 3m " in edit["message"]


def test_the_delays_of_self_heal_follow_the_settings(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    keys = "controller.self.heal."
    result: JsonObject = {f"{keys}backoff.timeout.seconds": "0", f"{keys}timeout.seconds": "30"}
    params = argo_settings(result)
    params["metadata"] = {"name": "argocd-cmd-params-cm", "namespace": "argocd"}
    made.put("argocd/params.yaml", params)

    (drift,) = drifts(played(made, {"edits": [scaled("25s", 2)]}))

    assert int(str(drift["healedAt"])) - int(str(drift["at"])) > 5_000, "30 seconds after its sync"


@pytest.mark.parametrize("refresh", [True, False])
def test_a_retry_with_refresh_uses_the_latest_commit(tmp_path: Path, *, refresh: bool) -> None:
    retry: Json = {"limit": 3, "refresh": refresh}
    made = shop(tmp_path, {"automated": {}, "retry": retry}, job("red", wave=-1))
    fixed = Repository(tmp_path / "fixed")
    fixed.put("web/all.yaml", deployment("web"), setting("late", wave=1))
    commits: Json = [{"at": "20s", "files": "fixed"}]
    behaviours: Json = [{"effect": "fails", "when": {"kind": "Job", "name": "red"}}]

    ending = played(made, {"commits": commits, "behaviours": behaviours})

    assert ending["outcome"] == ("passed" if refresh else "failed")


def test_a_commit_of_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    file = tmp_path / "scenario.yaml"
    file.write_text("commits: [{at: 1m, files: nowhere}]\n")

    ran = tidegate("simulate", made.root, "--scenario", file, "--offline")

    assert ran.returncode == 3
    assert "error[scenario.commit]" in ran.stderr
    assert "nowhere`" in ran.stderr
