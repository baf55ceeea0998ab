"""What a program reads of an object is the same in a plan, a rollout, a simulation and a record."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import FIRST, write_unit
from tests.support.typed import type_in
from tidegate.model.k8s.json_fields import get_list, get_mappings
from tidegate.model.k8s.objects import Json

NAMES = ("unit", "step", "apiVersion", "kind", "namespace", "name", "operation")
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {colour: %s}\n"
LOGIN = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: %s}\n"
SLOW = (
    "behaviours: [{effect: slow, by: 9m, when: {kind: Job}}, "
    "{effect: prints, lines: [still at it]}]\n"
)
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec:\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      containers: [{name: main, image: shop/migrate}]\n"
)
STEP = "default/unit/sync/0"
Documents = list[dict[str, Json]]


def documents(text: str) -> Documents:
    return [json.loads(line) for line in text.splitlines()]


def done(events: Documents) -> list[tuple[Json, ...]]:
    """What was done to which object, of which step."""
    written = [one for one in events if str(one.get("event")).startswith("object.written")]
    return sorted(tuple(one.get(name) for name in NAMES) for one in written)


def test_an_object_goes_by_the_same_keys_in_every_verb(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"

    (plan,) = documents(type_in("plan", FIRST, "-o", "json").stdout)
    synced = type_in("sync", FIRST, "--sandbox", "-o", "json", "--record", record)
    simulated = type_in("simulate", FIRST, "-o", "json")

    wanted = sorted(tuple(one.get(name) for name in NAMES) for one in get_mappings(plan, "objects"))
    assert len(wanted) == 10
    assert done(documents(synced.stdout)) == wanted
    assert done(documents(simulated.stdout)) == wanted
    head, *events = documents(record.read_text())
    assert done(events) == wanted
    named = [
        (step["unit"], step["id"], *(one.get(name) for name in NAMES[2:6]))
        for step in get_mappings(head, "steps")
        for one in get_mappings(step, "objects")
    ]
    assert sorted(named) == [one[:6] for one in wanted]


def test_the_first_event_says_the_version_of_all() -> None:
    version = json.loads(type_in("version", "-o", "json").stdout)["json"]

    for words in (("sync", FIRST, "--sandbox"), ("simulate", FIRST)):
        first = documents(type_in(*words, "-o", "json").stdout)[0]
        assert (first["event"], first["version"]) == ("rollout.begun", version)


async def test_fields_that_a_rollout_changes_are_those_of_its_plan(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", web=SETTINGS % "blue", login=LOGIN % "first-one")
    async with served_cluster(tmp_path) as cluster:
        await cluster.roll_out("sync", unit, "--yes")
        write_unit(unit, web=SETTINGS % "green", login=LOGIN % "second-one")

        planned = await cluster.run("plan", unit, "--context", "tidegate-sandbox", "-o", "json")
        synced = await cluster.roll_out("sync", unit, "--yes", "-o", "json")
        again = await cluster.roll_out("sync", unit, "--yes", "-o", "json")

    (plan,) = documents(planned.stdout)
    wanted = {
        one["name"]: (one["operation"], one["fields"]) for one in get_mappings(plan, "objects")
    }
    events = documents(synced.stdout)
    written = [one for one in events if one["event"] == "object.written"]
    assert {one["name"]: (one["operation"], one["fields"]) for one in written} == wanted
    assert wanted["web"] == (
        "change",
        [{"path": "data.colour", "before": "blue", "after": "green"}],
    )
    assert "-one" not in synced.stdout
    assert "***" in synced.stdout
    kept = [one for one in documents(again.stdout) if one["event"] == "object.unchanged"]
    assert {one["operation"] for one in kept} <= {"keep"}


def test_a_rollout_whose_time_is_over_ends_with_why_its_log_and_its_events(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", job=JOB)
    scenario = write_unit(tmp_path, scenario=SLOW) / "scenario.yaml"
    words = ("sync", unit, "--sandbox", "--scenario", scenario, "--timeout", "30s")

    told = type_in(*words, "-o", "json", "--logs", "--record", tmp_path / "run.jsonl")
    shown = type_in(*words)

    last = documents(told.stdout)[-1]
    assert (told.code, shown.code) == (8, 8), told.stderr
    assert (last["event"], last["outcome"]) == ("rollout.explained", "late")
    (failure,) = get_mappings(last, "failures")
    assert (failure["kind"], failure["name"]) == ("Job", "migrate")
    assert get_list(failure, "why")[0] == "0 of 1 pods have succeeded, 1 is active"
    assert failure["log"] == ["still at it"]
    assert str(get_list(failure, "events")[0]).startswith("SuccessfulCreate: ")
    assert documents((tmp_path / "run.jsonl").read_text())[-1] == last
    about = [one for one in documents(told.stdout) if "name" in one]
    assert {(one["unit"], one["step"]) for one in about} == {("default/unit", STEP)}
    assert "log.printed" in {one["event"] for one in about}
    assert "  log      still at it" in shown.lines
