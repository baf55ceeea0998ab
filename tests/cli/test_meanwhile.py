"""What others do and what is committed while a rollout is simulated: `edits` and `commits`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

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
    words = ("--engine", engine, "-o", "json", "--offline")
    ran = tidegate("simulate", made.root, "--scenario", file, *words)
    assert ran.stdout, ran.stderr
    ending: JsonObject = json.loads(ran.stdout.splitlines()[-1])
    ending["told"] = ran.stderr
    ending["hooks"] = ran.stdout.count('"event":"hook.finished"')
    return ending


def drifts(ending: JsonObject) -> list[JsonObject]:
    value = ending.get("drifts", [])
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def test_what_others_change_is_put_back_with_pauses_that_grow(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    edits: Json = [scaled("3m", 2), scaled("3m20s", 3), scaled("3m40s", 4), deleted("10m")]

    ending = played(made, {"edits": edits})

    first, second, third, fourth = drifts(ending)
    pauses = [
        (item["attempts"], round((int(str(item["healed"])) - int(str(item["at"]))) / 1000))
        for item in (first, second, third, fourth)
    ]
    assert [item["message"] for item in (first, fourth)] == [
        "was changed by somebody: `spec.replicas`",
        "was deleted",
    ]
    assert pauses == [(1, 0), (2, 0), (3, 0), (4, 0)], "each comes long after the one before"
    assert ending["outcome"] == "passed"
    assert ending["hooks"] == 1, "a sync that heals runs none"


def test_an_edit_right_behind_a_sync_that_healed_waits_for_its_pause(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    edits: Json = [scaled("3m", 2), scaled("3m500ms", 3), scaled("3m3s", 4)]

    ending = played(made, {"edits": edits})

    seconds = [
        (round(int(str(drift["at"])) / 1000), round(int(str(drift["healed"])) / 1000))
        for drift in drifts(ending)
    ]
    assert seconds == [(180, 180), (180, 182), (183, 188)], "0, 2 and 6 seconds"


@pytest.mark.parametrize(
    ("sync", "engine", "why"),
    [
        ({"automated": {}}, "argocd", "`selfHeal` is off"),
        ({"automated": {"enabled": False, "selfHeal": True}}, "argocd", "syncs the unit by itself"),
        (HEALS, "tidegate", "nobody puts it back before the next rollout"),
    ],
)
def test_what_nobody_heals_stays_out_of_sync(
    tmp_path: Path, sync: Json, engine: str, why: str
) -> None:
    made = shop(tmp_path, sync)

    (drift,) = drifts(played(made, {"edits": [deleted("3m")]}, engine))

    assert "healed" not in drift
    assert why in str(drift["stays"])


def test_an_edit_that_comes_to_nothing_is_told(tmp_path: Path) -> None:
    nobody: Json = {"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "nobody"}

    ending = played(shop(tmp_path, HEALS), {"edits": [deleted("3m", nobody)]})

    assert "the edit of Secret shop/nobody at 3m came to nothing" in str(ending["told"])


def test_the_pauses_of_healing_are_those_that_the_controller_is_told(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    keys = "controller.self.heal."
    result: JsonObject = {f"{keys}backoff.timeout.seconds": "0", f"{keys}timeout.seconds": "30"}
    params = argo_settings(result)
    params["metadata"] = {"name": "argocd-cmd-params-cm", "namespace": "argocd"}
    made.put("argocd/params.yaml", params)

    (drift,) = drifts(played(made, {"edits": [scaled("25s", 2)]}))

    assert int(str(drift["healed"])) - int(str(drift["at"])) > 5_000, "30 seconds behind its sync"


@pytest.mark.parametrize("refresh", [True, False])
def test_a_retry_takes_what_was_committed_meanwhile_where_it_refreshes(
    tmp_path: Path, *, refresh: bool
) -> None:
    retry: Json = {"limit": 3, "refresh": refresh}
    made = shop(tmp_path, {"automated": {}, "retry": retry}, job("red", wave=-1))
    mended = Repository(tmp_path / "mended")
    mended.put("web/all.yaml", deployment("web"), setting("late", wave=1))
    commits: Json = [{"at": "20s", "files": "mended"}]
    behaviours: Json = [{"effect": "fails", "when": {"kind": "Job", "name": "red"}}]

    ending = played(made, {"commits": commits, "behaviours": behaviours})

    assert ending["outcome"] == ("passed" if refresh else "failed")


def test_a_commit_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    made = shop(tmp_path, HEALS)
    file = tmp_path / "scenario.yaml"
    file.write_text("commits: [{at: 1m, files: nowhere}]\n")

    ran = tidegate("simulate", made.root, "--scenario", file, "--offline")

    assert ran.returncode == 3
    assert "error[scenario.commit]" in ran.stderr
    assert "is not a directory" in ran.stderr
