"""The rows by kind, what they tell of one object, and which workload serves a kind."""

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
"""What workloads that serve kinds call themselves."""
GENERIC_WORDS = frozenset(
    {"api", "apis", "app", "apps", "cloud", "config", "core", "k8s", "x-k8s", "operator", "v1"}
)
"""Parts of groups that name nobody."""
CHART_OPERATORS = {
    "base": "istio",
    "connect": "onepassword",
    "gateway-helm": "gateway-api",
    "istio-base": "istio",
    "istiod": "istio",
    "kube-prometheus-stack": "prometheus-operator",
    "prometheus-operator-crds": "prometheus-operator",
    "strimzi-kafka-operator": "strimzi",
    "victoria-metrics-k8s-stack": "victoria-metrics-operator",
}
"""Charts that are not called as the operator whose definitions they bring."""
MIN_WORD_LENGTH = 3
_WORD = lazy_regex(r"[a-z0-9]+")


def selects_workload(served_by: WorkloadSelector, workload: JsonObject) -> bool:
    """Whether a workload, or a pod, is the one that is meant."""
    paths = (("metadata", "labels"), ("spec", "template", "metadata", "labels"))
    labels = [get_mapping(workload, *path) for path in paths]
    name = get_text(workload, "metadata", "name")
    return (
        any(wanted.items() <= known.items() for wanted in served_by.labels for known in labels)
        or any(fnmatchcase(name, pattern) for pattern in served_by.names)
        or any(part in image for image in list_images(workload) for part in served_by.images)
    )


def list_images(workload: JsonObject) -> list[str]:
    """The images of its containers, without tag and digest."""
    containers = list_containers(workload)
    images = (get_text(container, "image").partition("@")[0] for container in containers)
    return [re.sub(r":[^/:]*$", "", image) for image in images]


def list_containers(workload: JsonObject) -> list[JsonObject]:
    """The containers of a workload's template, or of a pod."""
    template = get_mapping(workload, "spec", "template")
    return get_mappings(template or workload, "spec", "containers")


def looks_like_operator(workload: JsonObject, kind: Kind) -> bool:
    """A guess: whether a workload looks like the operator of a kind that has no row.

    It does if its name, an image or a naming label says
    - the first part of the group, where the group has three or more: `widgets.example.com`;
    - another part of the group but the last, or the kind's name, and a trade: `widget-operator`.
    Parts that say nothing (`k8s`, `apps`) and those of less than three letters do not count.
    """
    first, others = _callings(kind)
    said = _said(workload)
    if first and first in said:
        return True
    trades = OPERATOR_WORDS & frozenset(_WORD.findall(said))
    return bool(trades) and any(word in said for word in others)


@cache
def _callings(kind: Kind) -> tuple[str, tuple[str, ...]]:
    """The word that is enough, and those that need a trade beside them."""
    *parts, _ = kind.group.split(".")
    named = [part for part in parts if len(part) >= MIN_WORD_LENGTH and part not in GENERIC_WORDS]
    first = parts[0] if parts[1:] and parts[0] in named else ""
    return first, (*(part for part in named if part != first), kind.name.lower())


def _said(workload: JsonObject) -> str:
    """All that a workload calls itself."""
    known = get_mapping(workload, "metadata", "labels")
    labels = [str(known.get(label, "")) for label in NAMING_LABELS]
    paths = (image.split("/", 1)[-1] for image in list_images(workload))
    return " ".join([get_text(workload, "metadata", "name"), *labels, *paths]).lower()


class KindCatalog(msgspec.Struct, frozen=True):
    """Rows, found by group and kind."""

    rows: dict[tuple[str, str], KindRow]
    groups: dict[str, tuple[WorkloadSelector, ...]]
    """Who serves the kinds of a group whose rows say so."""

    @classmethod
    def from_rows(cls, rows: Iterable[KindRow]) -> KindCatalog:
        """Of two rows for a kind the last counts: users' come behind those that tidegate brings."""
        known = {(row.group, kind): row for row in rows for kind in row.kinds}
        groups: dict[str, tuple[WorkloadSelector, ...]] = {}
        for (group, _), row in known.items():
            if row.served_by != WorkloadSelector():
                groups[group] = (*groups.get(group, ()), row.served_by)
        return cls(known, groups)

    def find_row(self, kind: Kind) -> KindRow | None:
        """The row of a kind, if it has one of its own."""
        return self.rows.get((kind.group, kind.name))

    def is_operator_chart(self, chart: str, kind: Kind) -> bool:
        """Whether a chart, known by its name alone, is that of the operator of a custom kind.

        A kind of which no operator is known has that of its group: `flagger` for `flagger.app`.
        """
        row = self.find_row(kind)
        rows = [row] if row else [one for one in self.rows.values() if one.group == kind.group]
        operators = {one.operator for one in rows if one.operator}
        if operators:
            return CHART_OPERATORS.get(chart, chart) in operators
        return chart in {*kind.group.split(".")[:-1]} - GENERIC_WORDS

    def is_operator(self, workload: dict[str, Json], kind: Kind) -> bool:
        """Whether a workload is the operator of a custom kind, available or not.

        A kind whose row does not say has the operator of its group's other kinds, if theirs do.
        """
        row = self.find_row(kind)
        if row is not None and row.served_by != WorkloadSelector():
            return selects_workload(row.served_by, workload)
        siblings = self.groups.get(kind.group, ())
        if siblings:
            return any(selects_workload(served_by, workload) for served_by in siblings)
        return looks_like_operator(workload, kind)


def is_ready(row: KindRow, body: dict[str, Json]) -> bool:
    """Whether an object is ready, and so as it is now."""
    seen = find_value(body, row.observed) if row.observed else None
    is_current = not isinstance(seen, int) or seen >= get_int(body, "metadata", "generation")
    return is_current and all_checks_pass(row.ready_when, body)


SIBILANT_ENDINGS = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"


def pluralize_kind(kind: str) -> str:
    """Return the English plural of a kind, in lower case."""
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in VOWELS:
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(SIBILANT_ENDINGS) else f"{word}s"
