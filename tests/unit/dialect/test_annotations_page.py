"""The page about annotations names everything that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.dialect.argo import hooks, options, waves
from tidegate.dialect.ownership import tracking
from tidegate.model.k8s.objects import Json
from tidegate.model.units.policy import ObjectOptions
from tidegate.plan.build.waves import KIND_ORDER

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "annotations.md").read_text()
NAMES = (
    waves.WAVE,
    waves.WEIGHT,
    hooks.HOOK,
    hooks.HELM_HOOK,
    hooks.DELETE_POLICY,
    hooks.HELM_DELETE_POLICY,
    options.SYNC_OPTIONS,
    options.RESOURCE_POLICY,
    tracking.UNIT,
)
OPTIONS = (
    "Prune=false",
    "Prune=confirm",
    "PruneLast=true",
    "Delete=false",
    "Delete=confirm",
    "Force=true",
    "Validate=false",
    "SkipDryRunOnMissingResource=true",
    "Replace=true",
)
WORDS = (*hooks.PHASES, *hooks.DELETION_PHASES, *hooks.HELM_PHASES, *hooks.HELM_DELETION_PHASES)
POLICIES = (*hooks.DELETE_POLICIES, *hooks.HELM_DELETE_POLICIES)


@pytest.mark.parametrize("name", [*NAMES, *OPTIONS, *WORDS, *POLICIES])
def test_everything_that_is_read_is_on_the_page(name: str) -> None:
    assert f"`{name}" in PAGE


@pytest.mark.parametrize("name", [*options.UNIT_OPTIONS])
def test_every_option_of_a_unit_is_on_the_page(name: str) -> None:
    assert f"| `{name}=" in PAGE


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_on_the_page_is_read(option: str) -> None:
    plain = options.read_argo_options({"metadata": {}}, ObjectOptions())

    body: dict[str, Json] = {"metadata": {"annotations": {options.SYNC_OPTIONS: option}}}
    noted = options.read_argo_options(body, ObjectOptions())

    assert noted != plain


def test_kinds_are_on_the_page_in_their_order() -> None:
    assert f"\n{', '.join(KIND_ORDER)}.\n" in PAGE
