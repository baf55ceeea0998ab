"""References of an object to other objects, with the field of each.

Reference rows and the needs of operator rows define which fields refer to objects.
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
    """A reference to an object."""

    group: str
    """API group of the object."""
    kind: str
    """Kind of the object."""
    namespace: str
    """Namespace of the object; empty for none."""
    name: str
    """Name of the object."""
    field: FieldPath
    """The field that holds the reference."""
    effect: Effect
    """What happens while the object does not exist."""
    until: RequiredState
    """The state that the object must have."""
    optional: bool = False
    """Whether the object may be missing."""
    keys: tuple[str, ...] = ()
    """The keys that the object must have; of a Service, the ports."""


class PodTemplate(NamedTuple):
    """The pod spec of an object."""

    row: PodsRow
    """The row about the place of the pod spec."""
    path: FieldPath
    """Where the spec is in the object."""
    spec: JsonObject
    """The pod spec."""
    labels: JsonObject
    """The labels of the pods."""


class ReferenceFinder(msgspec.Struct, frozen=True):
    """A finder of references, with the rows about them."""

    rows: KindCatalog
    """Operator knowledge by kind."""
    of_pods: tuple[ReferenceRow, ...]
    """Rows about references in pod specs."""
    of_kinds: dict[KindName, tuple[ReferenceRow, ...]]
    """Rows about references, by the kind that holds them."""
    pods: dict[KindName, PodsRow]
    """Rows about the place of the pod spec, by kind."""
    producers: dict[KindName, tuple[ProducerRow, ...]]
    """Rows about produced objects, by kind."""

    @classmethod
    def from_knowledge(cls, knowledge: Knowledge) -> ReferenceFinder:
        """Return a finder for the rows of the knowledge."""
        of_kinds: dict[KindName, tuple[ReferenceRow, ...]] = {}
        for row in knowledge.references:
            for kind in row.of_kinds:
                of_kinds[row.of_group, kind] = (*of_kinds.get((row.of_group, kind), ()), row)
        producers: dict[KindName, tuple[ProducerRow, ...]] = {}
        for producer in knowledge.producers:
            for kind in producer.kinds:
                name = (producer.group, kind)
                producers[name] = (*producers.get(name, ()), producer)
        return cls(
            KindCatalog.from_rows(knowledge.rows),
            tuple(row for row in knowledge.references if row.pods),
            of_kinds,
            {(row.group, kind): row for row in knowledge.pods for kind in row.kinds},
            producers,
        )

    def find_pod_template(self, body: JsonObject, kind: Kind) -> PodTemplate | None:
        """Return the pod template of an object, or None if its kind has none."""
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
        """Yield all references of an object whose names are known."""
        scope = make_scope(body, kind)
        named: set[tuple[str, str, str]] = set()
        for row in self.of_kinds.get((kind.group, kind.name), ()):
            for reference in _row_references(row, body, scope):
                named.add((reference.group, reference.kind, reference.name))
                yield reference
        if pods is not None:
            for row in self.of_pods:
                for reference in _row_references(row, pods.spec, scope):
                    effect = _effect_on_pods(reference.effect, pods.row, kind)
                    yield reference._replace(field=(*pods.path, *reference.field), effect=effect)
        if (kind_row := self.rows.find_row(kind)) is not None:
            for needed in list_needs(kind_row, body, kind):
                target = (needed.group, needed.kind, needed.name)
                if not needed.need.unmet and target in named:
                    continue  # a reference row defines the effect
                yield Reference(
                    needed.group,
                    needed.kind,
                    needed.namespace,
                    needed.name,
                    _need_field(needed, scope),
                    Effect.BLOCKED,
                    needed.need.until,
                )

    def list_products(self, body: JsonObject, kind: Kind) -> Iterator[ProducedObject]:
        """Yield all objects that an operator, or another producer, creates from an object."""
        row = self.rows.find_row(kind)
        producers = self.producers.get((kind.group, kind.name), ())
        if row is None and not producers:
            return
        scope = make_scope(body, kind)
        produced: list[ProducedObject] = []
        for producer in producers:
            parts = producer.images
            if not parts or any(part in image for image in list_images(body) for part in parts):
                produced += render_products(producer.produces, scope)
        names = [_product_key(product) for product in produced]
        if row is not None:
            yield from (
                product
                for product in list_products(row, scope)
                if _product_key(product) not in names
            )
        yield from produced


def _product_key(product: ProducedObject) -> tuple[Json, Json, Json]:
    """Return the kind, namespace and name of a produced object."""
    metadata = get_mapping(product.body, "metadata")
    return product.body.get("kind"), metadata.get("namespace"), metadata.get("name")


def _row_references(row: ReferenceRow, body: JsonObject, scope: JsonObject) -> Iterator[Reference]:
    for pattern in row.at:
        for path, item in find_fields(body, pattern):
            item_scope = {**scope, "item": item}
            if not all_checks_pass(row.when, item_scope):
                continue
            name = render_text(row.name, item_scope)
            kind = render_text(row.kind, item_scope)
            if name and kind:
                yield Reference(
                    render_text(row.group, item_scope),
                    kind,
                    render_text(row.namespace, item_scope),
                    name,
                    path,
                    row.effect,
                    row.until,
                    get_mapping(item).get("optional") is True,
                    tuple(_keys(row.keys, item)),
                )


def _keys(paths: Iterable[str], item: Json) -> Iterator[str]:
    """Yield the referenced keys, or the names and numbers of ports."""
    for path in paths:
        for _, key in find_fields(item, path):
            if isinstance(key, str | int) and not isinstance(key, bool):
                yield str(key)


def _effect_on_pods(effect: Effect, row: PodsRow, kind: Kind) -> Effect:
    """Return the effect on the owner of pods.

    A rejected pod blocks it; later pods do not matter.
    """
    if row.later:
        return Effect.NONE
    is_pod = (kind.group, kind.name) == POD
    return Effect.BLOCKED if effect is Effect.REJECTED and not is_pod else effect


def _need_field(needed: NeededObject, scope: JsonObject) -> FieldPath:
    """Return the field from which a need takes its name."""
    need = needed.need
    key = (needed.at,) if isinstance(needed.at, str | int) else ()
    start = (*_plain_steps(parse_path(need.each)), *key) if need.each else ()
    for piece in parse_text(need.name):
        for option in piece if not isinstance(piece, str) else ():
            if start and option.path[:1] == ("item",):
                return (*start, *_plain_steps(option.path[1:]))
            if path := _option_path(option, scope):
                return path
    return start


def _option_path(option: TemplateOption, scope: JsonObject) -> FieldPath:
    is_there = bool(option.path) and follow_path(scope, option.path) is not None
    path = _plain_steps(option.path) if is_there else ()
    return ("metadata", *path) if path in (("name",), ("namespace",)) else path


def _plain_steps(steps: Iterable[object]) -> FieldPath:
    return tuple(step for step in steps if isinstance(step, str | int))
