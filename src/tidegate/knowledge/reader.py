"""Reader of row files: the built-in ones and those of users, with a location for each mistake."""

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
    """Return the built-in knowledge."""
    files = read_row_files()
    return read_precompiled(PRECOMPILED_FILE.read_bytes(), files, Knowledge) or parse_row_files(
        files
    )


def read_row_files() -> dict[str, bytes]:
    """Return the content of the built-in row files by name."""
    return {file.name: file.read_bytes() for file in sorted(ROWS_DIRECTORY.glob("*.yaml"))}


def parse_row_files(files: dict[str, bytes]) -> Knowledge:
    """Parse row files, given by name, and merge them."""
    knowledge = Knowledge()
    for name, content in files.items():
        knowledge = knowledge.merged_with(parse_knowledge(content, name))
    return knowledge


def parse_knowledge(content: bytes, name: str) -> Knowledge:
    """Parse a row file. Raises one ExceptionGroup with an error for each mistake."""
    knowledge = Knowledge()
    for part in decode(content, name, Knowledge, noun="file of rows", check=_find_problems):
        knowledge = knowledge.merged_with(part)
    return knowledge


def _find_problems(knowledge: Knowledge) -> Iterator[FileProblem]:
    for index, row in enumerate(knowledge.rows):
        for path, error in (*_stage_problems(row), *_path_problems(row)):
            yield ("rows", index, *path), error
    yield from _reference_problems(knowledge)


def _reference_problems(knowledge: Knowledge) -> Iterator[FileProblem]:
    for index, reference in enumerate(knowledge.references):
        yield from _with_prefix(("references", index), _reference_row_problems(reference))
    for index, pods in enumerate(knowledge.pods):
        for problem in check_errors([Check(path=pods.at)]):
            yield ("pods", index, "at"), KnowledgeError("operators.path", sanitize(problem))
    for index, producer in enumerate(knowledge.producers):
        for product_index, product in enumerate(producer.produces):
            prefix = ("producers", index, "produces", product_index)
            yield from _with_prefix(prefix, _product_problems(product))


def _with_prefix(prefix: FieldPath, problems: Iterator[FileProblem]) -> Iterator[FileProblem]:
    return (((*prefix, *path), error) for path, error in problems)


def _reference_row_problems(row: ReferenceRow) -> Iterator[FileProblem]:
    if row.pods is bool(row.of_kinds):
        problem = "a reference is either of `pods` or of the kinds in `of_kinds`"
        yield ("at",), KnowledgeError("operators.value", problem)
    for index, path in enumerate((*row.at, *row.keys)):
        key = ("at", index) if index < len(row.at) else ("keys", index - len(row.at))
        try:
            parse_field_pattern(path)
        except ValueError as error:
            yield key, KnowledgeError("operators.path", sanitize(str(error)))
    for field in ("kind", "name", "group", "namespace"):
        yield from _template_problems((field,), getattr(row, field))
    for index, check in enumerate(row.when):
        for message in check_errors([check]):
            yield ("when", index), KnowledgeError("operators.path", sanitize(message))


def _product_problems(product: Product) -> Iterator[FileProblem]:
    yield from _template_problems(("object",), product.makes)
    if product.each:
        yield from _template_problems(("each",), {FOR: product.each})
    for index, check in enumerate(product.when):
        for message in check_errors([check]):
            yield ("when", index), KnowledgeError("operators.path", sanitize(message))


def _template_problems(path: FieldPath, template: object) -> Iterator[FileProblem]:
    try:
        check_template(template)
    except ValueError as error:
        yield path, KnowledgeError("operators.path", sanitize(str(error)))


def _stage_problems(row: KindRow) -> Iterator[FileProblem]:
    if not row.source.strip():
        problem = "a row needs a `source`"
        yield ("source",), KnowledgeError("operators.value", problem)
    if not row.stages:
        yield ("stages",), KnowledgeError("operators.value", "a row needs at least one stage")
    for index, stage in enumerate(row.stages):
        for later in row.stages[index + 1 :]:
            if status_matches(cast("Json", stage.writes), cast("Json", later.writes)):
                names = f"`{sanitize(stage.name)}` and `{sanitize(later.name)}`"
                problem = f"the stages {names} set the same status"
                hint = "make them differ: the status is the only sign of progress"
                yield ("stages", index), KnowledgeError("operators.stages", problem, hint=hint)


def _path_problems(row: KindRow) -> Iterator[FileProblem]:
    for path, template in (*_templates(row), *_iterated_paths(row)):
        yield from _template_problems(path, template)
    for path, check in _checks(row):
        for message in check_errors([check]):
            yield path, KnowledgeError("operators.path", sanitize(message))
    for index, case in enumerate(row.cases):
        for message in case_errors([case]):
            yield ("cases", index), KnowledgeError("operators.path", sanitize(message))


def _templates(row: KindRow) -> Iterator[tuple[FieldPath, object]]:
    """Yield every template of a row with its path."""
    for index, need in enumerate(row.needs):
        fields: tuple[object, ...] = (need.kind, need.name, need.group, need.namespace, need.unmet)
        yield from ((("needs", index), field) for field in fields)
    for index, service in enumerate(row.services):
        yield ("services", index), [service.name, service.selector]
    for index, stage in enumerate(row.stages):
        yield ("stages", index, "writes"), stage.writes
    for path, product in _products(row):
        yield path, product.makes


def _iterated_paths(row: KindRow) -> Iterator[tuple[FieldPath, object]]:
    """Yield every path that a row iterates over, as a template, with its own path."""
    for index, need in enumerate(row.needs):
        if need.each:
            yield ("needs", index, "each"), {FOR: need.each}
    for path, product in _products(row):
        if product.each:
            yield (*path, "each"), {FOR: product.each}


def _checks(row: KindRow) -> Iterator[tuple[FieldPath, Check]]:
    """Yield every check of a row outside its cases, with its path."""
    if row.observed:
        yield ("observed",), Check(path=row.observed)
    lists: list[tuple[FieldPath, tuple[Check, ...]]] = [(("ready_when",), row.ready_when)]
    lists += [(("needs", position, "when"), need.when) for position, need in enumerate(row.needs)]
    lists += [
        (("services", position, "when"), service.when)
        for position, service in enumerate(row.services)
    ]
    lists += [((*path, "when"), product.when) for path, product in _products(row)]
    lists += [
        (("stages", position, "when"), stage.when) for position, stage in enumerate(row.stages)
    ]
    for path, checks in lists:
        yield from (((*path, index), check) for index, check in enumerate(checks))


def _products(row: KindRow) -> Iterator[tuple[FieldPath, Product]]:
    for stage_index, stage in enumerate(row.stages):
        for index, product in enumerate(stage.produces):
            yield ("stages", stage_index, "produces", index), product
