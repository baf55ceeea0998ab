"""Objects of built-in kinds, each with a change, and what that change asks for."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.support.objects import at
from tidegate.model.k8s.json_fields import get_list, get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction

FILE = Path(__file__).parents[1] / "data" / "diff" / "builtin-kinds.yaml"


class Case(NamedTuple):
    """A body, the same with another value at one place, and what becomes of the object."""

    name: str
    action: DiffAction
    body: JsonObject
    changed: JsonObject


def read_cases() -> list[Case]:
    known: Json = yaml.safe_load(FILE.read_text())
    assert isinstance(known, list)
    return [_read_case(row) for row in known if isinstance(row, dict)]


def _read_case(row: JsonObject) -> Case:
    body = get_mapping(row, "body")
    changed = copy.deepcopy(body)
    *way, last = get_list(row, "at")
    parent: Json = changed
    for step in way:
        parent = at(parent, step if isinstance(step, int) else str(step))
    if isinstance(parent, list) and isinstance(last, int):
        parent[last : last + 1] = [row["value"]] if "value" in row else []
    elif isinstance(parent, dict) and isinstance(last, str):
        parent.pop(last, None)
        parent.update({last: row["value"]} if "value" in row else {})
    assert changed != body, row["name"]
    return Case(str(row["name"]), DiffAction(str(row["becomes"])), body, changed)
