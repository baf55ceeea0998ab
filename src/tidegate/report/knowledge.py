"""What is known of a kind, for people and programs, and the page of all kinds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.given import title_of
from tidegate.model.operators import Check, Knowledge, Need, Operator, Product, Row, Until
from tidegate.model.patterns import late
from tidegate.report.rollout.names import limit

_HOLE = late(r"\$\{([^}]*)\}")
UNTIL = {Until.EXISTS: "", Until.READY: ", ready", Until.SERVING: ", answering"}
EDGE = "|"
BUILTIN = frozenset({"batch", "networking.k8s.io"})
"""Groups of Kubernetes' own: rows tell only what others make of their objects."""


class KnownKind(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is known of a kind, in words. `takes`: milliseconds until it is well, at best."""

    kind: str
    versions: tuple[str, ...]
    cluster_wide: bool
    served_by: str
    takes: int
    checked: str
    source: str
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    well: tuple[str, ...] = ()


def known_kind(kind: str, row: Row, operators: Iterable[Operator]) -> KnownKind:
    """A row, told of one of its kinds."""
    needs = (_need(one) for one in row.needs)
    return KnownKind(
        kind=title_of(row.group, kind),
        versions=row.versions,
        cluster_wide=kind in row.cluster_wide,
        served_by=_served_by(row, {one.name: one for one in operators}),
        takes=sum(stage.after for stage in row.stages),
        checked=row.checked.value,
        source=row.source,
        needs=tuple(dict.fromkeys(needs)),
        makes=tuple(dict.fromkeys(_makes(row))),
        well=_well(row),
    )


def kind_lines(known: KnownKind) -> Iterator[str]:
    """The same for people."""
    scope = "in no namespace" if known.cluster_wide else "in a namespace"
    yield f"{known.kind} ({', '.join(known.versions)}), {scope}"
    parts = (
        ("served by", (known.served_by,)),
        ("needs", known.needs),
        ("makes", known.makes),
        ("well", (" and ".join(known.well) or "as soon as it is there",)),
        ("takes", (limit(known.takes) if known.takes else "no time",)),
        ("checked", (f"{known.checked}: {known.source}",)),
    )
    for title, told in parts:
        for place, line in enumerate(told):
            yield f"  {title if not place else '':<10} {line}"


def operator_lines(known: Knowledge) -> Iterator[str]:
    """All operators that have names, with how many kinds each serves."""
    names = [one.name for one in known.operators]
    width = max([len("operator"), *map(len, names)])
    places = max([len("namespace"), *(len(one.namespace) for one in known.operators)])
    yield f"{'operator':{width}}  {'namespace':{places}}  kinds"
    for one in sorted(known.operators, key=lambda one: one.name):
        kinds = [kind for row in known.rows if row.operator == one.name for kind in row.kinds]
        yield f"{one.name:{width}}  {one.namespace:{places}}  {_some(kinds)}"


def page_lines(known: Knowledge) -> Iterator[str]:
    """The page of all kinds, as Markdown."""
    yield "| kind | operator | needs | makes | well | takes | checked |"
    yield "|---|---|---|---|---|---|---|"
    for row in sorted(known.rows, key=lambda one: (one.group, one.kinds)):
        kinds = ", ".join(f"`{kind}`" for kind in row.kinds)
        told = known_kind(row.kinds[0], row, known.operators)
        cells = (
            f"{kinds} of `{row.group}`",
            row.operator or "",
            "; ".join(told.needs),
            "; ".join(told.makes),
            " and ".join(told.well),
            limit(told.takes) if told.takes else "",
            f"{told.checked}: {told.source}",
        )
        yield f"| {' | '.join(one.replace(EDGE, '/') for one in cells)} |"


def _well(row: Row) -> tuple[str, ...]:
    if row.group in BUILTIN:
        return ("Kubernetes' own rules say so",)
    return tuple(map(_check, row.ready_when))


def _some(kinds: list[str], most: int = 6) -> str:
    shown = ", ".join(kinds[:most])
    return f"{shown} and {len(kinds) - most} more" if len(kinds) > most else shown


def _served_by(row: Row, operators: dict[str, Operator]) -> str:
    by = row.served_by
    if by.outside:
        return "somebody outside of the cluster"
    known = operators.get(row.operator)
    if known is not None:
        return f"{known.name}, usually in `{known.namespace}`"
    who = [*by.images, *by.names, *(f"{key}={one[key]}" for one in by.labels for key in one)]
    return f"a workload known by {' or '.join(who)}" if who else "a workload that sounds like it"


def _need(need: Need) -> str:
    name = title_of(need.group, spelled(need.kind)) if "$" not in need.group else spelled(need.kind)
    each = f", for each of {need.each}" if need.each else ""
    when = f", if {' and '.join(map(_check, need.when))}" if need.when else ""
    return f"{name} {spelled(need.name)}{UNTIL[need.until]}{each}{when}"


def _makes(row: Row) -> Iterator[str]:
    for service in row.services:
        yield f"Service {spelled(service.name)}"
    for stage in row.stages:
        yield from map(_product, stage.produces)


def _product(product: Product) -> str:
    made = product.makes
    metadata = made.get("metadata")
    name = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
    each = f", for each of {product.each}" if product.each else ""
    return f"{made.get('kind')} {spelled(name)}{each}"


def _check(check: Check) -> str:
    what = f"condition {check.condition}" if check.condition else check.place
    if check.absent:
        said = "is not there"
    elif check.wanted:
        said = f"is {' or '.join(map(str, check.wanted))}"
    elif check.equals:
        said = f"equals {check.equals}"
    elif check.at_least:
        said = f"is at least {check.at_least}"
    elif check.matches:
        said = f"fits {check.matches}"
    else:
        said = "is there"
    return f"not ({what} {said})" if check.negated else f"{what} {said}"


def spelled(template: str) -> str:
    """A template as people read it: `<spec.secretName, else name>`."""

    def spell(hole: re.Match[str]) -> str:
        options = [one.strip() for one in hole[1].split("|")]
        if len(options) == 1 or not options[0].startswith("'"):
            return f"<{', else '.join(options)}>"
        return options[0].strip("'")

    return _HOLE.sub(spell, template)
