"""What one object asks for, and who brings it: by its kind, its fields, its texts and its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidegate.documents import FieldPath
from tidegate.graph.declared import Misread, Pointer, groups_of, pointers_of, rules_of
from tidegate.graph.ground import GraphGround
from tidegate.graph.hosts import Dialling, dialled_by
from tidegate.graph.supply import (
    DEFAULT_CLASS,
    NAMESPACE,
    SERVICE,
    STORAGE_CLASS,
    Supplier,
    Supply,
)
from tidegate.knowledge.naming import Body, Mention, Pods
from tidegate.model.graph import Tie
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import Effect, Row, Until
from tidegate.model.reading import mapping, mappings
from tidegate.model.unit import Strength

DEFINITIONS = "apiextensions.k8s.io"
UNITS = frozenset({"Application", "Kustomization", "HelmRelease"})
"""Kinds of units: what one of them says of another is a dependency, and read as one."""


class AskedFor(NamedTuple):
    """One thing that a node asks for; an operator that nobody brings has only a name."""

    ref: Ref | None
    tie: Tie
    effect: Effect = Effect.HELD
    until: Until = Until.EXISTS
    field: FieldPath = ()
    key: str = ""
    optional: bool = False
    strength: Strength = Strength.SOFT
    absent: bool = False
    name: str = ""
    certain: bool = True


Answer = tuple[AskedFor, Sequence[Supplier]]


def asked_by(
    ref: Ref, body: Body, pods: Pods | None, cluster: str, supply: Supply, ground: GraphGround
) -> Iterator[Answer]:
    """All that an object asks for. What every cluster has is not asked for."""
    name = (ref.kind.group, ref.kind.name)
    home = "" if ground.is_wide(*name) else ref.namespace
    if home and not ground.is_given(*NAMESPACE, "", home):
        yield _home(home, cluster, supply)
    if name not in ground.served and name not in ground.engines:
        yield from _of_its_kind(ref.kind, cluster, supply, ground)
    elif name == SERVICE:
        yield from _selected(ref, body, cluster, supply)
    for one in _each_once(ground.naming.mentions_of(body, ref.kind, pods)):
        if name not in ground.engines or one.kind not in UNITS:
            yield from _mentioned(one, cluster, supply, ground)
    yield from _stored(ref, body, cluster, supply)
    for dialling in dialled_by(ref, body, pods, cluster, supply, ground):
        yield _dialled(dialling, cluster, supply)
    yield from _told_in_notes(ref, body, cluster, supply, ground)


def _stored(ref: Ref, body: Body, cluster: str, supply: Supply) -> Iterator[Answer]:
    """The default class, for claims that name neither a class nor a volume."""
    claims: list[tuple[FieldPath, Body]]
    match ref.kind.group, ref.kind.name:
        case "", "PersistentVolumeClaim":
            claims = [(("spec",), mapping(body, "spec"))]
        case "apps", "StatefulSet":
            templates = enumerate(mappings(body, "spec", "volumeClaimTemplates"))
            claims = [
                (("spec", "volumeClaimTemplates", at, "spec"), mapping(one, "spec"))
                for at, one in templates
            ]
        case _:
            return
    for field, spec in claims:
        if "storageClassName" not in spec and not spec.get("volumeName"):
            default = Ref(_kind(*STORAGE_CLASS), "", DEFAULT_CLASS)
            found = supply.find(cluster, *STORAGE_CLASS, "", DEFAULT_CLASS)
            yield AskedFor(default, Tie.REFERENCE, field=field), found


def _each_once(mentions: Iterable[Mention]) -> Iterator[Mention]:
    """Rows about references and those of operators may speak of the same field.

    Who asks for a key of an object there asks for the object.
    """
    told = list(mentions)
    keyed = {(*_wish(one), one.field) for one in told if one.keys}
    seen: set[tuple[object, ...]] = set()
    for one in told:
        key, spot = (*_wish(one), one.keys), one.field
        spot = spot[:-1] if spot[-1:] == ("name",) else spot
        if key not in seen and (one.keys or (*_wish(one), spot) not in keyed):
            seen.add(key)
            yield one


def _wish(one: Mention) -> tuple[object, ...]:
    """What a mention asks for, wherever it stands."""
    return (*one[:4], one.effect, one.until, one.optional)


def _told_in_notes(
    ref: Ref, body: Body, cluster: str, supply: Supply, ground: GraphGround
) -> Iterator[Answer]:
    for pointer in pointers_of(body, ref.namespace):
        if isinstance(pointer, Pointer):
            yield _pointed(pointer, cluster, supply, ground)


def _home(namespace: str, cluster: str, supply: Supply) -> Answer:
    home, field = Ref(_kind(*NAMESPACE), "", namespace), ("metadata", "namespace")
    asked = AskedFor(home, Tie.NAMESPACE, Effect.REFUSED, field=field)
    return asked, supply.find(cluster, *NAMESPACE, "", namespace)


def _of_its_kind(kind: Kind, cluster: str, supply: Supply, ground: GraphGround) -> Iterator[Answer]:
    """Its definition, and whoever serves it."""
    definers = supply.definers(cluster, kind.group, kind.name)
    definition = Ref(_kind(DEFINITIONS, "CustomResourceDefinition"), "", definition_name(kind))
    yield (
        AskedFor(definition, Tie.DEFINITION, Effect.REFUSED, field=("kind",)),
        [Supplier(one, is_made=True) for one in definers],
    )
    row = ground.naming.rows.row_of(kind)
    if row is not None and row.served_by.outside:
        return
    servers = supply.servers_of(cluster, kind)
    is_known = (row is not None and row.operator) or kind.group in ground.naming.rows.groups
    if servers or is_known:
        effect = Effect.HELD if row is not None and row.ready_when else Effect.NOTHING
        asked = AskedFor(
            None, Tie.OPERATOR, effect, Until.READY, ("kind",), name=_operator(row, kind)
        )
        yield asked, [Supplier(one, is_made=True) for one in servers]


def definition_name(kind: Kind) -> str:
    """What its definition is called, as far as English goes; only for people."""
    word = kind.name.lower()
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        plural = f"{word[:-1]}ies"
    else:
        plural = f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
    return f"{plural}.{kind.group}"


def _operator(row: Row | None, kind: Kind) -> str:
    return (row.operator if row is not None else "") or kind.group


def _mentioned(one: Mention, cluster: str, supply: Supply, ground: GraphGround) -> Iterator[Answer]:
    if ground.is_given(one.group, one.kind, one.namespace, one.name):
        return
    suppliers = supply.find(cluster, one.group, one.kind, one.namespace, one.name)
    if not suppliers and (one.group, one.kind) in ground.engines:
        return  # discovery speaks of units and sources that are not there
    ref = Ref(_kind(one.group, one.kind), one.namespace, one.name)
    for key in one.keys or ("",):
        asked = AskedFor(ref, Tie.REFERENCE, one.effect, one.until, one.field, key, one.optional)
        yield asked, suppliers


def _dialled(one: Dialling, cluster: str, supply: Supply) -> Answer:
    ref = Ref(_kind(*SERVICE), one.namespace, one.name)
    asked = AskedFor(
        ref, Tie.HOST, one.effect, Until.SERVING, one.field, one.port, certain=one.certain
    )
    return asked, supply.find(cluster, *SERVICE, one.namespace, one.name)


def _selected(ref: Ref, body: Body, cluster: str, supply: Supply) -> Iterator[Answer]:
    """The workloads whose pods answer for a Service; others may, whom nobody here knows."""
    selector = mapping(body, "spec", "selector")
    found = supply.behind(cluster, ref.namespace, selector)
    if found:
        asked = AskedFor(ref, Tie.SELECTS, Effect.NOTHING, Until.READY, ("spec", "selector"))
        yield asked, [Supplier(one, is_made=False) for one in found]


def _pointed(one: Pointer, cluster: str, supply: Supply, ground: GraphGround) -> Answer:
    groups = [one.group] if one.group is not None else supply.groups_with(one.kind, ground)
    suppliers = [
        supplier
        for group in groups
        for supplier in supply.find(cluster, group, one.kind, one.namespace, one.name)
    ]
    ref = Ref(_kind(groups[0] if groups else "", one.kind), one.namespace, one.name)
    asked = AskedFor(
        ref,
        Tie.ANNOTATION,
        until=one.until,
        field=("metadata", "annotations", one.annotation),
        strength=Strength.HARD,
        absent=one.absent,
    )
    return asked, suppliers


def ask_for_groups(named: Iterable[tuple[int, Body]]) -> Iterator[tuple[int, int, str]]:
    """By kapp's rules: who comes before whom, and the annotation that says so."""
    named = list(named)
    members: dict[str, list[int]] = {}
    ruled = []
    for number, body in named:
        for group in groups_of(body):
            members.setdefault(group, []).append(number)
        ruled += [(number, rule) for rule in rules_of(body) if not isinstance(rule, Misread)]
    for number, rule in ruled:
        for other in members.get(rule.group, ()):
            if other != number:
                before, after = (other, number) if rule.is_after else (number, other)
                yield before, after, rule.annotation


def _kind(group: str, name: str) -> Kind:
    return Kind(group, "", name)
