"""What a set says of itself and of its Applications, where its kind is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kept_sandbox import KeptSandbox, definition
from tests.support.repositories import Repository
from tests.support.set_fleets import NAMES, STEPS, SetRepository
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Kind

SET = Kind("argoproj.io", "v1alpha1", "ApplicationSet")
SETS = definition(SET, "applicationsets", status=True)
APPROVE = ("--approve", "c1", "--approve", "c2")


class Told:
    """A cluster with the kinds of Argo CD, and what the set there says."""

    def __init__(
        self, root: Path, patch: pytest.MonkeyPatch, *, rolls: bool = True, failing: str = ""
    ) -> None:
        jobs = [f"{failing}-smoke"] if failing else []
        self.cluster = KeptSandbox.make(root, patch, SETS, failing=jobs)
        self.sets = SetRepository(Repository(root / "platform"), rolls=rolls)
        self.sets.write()
        if failing:
            self.sets.fail(failing)

    def sync(self) -> int:
        return self.cluster.sync(self.sets.repository.root, *APPROVE).code

    @property
    def status(self) -> dict[str, object]:
        return {**get_mapping(self.cluster.all(SET, "argocd")["apps"], "status")}

    @property
    def conditions(self) -> dict[str, tuple[str, str]]:
        told = get_mappings(
            get_mapping(self.cluster.all(SET, "argocd")["apps"], "status"), "conditions"
        )
        return {
            get_text(one, "type"): (get_text(one, "status"), get_text(one, "reason"))
            for one in told
        }

    @property
    def steps(self) -> dict[str, tuple[str, str]]:
        """By Application, its step and its state."""
        status = get_mapping(self.cluster.all(SET, "argocd")["apps"], "status")
        return {
            get_text(one, "application"): (get_text(one, "step"), get_text(one, "status"))
            for one in get_mappings(status, "applicationStatus")
        }


UP_TO_DATE = {
    "ErrorOccurred": ("False", "ApplicationSetUpToDate"),
    "ParametersGenerated": ("True", "ParametersGenerated"),
    "ResourcesUpToDate": ("True", "ApplicationSetUpToDate"),
}


@pytest.mark.parametrize("rolls", [False, True])
def test_a_set_whose_applications_are_well_says_so_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rolls: bool
) -> None:
    told = Told(tmp_path, monkeypatch, rolls=rolls)

    assert told.sync() == 0
    complete = ("False", "ApplicationSetRolloutComplete")
    steps = {
        "RolloutProgressing": complete,
        "InvalidRolloutConfig": ("False", "ApplicationSetValidRolloutConfig"),
    }
    assert told.conditions == {**UP_TO_DATE, **(steps if rolls else {})}
    status = get_mapping(told.cluster.all(SET, "argocd")["apps"], "status")
    assert get_text(status, "health", "status") == "Healthy"
    assert get_value(status, "resourcesCount") == len(NAMES)
    resources = get_mappings(status, "resources")
    assert [get_text(one, "name") for one in resources] == sorted(NAMES)
    assert {get_text(one, "status") for one in resources} == {"Synced"}
    assert {get_text(one, "health", "status") for one in resources} == {"Healthy"}
    members = {name: (number, "Healthy") for number, names in STEPS.items() for name in names}
    assert told.steps == (members if rolls else {})
    revisions = [
        get_list(one, "targetRevisions") for one in get_mappings(status, "applicationStatus")
    ]
    assert all(len(one) == 1 for one in revisions)


def test_a_second_run_says_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(tmp_path, monkeypatch)
    first = told.sync()
    before = told.cluster.versions(SET, "argocd")

    again = told.sync()

    assert (first, again) == (0, 0)
    assert told.cluster.versions(SET, "argocd") == before


def test_a_step_that_fails_is_told_with_all_that_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch, failing="b2")

    failed = told.sync()

    states = {name: state for name, (_, state) in told.steps.items()}
    assert failed == 4
    assert told.conditions["RolloutProgressing"] == ("True", "ApplicationSetModified")
    status = get_mapping(told.cluster.all(SET, "argocd")["apps"], "status")
    assert (get_text(status, "health", "status"), get_text(status, "health", "message")) == (
        "Progressing",
        "ApplicationSet is performing rollout of step 2",
    )
    assert {states[name] for name in STEPS["1"]} == {"Healthy"}
    assert states["b2"] == "Progressing"
    assert {states[name] for number in "34" for name in STEPS[number]} == {"Waiting"}
    told.sets.mend("b2")
    assert told.sync() == 0
    assert {state for _, state in told.steps.values()} == {"Healthy"}
    assert told.conditions["RolloutProgressing"] == ("False", "ApplicationSetRolloutComplete")


def test_an_application_in_no_step_is_told_and_steps_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, monkeypatch)
    told.sets.describe("a1", "9")

    told.sync()

    assert told.steps["a1"][0] == "-1"
    assert told.conditions["InvalidRolloutConfig"] == ("True", "ApplicationSetInvalidRolloutConfig")
