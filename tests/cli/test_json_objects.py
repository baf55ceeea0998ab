"""The JSON of an object is the same in a plan, a rollout, a simulation and a record."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.in_process_cli import type_in
from tests.support.recorded_wording import RecordedWording
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import FIRST, write_unit
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
    written = [event for event in events if str(event.get("event")).startswith("object.written")]
    return sorted(tuple(item.get(name) for name in NAMES) for item in written)


def test_an_object_has_the_same_json_keys_in_every_command(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"

    (plan,) = documents(type_in("plan", FIRST, "-o", "json").stdout)
    synced = type_in("sync", FIRST, "--sandbox", "-o", "json", "--record", record)
    simulated = type_in("simulate", FIRST, "-o", "json")

    expected = sorted(
        tuple(item.get(name) for name in NAMES) for item in get_mappings(plan, "objects")
    )
    assert len(expected) == 10
    assert done(documents(synced.stdout)) == expected
    assert done(documents(simulated.stdout)) == expected
    head, *events = documents(record.read_text())
    assert done(events) == expected
    named = [
        (step["unit"], step["id"], *(item.get(name) for name in NAMES[2:6]))
        for step in get_mappings(head, "steps")
        for item in get_mappings(step, "objects")
    ]
    assert sorted(named) == [item[:6] for item in expected]


def test_the_first_event_contains_the_format_version() -> None:
    version = json.loads(type_in("version", "-o", "json").stdout)["json"]

    for args in (("sync", FIRST, "--sandbox"), ("simulate", FIRST)):
        first = documents(type_in(*args, "-o", "json").stdout)[0]
        assert (first["event"], first["version"]) == ("rollout.started", version)


async def test_the_changed_fields_of_a_rollout_equal_those_of_its_plan(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", web=SETTINGS % "blue", login=LOGIN % "first-one")
    async with served_cluster(tmp_path) as cluster:
        await cluster.roll_out("sync", unit, "--yes")
        write_unit(unit, web=SETTINGS % "green", login=LOGIN % "second-one")

        planned = await cluster.run("plan", unit, "--context", "tidegate-sandbox", "-o", "json")
        synced = await cluster.roll_out("sync", unit, "--yes", "-o", "json")
        again = await cluster.roll_out("sync", unit, "--yes", "-o", "json")

    (plan,) = documents(planned.stdout)
    expected = {
        item["name"]: (item["operation"], item["fields"]) for item in get_mappings(plan, "objects")
    }
    events = documents(synced.stdout)
    written = [event for event in events if event["event"] == "object.written"]
    assert {item["name"]: (item["operation"], item["fields"]) for item in written} == expected
    assert expected["web"] == (
        "change",
        [{"path": "data.colour", "before": "blue", "after": "green"}],
    )
    assert "-one" not in synced.stdout
    assert "***" in synced.stdout
    kept = [
        document for document in documents(again.stdout) if document["event"] == "object.unchanged"
    ]
    assert {item["operation"] for item in kept} <= {"keep"}


def test_a_rollout_that_times_out_ends_with_the_cause_the_log_and_events(
    wording: RecordedWording, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", job=JOB)
    scenario = write_unit(tmp_path, scenario=SLOW) / "scenario.yaml"
    args = ("sync", unit, "--sandbox", "--scenario", scenario, "--timeout", "30s")

    result = type_in(*args, "-o", "json", "--logs", "--record", tmp_path / "run.jsonl")
    shown = type_in(*args)

    last = documents(result.stdout)[-1]
    assert (result.code, shown.code) == (8, 8), result.stderr
    assert (last["event"], last["outcome"]) == ("rollout.explained", "timed-out")
    (failure,) = get_mappings(last, "failures")
    assert (failure["kind"], failure["name"]) == ("Job", "migrate")
    wording(str(get_list(failure, "why")[0]))
    assert failure["log"] == ["still at it"]
    assert str(get_list(failure, "events")[0]).startswith("SuccessfulCreate: ")
    assert documents((tmp_path / "run.jsonl").read_text())[-1] == last
    about = [document for document in documents(result.stdout) if "name" in document]
    assert {(item["unit"], item["step"]) for item in about} == {("default/unit", STEP)}
    assert "log.line" in {item["event"] for item in about}
    assert "  log      still at it" in shown.lines
