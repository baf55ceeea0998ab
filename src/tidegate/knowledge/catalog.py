"""Operator knowledge by kind, and the workload that serves a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.k8s.paths import find_value
from tidegate.model.operators.checks import all_checks_pass
from tidegate.model.operators.rows import KindRow, WorkloadSelector
from tidegate.model.text.lazy_regex import lazy_regex

NAMING_LABELS = ("app", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "k8s-app")
OPERATOR_WORDS = frozenset({"operator", "controller", "manager", "provider", "provisioner"})
"""Words in the names of workloads that serve kinds."""
GENERIC_WORDS = frozenset(
    {"api", "apis", "app", "apps", "cloud", "config", "core", "k8s", "x-k8s", "operator", "v1"}
)
"""Parts of API groups that identify no operator."""
CHART_OPERATORS = {
    "base": "istio",
    "connect": "onepassword",
    "gateway-helm": "gateway-api",
    "istio-base": "istio",
    "istiod": "istio",
    "kube-prometheus-stack": "prometheus-operator",
    "prometheus-operator-crds": "prometheus-operator",
    "rook": "rook-ceph",
    "strimzi-kafka-operator": "strimzi",
    "victoria-metrics-k8s-stack": "victoria-metrics-operator",
}
"""Operators of charts that have another name than the operator whose CRDs they install."""
MIN_WORD_LENGTH = 3
_WORD = lazy_regex(r"[a-z0-9]+")


def selects_workload(selector: WorkloadSelector, workload: JsonObject) -> bool:
    """Return whether a selector matches a workload or a pod: by labels, name or image."""
    paths = (("metadata", "labels"), ("spec", "template", "metadata", "labels"))
    labels = [get_mapping(workload, *path) for path in paths]
    name = get_text(workload, "metadata", "name")
    return (
        any(selected.items() <= actual.items() for selected in selector.labels for actual in labels)
        or any(fnmatchcase(name, pattern) for pattern in selector.names)
        or any(part in image for image in list_images(workload) for part in selector.images)
    )


def list_images(workload: JsonObject) -> list[str]:
    """Return the images of the containers, without tag and digest."""
    containers = list_containers(workload)
    images = (get_text(container, "image").partition("@")[0] for container in containers)
    return [re.sub(r":[^/:]*$", "", image) for image in images]


def list_containers(workload: JsonObject) -> list[JsonObject]:
    """Return the containers of a pod, or of the pod template of a workload."""
    template = get_mapping(workload, "spec", "template")
    return get_mappings(template or workload, "spec", "containers")


def looks_like_operator(workload: JsonObject, kind: Kind) -> bool:
    """Guess whether a workload is the operator of a kind that has no row.

    It is if its name, an image or a naming label contains
    - the first part of the group, if the group has three or more: `widgets.example.com`;
    - another part of the group but the last, or the kind, and an operator word: `widget-operator`.
    Generic parts (`k8s`, `apps`) and those of less than three letters do not count.
    """
    group_word, words = _identifying_words(kind)
    text = _searchable_text(workload)
    if group_word and group_word in text:
        return True
    operator_words = OPERATOR_WORDS & frozenset(_WORD.findall(text))
    return bool(operator_words) and any(word in text for word in words)


@cache
def _identifying_words(kind: Kind) -> tuple[str, tuple[str, ...]]:
    """Return the word that is enough alone, and those that need an operator word beside them."""
    *parts, _ = kind.group.split(".")
    specific = [
        part for part in parts if len(part) >= MIN_WORD_LENGTH and part not in GENERIC_WORDS
    ]
    group_word = parts[0] if parts[1:] and parts[0] in specific else ""
    return group_word, (*(part for part in specific if part != group_word), kind.name.lower())


def _searchable_text(workload: JsonObject) -> str:
    """Return the name, the naming labels and the images of a workload as one text."""
    all_labels = get_mapping(workload, "metadata", "labels")
    labels = [str(all_labels.get(label, "")) for label in NAMING_LABELS]
    paths = (image.split("/", 1)[-1] for image in list_images(workload))
    return " ".join([get_text(workload, "metadata", "name"), *labels, *paths]).lower()


class KindCatalog(msgspec.Struct, frozen=True):
    """Operator knowledge by kind."""

    rows: dict[tuple[str, str], KindRow]
    """Rows by group and kind."""
    groups: dict[str, tuple[WorkloadSelector, ...]]
    """Selectors of the operators of a group, from the rows of its kinds."""

    @classmethod
    def from_rows(cls, rows: Iterable[KindRow]) -> KindCatalog:
        """Return a catalog.

        Of two rows for a kind the last counts, so rows of users override built-in ones.
        """
        by_kind = {(row.group, kind): row for row in rows for kind in row.kinds}
        groups: dict[str, tuple[WorkloadSelector, ...]] = {}
        for (group, _), row in by_kind.items():
            if row.served_by != WorkloadSelector():
                groups[group] = (*groups.get(group, ()), row.served_by)
        return cls(by_kind, groups)

    def find_row(self, kind: Kind) -> KindRow | None:
        """Return the row of a kind, or None."""
        return self.rows.get((kind.group, kind.name))

    def is_operator_chart(self, chart: str, kind: Kind) -> bool:
        """Return whether a chart, known only by name, installs the operator of a custom kind.

        Without a row, the group is compared: `flagger` for `flagger.app`.
        """
        row = self.find_row(kind)
        rows = (
            [row]
            if row
            else [group_row for group_row in self.rows.values() if group_row.group == kind.group]
        )
        operators = {group_row.operator for group_row in rows if group_row.operator}
        if operators:
            return CHART_OPERATORS.get(chart, chart) in operators
        return chart in {*kind.group.split(".")[:-1]} - GENERIC_WORDS

    def is_operator(self, workload: dict[str, Json], kind: Kind) -> bool:
        """Return whether a workload is the operator of a custom kind, available or not.

        A kind without a selector has the operator of the other kinds of its group, if they have
        one.
        """
        row = self.find_row(kind)
        if row is not None and row.served_by != WorkloadSelector():
            return selects_workload(row.served_by, workload)
        selectors = self.groups.get(kind.group, ())
        if selectors:
            return any(selects_workload(selector, workload) for selector in selectors)
        return looks_like_operator(workload, kind)


def is_ready(row: KindRow, body: dict[str, Json]) -> bool:
    """Return whether an object is ready in its current generation."""
    observed = find_value(body, row.observed) if row.observed else None
    is_current = not isinstance(observed, int) or observed >= get_int(
        body, "metadata", "generation"
    )
    return is_current and all_checks_pass(row.ready_when, body)


SIBILANT_ENDINGS = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"


def pluralize_kind(kind: str) -> str:
    """Return the English plural of a kind, in lower case."""
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(SIBILANT_ENDINGS) else f"{word}s"
