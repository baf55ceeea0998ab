"""`tidegate simulate`, from outside."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, tidegate, write_unit


def test_two_engines_are_printed_in_columns(wording: RecordedWording) -> None:
    ran = tidegate("simulate", FIRST, "--engine", "tidegate,argocd")

    head, *lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stderr
    assert head.split() == ["step", "tidegate", "applies", "opens", "argocd", "applies", "opens"]
    waves = [line for line in lines if line.startswith("wave")]
    assert [len(line.split()) for line in waves] == [6] * 5
    wording(lines[-2:])


def test_events_of_several_engines_have_the_names_of_their_engines(
    wording: RecordedWording,
) -> None:
    ran = tidegate("simulate", FIRST, "--engine", "flux, argocd", "-o", "json")

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    ends = [
        (event["engine"], event["reason"])
        for event in messages
        if event["event"] == "rollout.finished"
    ]
    # Flux knows no waves: the migration runs before its database, a failed Job stays failed, and
    # Flux tries it again until the simulation is over.
    assert ends == [("flux", "stopped"), ("argocd", "passed")]
    last = next(
        item for item in messages if item["event"] == "engine.finished" and item["engine"] == "flux"
    )
    wording(last["message"])
    assert "Service default/db" in last["failures"][0]["why"][-1]
    assert "dial-fails" in last["failures"][0]["why"][-1]


def test_the_last_document_of_each_engine_has_its_outcome_and_cause() -> None:
    args = ("--ignore-waves", "--engine", "tidegate,argocd", "-o", "json")

    ran = tidegate("simulate", FIRST, *args)

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    last = {document["engine"]: document for document in messages}
    assert [item for item in messages if item["event"] == "engine.finished"] == list(last.values())
    assert (last["argocd"]["outcome"], "failures" in last["argocd"]) == ("passed", False)
    failed = last["tidegate"]
    assert (failed["outcome"], failed["duration"] // 1000) == ("failed", 18)
    assert failed["message"].startswith("Job default/migrate: ")
    (failure,) = failed["failures"]
    assert failure["name"] == "migrate"
    assert "Service default/db" in failure["why"][-1]
    assert "dial-fails" in failure["why"][-1]
    assert failure["log"] == ["dial tcp: lookup db: no endpoints"]
    assert failure["events"][-1].startswith("BackoffLimitExceeded: ")


def test_a_simulation_is_the_same_in_every_run() -> None:
    first, second = (tidegate("simulate", FIRST, "-o", "json", PYTHONHASHSEED=n) for n in "12")

    assert first.stdout == second.stdout
    assert first.stdout


def test_an_unknown_engine_is_refused_with_the_names_of_the_known_ones(
    wording: RecordedWording,
) -> None:
    ran = tidegate("simulate", FIRST, "--engine", "tidegate,spinnaker")

    assert ran.returncode == 2
    wording(ran.stderr.splitlines()[-1])
    assert ran.stdout == ""


def test_an_engine_that_does_not_gate_the_last_wave_does_not_see_it_fail(
    wording: RecordedWording,
) -> None:
    ran = tidegate("simulate", FIRST, "--ignore-waves", "--engine", "tidegate,argocd")

    assert ran.returncode == 4
    wording(line for line in ran.stdout.splitlines() if "tidegate: " in line)
    wording(line for line in ran.stdout.splitlines() if "argocd: " in line)


def test_an_object_that_the_cluster_would_reject_is_reported_with_its_location(
    wording: RecordedWording, tmp_path: Path
) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndada: {}\n"

    ran = tidegate("simulate", write_unit(tmp_path / "unit", web=text))

    assert ran.returncode == 3
    wording(line for line in ran.stdout.splitlines() if "tidegate: " in line)
    message = (
        "error[preflight.invalid]: ConfigMap default/web: dada: unknown field\n  at web.yaml:4:1\n"
    )
    assert message in ran.stderr
