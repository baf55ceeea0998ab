"""docs/reference/scenario-format.md agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path
from types import UnionType
from typing import get_args

import pytest

from tidegate.model.simulation.preinstalled import GivenCluster
from tidegate.sandbox.faults import VERBS, FaultSelector
from tidegate.sandbox.node.profile import ContainerSelector
from tidegate.sandbox.scenario import Scenario, read_scenario
from tidegate.sandbox.scenario_edits import EditSpec
from tidegate.sandbox.scenario_faults import FREQUENCY_KEYS, BehaviourSpec, FaultSpec

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "scenario-format.md").read_text()
FAULTS, REST = PAGE.split("## Behaviours of containers")
BEHAVIOURS, OTHERS = REST.split("## Changes by other clients")
EXAMPLES = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)


def rows(title: str) -> list[str]:
    """The first cells of the table under a header."""
    table = PAGE.split(f"| {title} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)


def names(title: str) -> list[str]:
    return [name for row in rows(title) for name in re.findall(r"`([a-z-]+)[`:]", row)]


def effects(part: str) -> dict[str, set[str]]:
    """The effects of a table, each with its own keys."""
    shown = re.findall(r"^\| `([a-z-]+)` \| .+ \| (.*) ?\|$", part, re.MULTILINE)
    return {effect: set(re.findall(r"`([a-z]+)`", keys)) for effect, keys in shown}


def forms(union: UnionType) -> dict[str, set[str]]:
    """The effects that can be read, each with its own keys."""
    return {
        str(arg.__struct_config__.tag): set(arg.__struct_encode_fields__) - {"when"}
        for arg in get_args(union)
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_read(example: str) -> None:
    scenario = read_scenario(example.encode(), "page.md")

    result = (scenario.faults, scenario.behaviours, scenario.edits, scenario.commits)
    assert any(result) or scenario.given != GivenCluster()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 7


def test_the_page_lists_every_edit_with_its_own_keys() -> None:
    shared = {"at", "object", "cluster"}
    assert effects(OTHERS) == {name: keys - shared for name, keys in forms(EditSpec).items()}


def test_the_page_lists_every_effect_with_its_own_keys() -> None:
    assert effects(FAULTS) == {
        effect: keys - set(FREQUENCY_KEYS) for effect, keys in forms(FaultSpec).items()
    }


def test_the_page_lists_every_key_matcher_and_verb() -> None:
    frequency = set(names("frequency | affects"))

    assert set(names("key | contains")) == set(Scenario.__struct_fields__)
    assert set(names("key of `given` | contains")) == set(GivenCluster.__struct_fields__)
    assert set(names("key of a call | matches")) - {"verb"} == set(
        FaultSelector.__struct_fields__
    ) - {"verbs"}
    assert names("verb | call") == list(VERBS)
    assert frequency == {"every", "probability", "times", "from", "until"}


def test_the_page_lists_every_behaviour_with_its_keys_and_matchers() -> None:
    assert effects(BEHAVIOURS) == forms(BehaviourSpec)
    assert set(names("key of a container | matches")) == set(ContainerSelector.__struct_fields__)
