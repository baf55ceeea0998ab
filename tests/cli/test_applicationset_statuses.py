"""Statuses of ApplicationSets and their Applications, where the kind is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.appset_repository import NAMES, STEPS, SetRepository
from tests.support.persistent_sandbox import PersistentSandbox, definition
from tests.support.repositories import Repository
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Kind

SET = Kind("argoproj.io", "v1alpha1", "ApplicationSet")
SETS = definition(SET, "applicationsets", status=True)
APPROVE = ("--approve", "c1", "--approve", "c2")


class SetStatuses:
    """A cluster with the kinds of Argo CD, and what the set there says."""

    def __init__(
        self, root: Path, patch: pytest.MonkeyPatch, *, rolls: bool = True, failing: str = ""
    ) -> None:
        jobs = [f"{failing}-smoke"] if failing else []
        self.cluster = PersistentSandbox.make(root, patch, SETS, failing=jobs)
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
        mappings = get_mappings(
            get_mapping(self.cluster.all(SET, "argocd")["apps"], "status"), "conditions"
        )
        return {
            get_text(item, "type"): (get_text(item, "status"), get_text(item, "reason"))
            for item in mappings
        }

    @property
    def steps(self) -> dict[str, tuple[str, str]]:
        """By Application, its step and its state."""
        status = get_mapping(self.cluster.all(SET, "argocd")["apps"], "status")
        return {
            get_text(application_status, "application"): (
                get_text(application_status, "step"),
                get_text(application_status, "status"),
            )
            for application_status in get_mappings(status, "applicationStatus")
        }


UP_TO_DATE = {
    "ErrorOccurred": ("False", "ApplicationSetUpToDate"),
    "ParametersGenerated": ("True", "ParametersGenerated"),
    "ResourcesUpToDate": ("True", "ApplicationSetUpToDate"),
}


@pytest.mark.parametrize("rolls", [False, True])
def test_the_status_of_an_appset_lists_each_healthy_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, rolls: bool
) -> None:
    result = SetStatuses(tmp_path, monkeypatch, rolls=rolls)

    assert result.sync() == 0
    complete = ("False", "ApplicationSetRolloutComplete")
    steps = {
        "RolloutProgressing": complete,
        "InvalidRolloutConfig": ("False", "ApplicationSetValidRolloutConfig"),
    }
    assert result.conditions == {**UP_TO_DATE, **(steps if rolls else {})}
    status = get_mapping(result.cluster.all(SET, "argocd")["apps"], "status")
    assert get_text(status, "health", "status") == "Healthy"
    assert get_value(status, "resourcesCount") == len(NAMES)
    resources = get_mappings(status, "resources")
    assert [get_text(resource, "name") for resource in resources] == sorted(NAMES)
    assert {get_text(resource, "status") for resource in resources} == {"Synced"}
    assert {get_text(resource, "health", "status") for resource in resources} == {"Healthy"}
    members = {name: (number, "Healthy") for number, names in STEPS.items() for name in names}
    assert result.steps == (members if rolls else {})
    revisions = [
        get_list(application_status, "targetRevisions")
        for application_status in get_mappings(status, "applicationStatus")
    ]
    assert all(len(revision) == 1 for revision in revisions)


def test_a_second_run_writes_the_same_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = SetStatuses(tmp_path, monkeypatch)
    first = result.sync()
    before = result.cluster.versions(SET, "argocd")

    again = result.sync()

    assert (first, again) == (0, 0)
    assert result.cluster.versions(SET, "argocd") == before


def test_a_step_that_fails_is_reported_with_all_that_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = SetStatuses(tmp_path, monkeypatch, failing="b2")

    failed = result.sync()

    states = {name: state for name, (_, state) in result.steps.items()}
    assert failed == 4
    assert result.conditions["RolloutProgressing"] == ("True", "ApplicationSetModified")
    status = get_mapping(result.cluster.all(SET, "argocd")["apps"], "status")
    assert (get_text(status, "health", "status"), get_text(status, "health", "message")) == (
        "Progressing",
        "ApplicationSet is performing rollout of step 2",
    )
    assert {states[name] for name in STEPS["1"]} == {"Healthy"}
    assert states["b2"] == "Progressing"
    assert {states[name] for number in "34" for name in STEPS[number]} == {"Waiting"}
    result.sets.fix("b2")
    assert result.sync() == 0
    assert {state for _, state in result.steps.values()} == {"Healthy"}
    assert result.conditions["RolloutProgressing"] == ("False", "ApplicationSetRolloutComplete")


def test_an_application_in_no_step_is_reported_and_steps_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = SetStatuses(tmp_path, monkeypatch)
    result.sets.describe("a1", "9")

    result.sync()

    assert result.steps["a1"][0] == "-1"
    assert result.conditions["InvalidRolloutConfig"] == (
        "True",
        "ApplicationSetInvalidRolloutConfig",
    )
