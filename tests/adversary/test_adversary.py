"""The parts of the adversary: its schedule, its catalogue, its judgement and its figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.adversary.attacks import ATTACKS
from tests.adversary.edits import EDITS
from tests.adversary.history import (
    History,
    concurrent_writers,
    deletion_faults,
    find_early_writes,
    read_history,
    repeated_hooks,
)
from tests.adversary.report import format_fault, format_figures
from tests.adversary.run import PlannedTry, TryResult, run_try, schedule
from tidegate.model.k8s.objects import Json, JsonObject

NAMESPACE = "adv"
ORDER = (("deployments/web", "configmaps/next"),)
USERS = {"first": 1, "second": 2}


def a_write(second: int, user: str, name: str, *, verb: str = "patch", code: int = 200) -> Json:
    resource, _, object_name = name.partition("/")
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
        "requestURI": f"/apis/{resource}/{object_name}",
        "objectRef": {"resource": resource, "namespace": NAMESPACE, "name": object_name},
        "responseStatus": {"code": code},
    }


def a_status(second: int, image: str, *, available: int = 1) -> Json:
    status: JsonObject = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    containers: Json = [{"name": "main", "image": image}]
    body: Json = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}},
        "status": {**status, "availableReplicas": available},
    }
    entry = a_write(second, "controller", "deployments/web", verb="update")
    assert isinstance(entry, dict)
    reference = entry["objectRef"]
    assert isinstance(reference, dict)
    return {**entry, "objectRef": {**reference, "subresource": "status"}, "responseObject": body}


def a_history(directory: Path, *entries: Json) -> History:
    log = directory / "audit.log"
    log.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    return read_history(log, frozenset({NAMESPACE}))


@pytest.mark.parametrize(
    ("status", "is_early"),
    [
        (a_status(2, "main:1"), False),
        (a_status(2, "main:0"), True),
        (a_status(2, "main:1", available=0), True),
        (a_status(4, "main:1"), True),
    ],
    ids=["ready", "of another revision", "not available", "ready too late"],
)
def test_a_write_before_the_wave_before_is_ready_is_a_fault(
    tmp_path: Path, status: Json, *, is_early: bool
) -> None:
    written = (a_write(1, "first", "deployments/web"), a_write(3, "first", "configmaps/next"))

    history = a_history(tmp_path, *written, status)

    assert bool(find_early_writes(history, USERS, ORDER)) is is_early


def test_a_hook_that_ran_twice_in_a_revision_is_a_fault(tmp_path: Path) -> None:
    created = [a_write(second, "first", "jobs/hook", code=201) for second in (1, 2)]

    assert repeated_hooks(a_history(tmp_path, *created[:1]), USERS, ["jobs/hook"]) == []
    assert len(repeated_hooks(a_history(tmp_path, *created), USERS, ["jobs/hook"])) == 1


def test_a_process_that_writes_again_after_another_one_is_a_fault(tmp_path: Path) -> None:
    first, second = (a_write(at, user, "configmaps/a") for at, user in enumerate(USERS))
    later = a_write(5, "first", "configmaps/b")

    assert concurrent_writers(a_history(tmp_path, first, second), USERS) == []
    assert len(concurrent_writers(a_history(tmp_path, first, second, later), USERS)) == 1


def test_an_object_that_is_deleted_before_a_later_wave_is_a_fault(tmp_path: Path) -> None:
    names = ("configmaps/next", "deployments/web")
    right = [a_write(at, "first", name, verb="delete") for at, name in enumerate(names)]
    wrong = [a_write(at, "first", name, verb="delete") for at, name in enumerate(names[::-1])]

    assert deletion_faults(a_history(tmp_path, *right), USERS, ORDER) == []
    assert len(deletion_faults(a_history(tmp_path, *wrong), USERS, ORDER)) == 1


def test_the_catalogue_has_forty_different_edits() -> None:
    assert len({(edit.kind, edit.name) for edit in EDITS}) == len(EDITS) == 40
    assert all(edit.patch or edit.deletes for edit in EDITS)


def test_a_longer_schedule_begins_with_the_shorter_one_and_has_all_attacks() -> None:
    planned = schedule(40, seed=7)

    assert schedule(15, seed=7) == planned[:15]
    assert schedule(40, seed=8) != planned
    assert {item.attack for item in planned[:20]} == {*ATTACKS}


def test_a_fault_is_printed_with_the_arguments_that_repeat_its_try() -> None:
    planned = schedule(2, seed=7)
    good = TryResult(planned[0], 2.0, figures=Counter(kills=2))
    bad = TryResult(planned[1], 3.0, faults=("it was wrong",))

    figures = format_figures([good, bad], planned=4, seed=7)

    assert "seed 7: 2 of 4 tries; 2 kills" in figures
    assert "| all | 2 | 1 | 5 |" in figures
    assert [*format_fault(good)] == []
    assert "--seed 7 --only 2" in next(format_fault(bad))


@pytest.mark.kube
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["kill", "foreign edit"])
def test_a_try_of_an_attack_finds_no_fault(plane: ControlPlane, tmp_path: Path, name: str) -> None:
    number = 900 + [*ATTACKS].index(name)

    result = run_try(PlannedTry(number, name, 0, seed=7), plane, tmp_path)

    assert result.faults == ()
    assert result.figures.total()
