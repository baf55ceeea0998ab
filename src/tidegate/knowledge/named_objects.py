"""What an object names in its fields: other objects, with the path that names each.

Rows say where: those about references, and what the row of an operator needs. Pure, told from the
object alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.knowledge.catalog import KindCatalog, list_images
from tidegate.knowledge.fields import find_fields
from tidegate.knowledge.references import (
    NeededObject,
    ProducedObject,
    list_needs,
    list_products,
    render_products,
)
from tidegate.knowledge.templates import TemplateOption, make_scope, parse_text, render_text
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject, Kind
from tidegate.model.k8s.paths import find_value, follow_path, parse_path
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import (
    Effect,
    Knowledge,
    PodsRow,
    ProducerRow,
    ReferenceRow,
    RequiredState,
)

KindName = tuple[str, str]
POD = ("", "Pod")


class Reference(NamedTuple):
    """One object that another names. With `keys`, these of its keys must be there."""

    group: str
    kind: str
    namespace: str
    name: str
    field: FieldPath
    effect: Effect
    until: RequiredState
    optional: bool = False
    keys: tuple[str, ...] = ()


class PodTemplate(NamedTuple):
    """The spec of an object's pods, where it stands, and their labels."""

    row: PodsRow
    path: FieldPath
    spec: JsonObject
    labels: JsonObject


class ReferenceFinder(msgspec.Struct, frozen=True):
    """Rows about references, by the kinds that they are of."""

    rows: KindCatalog
    of_pods: tuple[ReferenceRow, ...]
    of_kinds: dict[KindName, tuple[ReferenceRow, ...]]
    pods: dict[KindName, PodsRow]
    producers: dict[KindName, tuple[ProducerRow, ...]]

    @classmethod
    def from_knowledge(cls, known: Knowledge) -> ReferenceFinder:
        of_kinds: dict[KindName, tuple[ReferenceRow, ...]] = {}
        for row in known.references:
            for kind in row.of_kinds:
                of_kinds[row.of_group, kind] = (*of_kinds.get((row.of_group, kind), ()), row)
        producers: dict[KindName, tuple[ProducerRow, ...]] = {}
        for producer in known.producers:
            for kind in producer.kinds:
                name = (producer.group, kind)
                producers[name] = (*producers.get(name, ()), producer)
        return cls(
            KindCatalog.from_rows(known.rows),
            tuple(row for row in known.references if row.pods),
            of_kinds,
            {(row.group, kind): row for row in known.pods for kind in row.kinds},
            producers,
        )

    def find_pod_template(self, body: JsonObject, kind: Kind) -> PodTemplate | None:
        """The pods of an object, if objects of its kind have some."""
        row = self.pods.get((kind.group, kind.name))
        if row is None:
            return None
        spec = find_value(body, row.at)
        labels = find_value(body, row.labels) if row.labels else None
        path = tuple(step for step in parse_path(row.at) if isinstance(step, str | int))
        return PodTemplate(
            row,
            path,
            spec if isinstance(spec, dict) else {},
            labels if isinstance(labels, dict) else {},
        )

    def find_references(  # noqa: C901 - one loop for each sort of row
        self, body: JsonObject, kind: Kind, pods: PodTemplate | None = None
    ) -> Iterator[Reference]:
        """All that an object names; what nobody can tell the name of is left out."""
        scope = make_scope(body, kind)
        named: set[tuple[str, str, str]] = set()
        for row in self.of_kinds.get((kind.group, kind.name), ()):
            for one in _mentions(row, body, scope):
                named.add((one.group, one.kind, one.name))
                yield one
        if pods is not None:
            for row in self.of_pods:
                for one in _mentions(row, pods.spec, scope):
                    effect = _effect_on_pods(one.effect, pods.row, kind)
                    yield one._replace(field=(*pods.path, *one.field), effect=effect)
        if (known := self.rows.find_row(kind)) is not None:
            for needed in list_needs(known, body, kind):
                same = (needed.group, needed.kind, needed.name)
                if not needed.need.unmet and same in named:
                    continue  # a row about references says what comes of it
                yield Reference(
                    needed.group,
                    needed.kind,
                    needed.namespace,
                    needed.name,
                    _field_of(needed, scope),
                    Effect.BLOCKED,
                    needed.need.until,
                )

    def list_products(self, body: JsonObject, kind: Kind) -> Iterator[ProducedObject]:
        """All that is made of an object: by its operator, or because somebody else looks for it."""
        row = self.rows.find_row(kind)
        producers = self.producers.get((kind.group, kind.name), ())
        if row is None and not producers:
            return
        scope = make_scope(body, kind)
        told: list[ProducedObject] = []
        for producer in producers:
            parts = producer.images
            if not parts or any(part in image for image in list_images(body) for part in parts):
                told += render_products(producer.produces, scope)
        names = [_name_of(one) for one in told]
        if row is not None:
            yield from (one for one in list_products(row, scope) if _name_of(one) not in names)
        yield from told


def _name_of(made: ProducedObject) -> tuple[Json, Json, Json]:
    """What tells one object that is made from another."""
    metadata = get_mapping(made.body, "metadata")
    return made.body.get("kind"), metadata.get("namespace"), metadata.get("name")


def _mentions(row: ReferenceRow, body: JsonObject, scope: JsonObject) -> Iterator[Reference]:
    for places in row.at:
        for path, item in find_fields(body, places):
            inner = {**scope, "item": item}
            if not all_checks_pass(row.when, inner):
                continue
            name = render_text(row.name, inner)
            kind = render_text(row.kind, inner)
            if name and kind:
                yield Reference(
                    render_text(row.group, inner),
                    kind,
                    render_text(row.namespace, inner),
                    name,
                    path,
                    row.effect,
                    row.until,
                    get_mapping(item).get("optional") is True,
                    tuple(_keys(row.keys, item)),
                )


def _keys(paths: Iterable[str], item: Json) -> Iterator[str]:
    for path in paths:
        yield from (key for _, key in find_fields(item, path) if isinstance(key, str))


def _effect_on_pods(effect: Effect, row: PodsRow, kind: Kind) -> Effect:
    """A refused pod holds whoever would have it. Pods that come later hold nothing now."""
    if row.later:
        return Effect.NONE
    is_pod = (kind.group, kind.name) == POD
    return Effect.BLOCKED if effect is Effect.REJECTED and not is_pod else effect


def _field_of(needed: NeededObject, scope: JsonObject) -> FieldPath:
    """The field that a need takes its name from."""
    need = needed.need
    at = (needed.at,) if isinstance(needed.at, str | int) else ()
    start = (*_plain(parse_path(need.each)), *at) if need.each else ()
    for piece in parse_text(need.name):
        for option in piece if not isinstance(piece, str) else ():
            if start and option.path[:1] == ("item",):
                return (*start, *_plain(option.path[1:]))
            if found := _path_of(option, scope):
                return found
    return start


def _path_of(option: TemplateOption, scope: JsonObject) -> FieldPath:
    is_there = bool(option.path) and follow_path(scope, option.path) is not None
    path = _plain(option.path) if is_there else ()
    return ("metadata", *path) if path in (("name",), ("namespace",)) else path


def _plain(steps: Iterable[object]) -> FieldPath:
    return tuple(step for step in steps if isinstance(step, str | int))
