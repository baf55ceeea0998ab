"""Objects derived from the rows: each value that a row reads is present, missing or unusual.

Half of the objects are generated so that a random case of the row is likely to match. The results
are those of Argo CD: our verdict only selects the objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tests.conformance.oracles.argo_health.shapes import ABSENT, Shape, as_json
from tidegate.health.argo import builtin_rows
from tidegate.health.rows import HealthRow, judge_by_health_row
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.paths import PathStep, find_value, parse_path
from tidegate.model.operators.amounts import parse_amount
from tidegate.model.operators.rows import CONDITIONS_PATH, Check, HealthCase

FEWEST, MOST, EACH, TRIES = 30, 90, 10, 40
EXTRA: dict[str, dict[str, list[object]]] = {
    "AnsibleJob": {"status.ansibleJobResult.url": ["https://tower.example"]},
    "Application": {"status.protectionState": ["Full"]},
    "ConfigurationPolicy": {"status.compliancyDetails": [[]]},
    "DataVolume": {"status.phase": ["ImportInProgress"]},
    "Policy": {"status.placement": [[{}], []], "status.status": [[]]},
}
"""What Argo CD's script wants for its sentence, by kind."""
SAMPLES: dict[str, list[object]] = {
    "^ERROR": ["ERROR, no such key"],
    r"(?<!\d)(\d+)/\1(?!\d)": ["0/0", "0/2", "1/2", "2/2", "10/10", "0/10", "10/1", "soon"],
    "(?i)timeout|failed": ["Timeout", "it failed", "well"],
}
"""What a pattern is tried on."""


@dataclass
class Vocabulary:
    """What a row speaks of: values by path, and lists with what their items hold."""

    values: dict[tuple[PathStep, ...], list[object]] = field(default_factory=dict)
    lists: dict[tuple[PathStep, ...], Vocabulary] = field(default_factory=dict)

    def receive(self, check: Check, among: str) -> None:
        if check.condition:
            self.offer(
                f"{CONDITIONS_PATH}[type={check.condition}].status", among, *check.expected_values
            )
        elif check.at_least:
            for term in (*parse_amount(check.path), *parse_amount(str(check.at_least))):
                listed: list[object] = [["RUNNING"], [], ["RUNNING", "FAILED"]]
                summed: list[object] = [[{"count": 1}], [{"count": 2}, {"count": 1}]]
                known = listed if term.function == "count" else summed
                self.offer_steps(term.path, *(known if term.function else [0, 1, 2, 3]))
        else:
            known = [*check.values, *SAMPLES.get(check.matches, [])]
            for path in (check.path, check.equals):
                self.offer(path, among, *([1, 2] if check.equals else known))

    def offer(self, path: str, among: str, *values: object) -> None:
        inner = path.removeprefix("item.")
        if inner != path:
            items = self.lists.setdefault(parse_path(among), Vocabulary())
            items.offer(inner, "", *values)
        elif path.startswith(f"{CONDITIONS_PATH}["):
            items = self.lists.setdefault(parse_path(CONDITIONS_PATH), Vocabulary())
            chosen, *names = parse_path(path)[2:]
            if isinstance(chosen, tuple):
                items.offer_steps(("type",), chosen[1])
            items.offer_steps(tuple(names), *values)
        elif path and path != CONDITIONS_PATH:
            self.offer_steps(parse_path(path), *values)

    def offer_steps(self, path: tuple[PathStep, ...], *values: object) -> None:
        if path:
            known = self.values.setdefault(path, [])
            known += [value for value in values if value not in known]

    def make(self, rng: Random) -> dict[str, Json]:
        made: dict[str, Json] = {}
        for path, values in sorted(self.values.items(), key=lambda item: str(item[0])):
            is_part = any(other[: len(path)] == path for other in self.values if other != path)
            known = [{}] if is_part else [*(values or ["some"]) * 2, *_odd(values)]
            choice = rng.choice([*known, ABSENT])
            if choice is not ABSENT and path not in self.lists:
                _put(made, path, as_json(choice))
        for path, items in self.lists.items():
            if rng.random() < 0.85:
                _put(made, path, items.make_items(rng))
        return made

    def make_items(self, rng: Random) -> list[Json]:
        items = [self.make(rng) for _ in range(rng.randint(0, 3))]
        if ("type",) in self.values:
            types = [str(name) for name in (*self.values["type",], "Other")]
            rng.shuffle(types)
            chosen = types[: rng.randint(0, len(types))]
            items = [{**self.make(rng), **_condition(name, rng)} for name in chosen]
        return list(items)


def _odd(values: list[object]) -> list[object]:
    """A value of the same type that is none of these."""
    of_type = {str: "Odd", int: 5}
    types = {type(value) for value in values}
    return [of_type[type_] for type_ in types if len(types) == 1 and type_ in of_type]


