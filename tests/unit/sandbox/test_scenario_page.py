"""docs/reference/scenario-format.md tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.sandbox.faults import VERBS, Match
from tidegate.sandbox.scenario import _FORMS, Scenario, read_scenario

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "scenario-format.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)


def rows(title: str) -> list[str]:
    """The first cells of the table under a header."""
    table = PAGE.split(f"| {title} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)


def words(title: str) -> list[str]:
    return [word for row in rows(title) for word in re.findall(r"`([a-z-]+)[`:]", row)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_read(example: str) -> None:
    assert read_scenario(example.encode(), "page.md").faults


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3


def test_the_page_lists_every_effect_with_its_own_keys() -> None:
    shown = re.findall(r"^\| `([a-z-]+)` \| .+ \| (.*) ?\|$", PAGE, re.MULTILINE)
    own = {effect: set(re.findall(r"`([a-z]+)`", keys)) for effect, keys in shown}

    assert own == {
        effect: set(form.keys) - {"every", "probability", "times", "from", "until"}
        for effect, form in _FORMS.items()
    }


def test_the_page_lists_every_key_matcher_and_verb() -> None:
    often = set(words("key | hits"))

    assert set(words("key | holds")) == set(Scenario.__struct_fields__)
    assert set(words("key | fits")) - {"verb"} == set(Match.__struct_fields__) - {"verbs"}
    assert words("verb | call") == list(VERBS)
    assert often == {"every", "probability", "times", "from", "until"}
