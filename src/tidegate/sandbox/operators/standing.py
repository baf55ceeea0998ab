"""Objects that are given by their names alone: they are there, and well, before time begins.

Their bodies say the least that their kinds demand. Those of an operator have the status that the
last stage of their row writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import cast

import msgspec

from tidegate.documents import read
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.settings import SIMULATED_MARK
from tidegate.knowledge.templates import scope_of
from tidegate.model.given import GivenCluster, GivenKind, parse_title
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.operators import EVERY, Row, ServedBy
from tidegate.model.reading import mapping
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.stamps import API_SERVICE
from tidegate.sandbox.controllers.writes import set_status
from tidegate.sandbox.kinds import NAMESPACE, SERVICE
from tidegate.sandbox.operators import presence
from tidegate.sandbox.operators.interpreter import status_of, with_times
from tidegate.sandbox.operators.making import MAKER, NAMED, endpoints_of
from tidegate.sandbox.server.store import Body
from tidegate.schema.builtin import served_kinds
from tidegate.world.calls import Write

LEAST = Path(__file__).parents[1] / "named.yaml"
UNKNOWN_VERSION = "v1"


def served_rows(given: Iterable[GivenKind], known: KnownRows) -> list[Row]:
    """Rows of kinds that somebody outside looks after; a kind that has none gets that of others."""
    rows = []
    for one in given:
        row = presence.row_for(known, one.kind)
        if one.served and row is not None:
            rows.append(_served(row, one.kind, is_wide=one.cluster_wide))
    return rows


def _served(row: Row, kind: Kind, *, is_wide: bool) -> Row:
    is_strange = row.group == EVERY
    return msgspec.structs.replace(
        row,
        group=kind.group,
        kinds=(kind.name,),
        versions=(kind.version,) if is_strange else row.versions,
        cluster_wide=(kind.name,) if is_wide or kind.name in row.cluster_wide else (),
        served_by=ServedBy(outside=True),
    )


def named_refs(given: GivenCluster, known: KnownRows) -> Iterator[Ref]:
    """The objects that are given by their names."""
    for title, names in given.names.items():
        kind = _kind_of(title, given, known)
        for written in names:
            namespace, _, name = written.rpartition("/")
            yield Ref(kind, namespace, name)


def _kind_of(title: str, given: GivenCluster, known: KnownRows) -> Kind:
    """In the version that is stored, as far as anybody knows."""
    group, name = parse_title(title)
    row = known.rows.get((group, name))
    listed = (one.kind.version for one in given.kinds if _is(one.kind, group, name))
    builtin = (one.kind.version for one in served_kinds() if _is(one.kind, group, name))
    versions = (*builtin, *(row.versions[:1] if row else ()), *listed, UNKNOWN_VERSION)
    return Kind(group, versions[0], name)


def _is(kind: Kind, group: str, name: str) -> bool:
    return (kind.group, kind.name) == (group, name)


def named_bodies(given: GivenCluster, known: KnownRows) -> Iterator[Body]:
    """What these objects say, with the namespaces that they are in."""
    for ref in named_refs(given, known):
        if ref.namespace:
            yield namespace_body(ref.namespace)
        body = _body(ref)
        yield body
        if ref.kind == SERVICE:
            yield endpoints_of(body)


def namespace_body(name: str) -> Body:
    return _body(Ref(NAMESPACE, "", name))


def _body(ref: Ref) -> Body:
    least = _least().get((ref.kind.group, ref.kind.name), {})
    notes: Body = {
        **mapping(least, "metadata", "annotations"),
        SIMULATED_MARK: "true",
        NAMED: "true",
    }
    metadata: Body = {"name": ref.name, "annotations": notes}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    head: Body = {"apiVersion": ref.kind.api_version, "kind": ref.kind.name}
    if ref.kind == API_SERVICE:
        version, _, group = ref.name.partition(".")
        least = {"spec": {**mapping(least, "spec"), "group": group, "version": version}}
    return {**head, **least, "metadata": metadata}


@cache
def _least() -> dict[tuple[str, str], Body]:
    (document,) = read(LEAST.read_bytes(), LEAST.name)
    return {parse_title(title): cast("Body", body) for title, body in document.body.items()}


def statuses(given: GivenCluster, known: KnownRows, view: Visible, now: Ms) -> Iterator[Write]:
    """What the operators of these objects have written into them."""
    for ref in named_refs(given, known):
        stored = view.get(ref)
        row = presence.row_for(known, ref.kind)
        if stored is None or row is None or not row.stages[-1].writes:
            continue
        wanted: Json = status_of(row.stages[-1].writes, scope_of(stored.body, ref.kind))
        written = with_times(wanted, None, now)
        through = "" if ref.kind.name in row.statusless else "status"
        yield set_status(stored, written, subresource=through, manager=MAKER)
