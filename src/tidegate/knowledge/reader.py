"""Rows from files: those that tidegate brings, and those of users, with a line for each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

from tidegate.documents.decoder import FileProblem, decode
from tidegate.documents.precompiled import read_precompiled
from tidegate.errors import KnowledgeError, sanitize
from tidegate.knowledge.fields import parse_field_pattern
from tidegate.knowledge.templates import FOR, check_template, status_matches
from tidegate.model.k8s.objects import FieldPath, Json
from tidegate.model.operators.checks import case_errors, check_errors
from tidegate.model.operators.rows import Check, KindRow, Knowledge, Product, ReferenceRow

ROWS_DIRECTORY = Path(__file__).with_name("rows")
PRECOMPILED_FILE = ROWS_DIRECTORY.with_suffix(".ready")


@cache
def load_builtin_knowledge() -> Knowledge:
    """What tidegate brings."""
    texts = read_row_files()
    return read_precompiled(PRECOMPILED_FILE.read_bytes(), texts, Knowledge) or parse_row_files(
        texts
    )


def read_row_files() -> dict[str, bytes]:
    """The files that tidegate brings, by name."""
    return {file.name: file.read_bytes() for file in sorted(ROWS_DIRECTORY.glob("*.yaml"))}


def parse_row_files(texts: dict[str, bytes]) -> Knowledge:
    known = Knowledge()
    for name, text in texts.items():
        known = known.merged_with(parse_knowledge(text, name))
    return known


def parse_knowledge(text: bytes, name: str) -> Knowledge:
    """What a file knows. Raises one ExceptionGroup with an error for each mistake."""
    known = Knowledge()
    for one in decode(text, name, Knowledge, noun="file of rows", check=_flaws):
        known = known.merged_with(one)
    return known


def _flaws(known: Knowledge) -> Iterator[FileProblem]:
    for place, row in enumerate(known.rows):
        for path, error in (*_wrong_stages(row), *_wrong_paths(row)):
            yield ("rows", place, *path), error
    yield from _wrong_references(known)


def _wrong_references(known: Knowledge) -> Iterator[FileProblem]:
    for place, reference in enumerate(known.references):
        yield from _inside(("references", place), _wrong_reference(reference))
    for place, pods in enumerate(known.pods):
        for mistake in check_errors([Check(path=pods.at)]):
            yield ("pods", place, "at"), KnowledgeError("operators.path", sanitize(mistake))
    for place, producer in enumerate(known.producers):
        for index, product in enumerate(producer.produces):
            where = ("producers", place, "produces", index)
            yield from _inside(where, _wrong_product(product))


def _inside(where: FieldPath, flaws: Iterator[FileProblem]) -> Iterator[FileProblem]:
    return (((*where, *path), error) for path, error in flaws)


def _wrong_reference(row: ReferenceRow) -> Iterator[FileProblem]:
    if row.pods is bool(row.of_kinds):
        problem = "a reference is either of `pods` or of the kinds in `of_kinds`"
        yield ("at",), KnowledgeError("operators.value", problem)
    for place, path in enumerate((*row.at, *row.keys)):
        key = ("at", place) if place < len(row.at) else ("keys", place - len(row.at))
        try:
            parse_field_pattern(path)
        except ValueError as error:
            yield key, KnowledgeError("operators.path", sanitize(str(error)))
    for field in ("kind", "name", "group", "namespace"):
        yield from _wrong_template((field,), getattr(row, field))
    for place, check in enumerate(row.when):
        for mistake in check_errors([check]):
            yield ("when", place), KnowledgeError("operators.path", sanitize(mistake))


def _wrong_product(product: Product) -> Iterator[FileProblem]:
    yield from _wrong_template(("object",), product.makes)
    if product.each:
        yield from _wrong_template(("each",), {FOR: product.each})
    for place, check in enumerate(product.when):
        for mistake in check_errors([check]):
            yield ("when", place), KnowledgeError("operators.path", sanitize(mistake))


def _wrong_template(path: FieldPath, template: object) -> Iterator[FileProblem]:
    try:
        check_template(template)
    except ValueError as error:
        yield path, KnowledgeError("operators.path", sanitize(str(error)))


def _wrong_stages(row: KindRow) -> Iterator[FileProblem]:
    if not row.source.strip():
        problem = "a row must say where its facts come from"
        yield ("source",), KnowledgeError("operators.value", problem)
    if not row.stages:
        yield ("stages",), KnowledgeError("operators.value", "a row needs at least one stage")
    for place, stage in enumerate(row.stages):
        for later in row.stages[place + 1 :]:
            if status_matches(cast("Json", stage.writes), cast("Json", later.writes)):
                names = f"`{sanitize(stage.name)}` and `{sanitize(later.name)}`"
                problem = f"the stages {names} write the same status"
                hint = "let them differ: only the status tells how far an object has come"
                yield ("stages", place), KnowledgeError("operators.stages", problem, hint=hint)


def _wrong_paths(row: KindRow) -> Iterator[FileProblem]:
    for path, template in (*_templates(row), *_lists(row)):
        yield from _wrong_template(path, template)
    for path, check in _checks(row):
        for mistake in check_errors([check]):
            yield path, KnowledgeError("operators.path", sanitize(mistake))
    for index, case in enumerate(row.cases):
        for mistake in case_errors([case]):
            yield ("cases", index), KnowledgeError("operators.path", sanitize(mistake))


def _templates(row: KindRow) -> Iterator[tuple[FieldPath, object]]:
    """Every template of a row, with its path."""
    for place, need in enumerate(row.needs):
        fields: tuple[object, ...] = (need.kind, need.name, need.group, need.namespace, need.unmet)
        yield from ((("needs", place), field) for field in fields)
    for place, service in enumerate(row.services):
        yield ("services", place), [service.name, service.selector]
    for place, stage in enumerate(row.stages):
        yield ("stages", place, "writes"), stage.writes
    for path, product in _products(row):
        yield path, product.makes


def _lists(row: KindRow) -> Iterator[tuple[FieldPath, object]]:
    """Every path of a list that a row goes through, as a template, with its own path."""
    for place, need in enumerate(row.needs):
        if need.each:
            yield ("needs", place, "each"), {FOR: need.each}
    for path, product in _products(row):
        if product.each:
            yield (*path, "each"), {FOR: product.each}


def _checks(row: KindRow) -> Iterator[tuple[FieldPath, Check]]:
    """Every check of a row outside of its cases, with its path."""
    if row.observed:
        yield ("observed",), Check(path=row.observed)
    lists: list[tuple[FieldPath, tuple[Check, ...]]] = [(("ready_when",), row.ready_when)]
    lists += [(("needs", place, "when"), need.when) for place, need in enumerate(row.needs)]
    lists += [(("services", place, "when"), one.when) for place, one in enumerate(row.services)]
    lists += [((*path, "when"), product.when) for path, product in _products(row)]
    lists += [(("stages", place, "when"), one.when) for place, one in enumerate(row.stages)]
    for path, checks in lists:
        yield from (((*path, index), check) for index, check in enumerate(checks))


def _products(row: KindRow) -> Iterator[tuple[FieldPath, Product]]:
    for place, stage in enumerate(row.stages):
        for index, product in enumerate(stage.produces):
            yield ("stages", place, "produces", index), product
