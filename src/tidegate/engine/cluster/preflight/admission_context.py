"""Admission context of objects to be written: CRDs, namespaces, webhooks and policies.

They are live in the cluster or part of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission import (
    AdmissionRule,
    AdmissionSubject,
    build_rules,
    covers_kind,
    is_admission_kind,
    list_configurations,
    object_labels,
    selects,
)
from tidegate.engine.cluster.preflight.planned_objects import may_answer, may_provide
from tidegate.engine.cluster.preflight.probes import crd_kinds, failing_webhook
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.messages import ComparedObject, CompareResult
from tidegate.model.k8s.kinds import CRD, NAMESPACE
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Kind, Ref, ServedKind, object_body
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction, PlanItem
from tidegate.world.messages import ErrorOutcome, Forbidden, Success
from tidegate.world.requests import Get

UNWRITTEN_ACTIONS = AWAIT_ACTIONS | {ItemAction.DELETE, ItemAction.IGNORE}


class KnownCrd(NamedTuple):
    """The CRD of a kind, as planned or live."""

    object_ref: ClusterRef
    body: bytes = b""


class AdmissionContext(msgspec.Struct):
    """CRDs and admission configurations of a rollout. Each is read once."""

    evaluator: ObjectEvaluator
    live_cache: LiveCache
    planned_refs: set[ClusterRef] = msgspec.field(default_factory=set)
    """The objects that the plan writes."""
    _unparsed_crds: list[tuple[ClusterRef, PlanItem]] = msgspec.field(default_factory=list)
    _planned_crds: dict[tuple[str, Kind], KnownCrd] = msgspec.field(default_factory=dict)
    """CRDs that are part of the plan."""
    _live_crds: dict[tuple[str, Kind], KnownCrd] = msgspec.field(default_factory=dict)
    _planned_namespaces: dict[ClusterRef, PlanItem] = msgspec.field(default_factory=dict)
    _planned_configurations: dict[str, dict[ClusterRef, PlanItem]] = msgspec.field(
        default_factory=dict
    )
    """Webhook configurations and policies that are part of the plan, by cluster."""
    _live_configurations: dict[str, dict[ClusterRef, JsonObject]] = msgspec.field(
        default_factory=dict
    )

    def register(self, items: Mapping[ClusterRef, PlanItem]) -> None:
        """Register the CRDs, namespaces and admission configurations among planned items."""
        for object_ref, item in items.items():
            kind = object_ref.ref.kind
            if item.action in UNWRITTEN_ACTIONS:
                continue
            self.planned_refs.add(object_ref)
            if kind == CRD:
                self._unparsed_crds.append((object_ref, item))
            elif kind == NAMESPACE:
                self._planned_namespaces[object_ref] = item
            elif is_admission_kind(kind):
                self._planned_configurations.setdefault(object_ref.cluster, {})[object_ref] = item

    def load(self, items: Iterable[tuple[ClusterRef, PlanItem]]) -> Procedure[None]:
        """Read the missing admission configurations and CRDs for these items."""
        first_items = {
            (object_ref.cluster, object_ref.ref.kind): item for object_ref, item in items
        }
        for cluster in dict.fromkeys(cluster for cluster, _ in first_items):
            if cluster not in self._live_configurations:
                served = self.live_cache.served_kinds.get(cluster, {}).values()
                self._live_configurations[cluster] = yield from list_configurations(cluster, served)
        without_schema = [
            key
            for key, item in first_items.items()
            if self.evaluator.find_schema_violations(item, b"") is None
        ]
        if without_schema:
            self.parse_planned_crds()
            yield from self._read_live_crds(without_schema)

    def may_be_accepted_later(
        self, object_ref: ClusterRef, item: PlanItem, outcome: ErrorOutcome
    ) -> bool:
        """Return whether the plan may change what keeps a server from accepting an object."""
        webhook = failing_webhook(outcome)
        if webhook:
            configurations = self._live_configurations.get(object_ref.cluster, {})
            return may_answer(self.planned_refs, configurations, webhook)
        need = outcome.message if isinstance(outcome, Forbidden) else ""
        return may_provide(self.planned_refs, object_ref, item.body, need)

    def find_crd(self, object_ref: ClusterRef) -> KnownCrd | None:
        """Return the CRD of an object's kind, the planned one first; None if it is unknown."""
        key = (object_ref.cluster, object_ref.ref.kind)
        return self._planned_crds.get(key) or self._live_crds.get(key)

    def admission_rules(
        self, cluster: str, rewritten: frozenset[ClusterRef]
    ) -> tuple[AdmissionRules, AdmissionRules]:
        """Return the admission rules that apply now, and after `rewritten` is written."""
        live = self._live_configurations.get(cluster, {})
        planned = self._planned_configurations.get(cluster, {})
        current = {
            object_ref: body for object_ref, body in live.items() if object_ref not in rewritten
        }
        if not rewritten:
            current |= {
                object_ref: msgspec.json.decode(item.body) for object_ref, item in planned.items()
            }
            return AdmissionRules(build_rules(current)), AdmissionRules([])
        upcoming = {
            object_ref: msgspec.json.decode(item.body)
            for object_ref, item in planned.items()
            if object_ref in rewritten
        }
        future_rules = build_rules({**current, **upcoming}) if upcoming else []
        later = [rule for rule in future_rules if not upcoming.keys().isdisjoint(rule.object_refs)]
        return AdmissionRules(build_rules(current)), AdmissionRules(later)

    def _served_versions(self, object_ref: ClusterRef) -> tuple[ServedKind, ...]:
        """Return the versions in which a kind is or will be served, its own first."""
        kind = object_ref.ref.kind
        served = self.live_cache.served_kinds.get(object_ref.cluster, {})
        served_kind = served.get(kind)
        if served_kind is not None:
            resource = (kind.group, served_kind.plural)
            others = (
                version
                for version in served.values()
                if (version.kind.group, version.plural) == resource
            )
            return (served_kind, *(version for version in others if version.kind != kind))
        planned_crd = self._planned_crds.get((object_ref.cluster, kind))
        if planned_crd is None:
            return ()
        plural = planned_crd.object_ref.ref.name.partition(".")[0]
        return (ServedKind(kind, plural, bool(object_ref.ref.namespace), (), ()),)

    def matching_rules(
        self,
        rules: AdmissionRules,
        item: PlanItem,
        compared: ComparedObject,
        *,
        namespace: str = "",
    ) -> tuple[AdmissionRule, ...]:
        """Return the rules that match the write of an object, in its own or another `namespace`."""
        object_ref = compared.object_ref
        operation = "UPDATE" if compared.result is CompareResult.DIFFERENT else "CREATE"
        kind_rules = rules.for_kind(
            object_ref.ref.kind, operation, partial(self._served_versions, object_ref)
        )
        if not kind_rules:
            return ()
        subject = self._subject(object_ref, item, namespace or object_ref.ref.namespace)
        return tuple(rule for rule in kind_rules if selects(rule, subject))

    def is_namespace_pending(self, object_ref: ClusterRef) -> bool:
        """Return whether the namespace of an object is part of the plan and does not exist yet."""
        namespace_ref = ClusterRef(object_ref.cluster, Ref(NAMESPACE, "", object_ref.ref.namespace))
        return (
            namespace_ref in self._planned_namespaces
            and namespace_ref not in self.live_cache.objects
        )

    def _subject(self, object_ref: ClusterRef, item: PlanItem, namespace: str) -> AdmissionSubject:
        """Return the object as selectors see it when it is written."""
        labels = self._labels(object_ref, item)
        if object_ref.ref.kind == NAMESPACE:
            return AdmissionSubject(labels, object_ref.ref.name, labels)
        namespace_ref = ClusterRef(object_ref.cluster, Ref(NAMESPACE, "", namespace))
        planned = self._planned_namespaces.get(namespace_ref)
        is_known = planned is not None or namespace_ref in self.live_cache.objects
        return AdmissionSubject(
            labels, namespace, self._labels(namespace_ref, planned) if is_known else None
        )

    def _labels(self, object_ref: ClusterRef, item: PlanItem | None) -> JsonObject:
        live = self.live_cache.objects.get(object_ref)
        live_labels = object_labels(object_body(live)) if live else {}
        return live_labels | object_labels(msgspec.json.decode(item.body)) if item else live_labels

    def parse_planned_crds(self) -> None:
        """Read the kinds of the CRDs that are part of the plan."""
        for object_ref, item in self._unparsed_crds:
            for kind in crd_kinds(msgspec.json.decode(item.body)):
                self._planned_crds[object_ref.cluster, kind] = KnownCrd(object_ref, item.body)
        self._unparsed_crds.clear()

    def _read_live_crds(self, keys: Iterable[tuple[str, Kind]]) -> Procedure[None]:
        """Read live CRDs. The schema of a kind without readable CRD is known to the server only."""
        crd_refs: dict[tuple[str, Kind], ClusterRef] = {}
        for cluster, kind in keys:
            served = self.live_cache.served_kinds.get(cluster, {}).get(kind)
            key = (cluster, kind)
            if served is not None and key not in self._planned_crds and key not in self._live_crds:
                name = f"{served.plural}.{kind.group}"
                crd_refs[key] = ClusterRef(cluster, Ref(CRD, "", name))
        outcomes = yield tuple(
            ApiCall(object_ref.cluster, Get(object_ref.ref)) for object_ref in crd_refs.values()
        )
        for (key, object_ref), outcome in zip(crd_refs.items(), outcomes, strict=True):
            live = outcome.live if isinstance(outcome, Success) else None
            self._live_crds[key] = KnownCrd(object_ref, live.body if live else b"")


class AdmissionRules(msgspec.Struct):
    """Webhooks and policies, indexed by kind: most of them do not cover most kinds."""

    rules: list[AdmissionRule]
    _by_kind: dict[tuple[Kind, str], list[AdmissionRule]] = msgspec.field(default_factory=dict)

    def for_kind(
        self, kind: Kind, operation: str, served: Callable[[], tuple[ServedKind, ...]]
    ) -> list[AdmissionRule]:
        """Return the rules that cover an operation on a kind.

        `served` returns the versions in which the kind is served; it is called at most once per
        kind.
        """
        key = (kind, operation)
        if key not in self._by_kind:
            kinds = served()
            rules = self.rules if kinds else ()
            self._by_kind[key] = [rule for rule in rules if covers_kind(rule, kinds, operation)]
        return self._by_kind[key]
