"""What sets generate, as people and programs read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.documents.dump import to_json, to_yaml
from tidegate.model.objects import Json
from tidegate.report.masking import masked


class SetRow(msgspec.Struct, frozen=True):
    """One Application of a set, where it comes from, and with which parameters.

    `step`: that of the set's rollout; 0 where none takes it, and nothing where there are none.
    """

    set: str
    generator: int
    number: int
    step: int | None
    params: dict[str, Json]
    body: dict[str, Json]

    @property
    def name(self) -> str:
        metadata = self.body.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        return f"{known.get('namespace')}/{known.get('name')}"

    @property
    def origin(self) -> str:
        step = "" if self.step is None else f", step {self.step or 'none'}"
        return f"{self.set}, generator {self.generator}, {self.number}{step}"


def set_texts(rows: Iterable[SetRow], *, form: str, params: bool) -> Iterator[str]:
    """A piece of text for each Application: YAML, a line of JSON, or its name."""
    for row in rows:
        match form:
            case "names":
                told = f"  {to_json(row.params).decode()}" if params else ""
                yield f"{row.name}{told}\n"
            case "json":
                yield f"{to_json(_document(row) if params else masked(row.body)).decode()}\n"
            case _:
                shown = row.params if params else masked(row.body)
                name = f"{row.name}: " if params else ""
                yield f"---\n# {name}{row.origin}\n{to_yaml(shown)}"


def _document(row: SetRow) -> dict[str, Json]:
    return {
        "set": row.set,
        "generator": row.generator,
        "number": row.number,
        "step": row.step,
        "params": row.params,
        "application": masked(row.body),
    }
