"""Operator knowledge about kinds, as text, JSON and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.display import format_limit, join_limited
from tidegate.model.operators.rows import (
    Check,
    KindRow,
    Knowledge,
    Need,
    Operator,
    Product,
    RequiredState,
)
from tidegate.model.simulation.preinstalled import format_kind_title
from tidegate.model.text.lazy_regex import lazy_regex

_PLACEHOLDER = lazy_regex(r"\$\{([^}]*)\}")
UNTIL_TEXTS = {
    RequiredState.EXISTS: "",
    RequiredState.READY: ", ready",
    RequiredState.SERVING: ", serving",
}
TABLE_BORDER = "|"
BUILTIN_GROUPS = frozenset({"batch", "networking.k8s.io"})
"""API groups of Kubernetes; their rows only describe what operators create."""


class KindDocument(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """JSON document of a kind."""

    kind: str
    versions: tuple[str, ...]
    cluster_wide: bool
    served_by: str
    takes: int
    """Milliseconds until an object is ready, at best."""
    checked: str
    source: str
    needs: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    ready_when: tuple[str, ...] = ()


def kind_document(kind: str, row: KindRow, operators: Iterable[Operator]) -> KindDocument:
    """Return the document of one kind of a row."""
    needs = (_need_text(need) for need in row.needs)
    return KindDocument(
        kind=format_kind_title(row.group, kind),
        versions=row.versions,
        cluster_wide=kind in row.cluster_wide,
        served_by=_served_by(row, {operator.name: operator for operator in operators}),
        takes=sum(stage.after for stage in row.stages),
        checked=row.checked.value,
        source=row.source,
        needs=tuple(dict.fromkeys(needs)),
        creates=tuple(dict.fromkeys(_product_texts(row))),
        ready_when=_ready_conditions(row),
    )


def kind_lines(document: KindDocument) -> Iterator[str]:
    """Yield the document of a kind as text."""
    scope = "cluster-scoped" if document.cluster_wide else "namespaced"
    yield f"{document.kind} ({', '.join(document.versions)}), {scope}"
    parts = (
        ("served by", (document.served_by,)),
        ("needs", document.needs),
        ("creates", document.creates),
        ("ready when", (" and ".join(document.ready_when) or "it exists",)),
        ("takes", (format_limit(document.takes) if document.takes else "0s",)),
        ("checked", (f"{document.checked}: {document.source}",)),
    )
    for title, values in parts:
        for index, line in enumerate(values):
            yield f"  {title if not index else '':<11} {line}"


def operator_lines(knowledge: Knowledge) -> Iterator[str]:
    """Yield all named operators with the kinds they serve."""
    names = [operator.name for operator in knowledge.operators]
    width = max([len("operator"), *map(len, names)])
    namespace_width = max(
        [len("namespace"), *(len(operator.namespace) for operator in knowledge.operators)]
    )
    yield f"{'operator':{width}}  {'namespace':{namespace_width}}  kinds"
    for operator in sorted(knowledge.operators, key=lambda operator: operator.name):
        kinds = [
            kind for row in knowledge.rows if row.operator == operator.name for kind in row.kinds
        ]
        shown = join_limited(kinds, 6)
        yield f"{operator.name:{width}}  {operator.namespace:{namespace_width}}  {shown}"


def catalog_page_lines(knowledge: Knowledge) -> Iterator[str]:
    """Yield the page of all kinds as Markdown."""
    yield "| kind | operator | needs | creates | ready when | takes | checked |"
    yield "|---|---|---|---|---|---|---|"
    for row in sorted(knowledge.rows, key=lambda item: (item.group, item.kinds)):
        kinds = ", ".join(f"`{kind}`" for kind in row.kinds)
        document = kind_document(row.kinds[0], row, knowledge.operators)
        cells = (
            f"{kinds} of `{row.group}`",
            row.operator or "",
            "; ".join(document.needs),
            "; ".join(document.creates),
            " and ".join(document.ready_when),
            format_limit(document.takes) if document.takes else "",
            f"{document.checked}: {document.source}",
        )
        yield f"| {' | '.join(cell.replace(TABLE_BORDER, '/') for cell in cells)} |"


def _ready_conditions(row: KindRow) -> tuple[str, ...]:
    if row.group in BUILTIN_GROUPS:
        return ("the rules of Kubernetes apply",)
    return tuple(map(_check_text, row.ready_when))


def _served_by(row: KindRow, operators: dict[str, Operator]) -> str:
    server = row.served_by
    if server.outside:
        return "a service outside the cluster"
    operator = operators.get(row.operator)
    if operator is not None:
        return f"{operator.name}, usually in `{operator.namespace}`"
    identifiers = [
        *server.images,
        *server.names,
        *(f"{key}={label[key]}" for label in server.labels for key in label),
    ]
    return (
        f"a workload with {' or '.join(identifiers)}"
        if identifiers
        else "a workload with a similar name"
    )


def _need_text(need: Need) -> str:
    name = (
        format_kind_title(need.group, readable_template(need.kind))
        if "$" not in need.group
        else readable_template(need.kind)
    )
    loop_text = f", for each {need.each}" if need.each else ""
    condition = f", if {' and '.join(map(_check_text, need.when))}" if need.when else ""
    return f"{name} {readable_template(need.name)}{UNTIL_TEXTS[need.until]}{loop_text}{condition}"


def _product_texts(row: KindRow) -> Iterator[str]:
    for service in row.services:
        yield f"Service {readable_template(service.name)}"
    for stage in row.stages:
        yield from map(_product_text, stage.produces)


def _product_text(product: Product) -> str:
    template = product.makes
    metadata = template.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    loop_text = f", for each {product.each}" if product.each else ""
    return f"{template.get('kind')} {readable_template(name)}{loop_text}"


def _check_text(check: Check) -> str:
    subject = f"condition {check.condition}" if check.condition else check.target_path
    if check.absent:
        condition = "is not set"
    elif check.expected_values:
        condition = f"is {' or '.join(map(str, check.expected_values))}"
    elif check.equals:
        condition = f"equals {check.equals}"
    elif check.at_least:
        condition = f"is at least {check.at_least}"
    elif check.matches:
        condition = f"matches {check.matches}"
    else:
        condition = "is set"
    return f"not ({subject} {condition})" if check.negated else f"{subject} {condition}"


def readable_template(template: str) -> str:
    """Return a template in readable form: `<spec.secretName, else name>`."""

    def replace(match: re.Match[str]) -> str:
        options = [option.strip() for option in match[1].split("|")]
        if len(options) == 1 or not options[0].startswith("'"):
            return f"<{', else '.join(options)}>"
        return options[0].strip("'")

    return _PLACEHOLDER.sub(replace, template)
