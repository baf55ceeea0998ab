"""For which Services nobody in the repository answers."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.graph.ground import GraphGround
from tidegate.graph.supply import SERVICE
from tidegate.knowledge.naming import Body
from tidegate.model.objects import Ref
from tidegate.model.reading import mapping

ANYHOW = "*"
"""The label of pods of which nobody knows theirs."""


def find_unanswered(
    objects: Iterable[tuple[int, str, Ref, Body]], ground: GraphGround
) -> frozenset[int]:
    """Of objects with their numbers and clusters, the Services that lead to no pods of others here.

    A custom resource beside a Service may come to pods: one that nobody knows to any, others to
    those that are labelled with its name.
    """
    makers: dict[tuple[str, str], set[str]] = {}
    found: dict[int, tuple[tuple[str, str], Body]] = {}
    for number, cluster, ref, body in objects:
        home = (cluster, ref.namespace)
        if (ref.kind.group, ref.kind.name) == SERVICE:
            if selector := mapping(body, "spec", "selector"):
                found[number] = (home, selector)
        elif label := _label(ref, ground):
            makers.setdefault(home, set()).add(label)
    return frozenset(
        number
        for number, (home, selector) in found.items()
        if not makers.get(home, set()) & {ANYHOW, *map(str, selector.values())}
    )


def _label(ref: Ref, ground: GraphGround) -> str:
    """How the pods are labelled that an operator may make of an object, if it may."""
    name = (ref.kind.group, ref.kind.name)
    if name in ground.served or name in ground.engines:
        return ""
    row = ground.naming.rows.row_of(ref.kind)
    return ANYHOW if row is None else ref.name if row.services else ""
