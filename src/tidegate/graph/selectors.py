"""Services without matching pods in the repository."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.graph.inputs import GraphInputs
from tidegate.graph.providers import SERVICE_KIND
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject, Ref

ANY_LABEL = "*"
"""The label of pods whose labels are unknown."""


def find_services_without_pods(
    objects: Iterable[tuple[int, str, Ref, JsonObject]], inputs: GraphInputs
) -> frozenset[int]:
    """Return the numbers of Services that select no pods of this repository.

    An operator may create pods for a custom resource next to a Service: with any labels if its kind
    is unknown, else with its name as a label.
    """
    labels_by_namespace: dict[tuple[str, str], set[str]] = {}
    services: dict[int, tuple[tuple[str, str], JsonObject]] = {}
    for number, cluster, ref, body in objects:
        namespace_key = (cluster, ref.namespace)
        if (ref.kind.group, ref.kind.name) == SERVICE_KIND:
            if selector := get_mapping(body, "spec", "selector"):
                services[number] = (namespace_key, selector)
        elif label := _pod_label(ref, inputs):
            labels_by_namespace.setdefault(namespace_key, set()).add(label)
    return frozenset(
        number
        for number, (namespace_key, selector) in services.items()
        if not labels_by_namespace.get(namespace_key, set())
        & {ANY_LABEL, *map(str, selector.values())}
    )


def _pod_label(ref: Ref, inputs: GraphInputs) -> str:
    """Return the label of pods that an operator may create for an object, or "" if none."""
    kind_key = (ref.kind.group, ref.kind.name)
    if kind_key in inputs.served_kinds or kind_key in inputs.engine_kinds:
        return ""
    row = inputs.references.rows.find_row(ref.kind)
    return ANY_LABEL if row is None else ref.name if row.services else ""