def _condition(name: str, rng: Random) -> dict[str, Json]:
    return {
        "type": name,
        "status": rng.choice(["True", "True", "False", "Unknown"]),
        "message": "as it is",
        "lastTransitionTime": f"2026-01-01T00:00:{rng.randint(10, 59)}Z",
    }


def _put(body: Json, path: tuple[PathStep, ...], value: Json) -> None:
    """Put a value at a path; items that are chosen by a key are made."""
    match (body, path):
        case (dict(), (str(name),)):
            body[name] = value
        case (dict(), (str(name), following, *_)):
            _put(body.setdefault(name, [] if isinstance(following, tuple) else {}), path[1:], value)
        case (list(), ((key, item_value), *_)):
            known = (item for item in body if isinstance(item, dict))
            chosen = next((item for item in known if item.get(key) == item_value), None)
            if chosen is None:
                chosen = {key: as_json(item_value)}
                body.append(chosen)
            _put(chosen, path[1:], value)
        case _:
            pass


def _cases(row: HealthRow) -> Iterator[tuple[str, HealthCase]]:
    for case in (*row.cases, row.otherwise):
        yield CONDITIONS_PATH, case
        yield from ((case.among, inner) for inner in case.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape(Shape):
    """Bodies of a kind as its row speaks of them."""

    row: HealthRow

    def body(self, rng: Random) -> dict[str, Json]:
        """An object that has a given state by our rules, so that rare states are covered."""
        states = sorted({case.health for _, case in _cases(self.row) if case.health})
        expected = rng.choice(states)
        made = (self.any_body(rng) for _ in range(TRIES))
        fitting = (body for body in made if judge_by_health_row(body, self.row).health is expected)
        return next(fitting, self.any_body(rng))

    def any_body(self, rng: Random) -> dict[str, Json]:
        words = Vocabulary()
        for path, values in EXTRA.get(self.kind, {}).items():
            words.offer(path, CONDITIONS_PATH, *values)
        words.offer(self.row.observed, CONDITIONS_PATH, 1, 2)
        for among, case in _cases(self.row):
            words.offer(case.message_from, among, "as told")
            for check in case.when:
                words.receive(check, among)
        made = words.make(rng)
        if rng.random() < 0.5:
            among, case = rng.choice(list(_cases(self.row)))
            _steer(made, among, case)
            _agree(made, [case_ for _, case_ in _cases(self.row) if case_ is not case])
        if rng.random() < 0.05:
            made.pop("status", None)
        body: dict[str, Json] = {"apiVersion": self.api_version, "kind": self.kind, "spec": {}}
        head: dict[str, Json] = {"name": "web", "namespace": "shop", "generation": 2}
        known = made.get("metadata")
        return {**body, **made, "metadata": {**head, **(known if isinstance(known, dict) else {})}}


def _steer(body: dict[str, Json], among: str, case: HealthCase) -> None:
    """Make the simple checks of a case hold."""
    for check in case.when:
        if check.absent and not check.negated:
            *way, last = check.path.split(".")
            holder = find_value(body, ".".join(way)) if way else body
            holder.pop(last, None) if isinstance(holder, dict) else None
        if check.negated or check.absent or check.at_least or check.matches:
            continue
        path, values = check.path, check.expected_values or (1,)
        if check.condition:
            path = f"{CONDITIONS_PATH}[type={check.condition}].status"
        if not path.startswith("item"):
            _put(body, parse_path(path), values[0])
            if check.equals:
                _put(body, parse_path(check.equals), values[0])
        elif len(parse_path(path)) > 1:
            item: dict[str, Json] = {"type": "Other", "status": "True", "message": "as it is"}
            _put(item, parse_path(path)[1:], values[0])
            _put(body, parse_path(among), [item])


def _agree(body: dict[str, Json], others: list[HealthCase]) -> None:
    """Make equal what other cases hope to differ: generations, states."""
    for check in (check for case in others for check in case.when):
        if check.equals and check.negated and not check.path.startswith("item"):
            value = find_value(body, check.path)
            _put(body, parse_path(check.path), 2 if value is None else value)
            _put(body, parse_path(check.equals), 2 if value is None else value)


def rows() -> list[Shape]:
    """A shape for every kind of every row."""
    known = builtin_rows()
    every = {id(row): row for row in (*known.named.values(), *known.patterns)}.values()
    return [_shape(row, kind.replace("*", "Thing")) for row in every for kind in row.kinds]


def _shape(row: HealthRow, kind: str) -> Shape:
    request = EACH * sum(1 + len(case.first) for case in row.cases)
    amount = max(FEWEST, min(MOST, request))
    return RowShape(f"{row.group.replace('*', 'any')}/v1", kind, amount, row=row)
