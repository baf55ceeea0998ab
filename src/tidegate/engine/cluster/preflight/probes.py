"""Probes of what an object provides: the kinds of a CRD, the responses of a webhook.

A webhook is probed with a dry run of an object that it matches: it is not ready while the
server reports `failed calling webhook`. A denial is a response, too. If no dry run is conclusive,
its endpoints must be ready and its CA bundle must be set. A webhook with failure policy `Ignore`
is not probed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import msgspec

from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission import (
    NAMESPACE_RESOURCE,
    has_matching_rule,
    object_labels,
)
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.cluster.writes import build_write
from tidegate.engine.evaluator import WritePayload
from tidegate.engine.messages import Failure
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import ENDPOINT_SLICE, NAMESPACE
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import (
    ClusterRef,
    Json,
    JsonObject,
    Kind,
    Ref,
    ServedKind,
    object_body,
)
from tidegate.model.plans.plan import ItemAction, PlanItem, PlannedUnit
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.world.messages import (
    AlreadyExists,
    ListPage,
    NoResponse,
    Outcome,
    ServerError,
    Success,
    TooManyRequests,
    is_error,
)
from tidegate.world.requests import Get, List, Selection, Verb, View, Write

PlannedItems: TypeAlias = Sequence[tuple[PlanItem, PlannedUnit]]
PROBE_MANAGER = "tidegate-probe"
"""Field manager of dry runs that change nothing."""
CALL_FAILED = "failed calling webhook"
FAILED_CALL = lazy_regex(rf'{CALL_FAILED} "(?P<name>[^"]+)"')
DENIED = "denied the request"
SERVER_ERROR = 500
MAX_TRIALS = 3
"""Number of objects that are tried before a webhook counts as impossible to probe."""
MAX_KINDS = 3
"""Number of kinds that are searched for a live object."""
REPEATS = 2
"""Equal answers required: a server uses a webhook soon after storing it, not at once."""
SERVICE_NAME = "kubernetes.io/service-name"


def probe(
    object_ref: ClusterRef, live_cache: LiveCache, planned: PlannedItems
) -> Procedure[Failure | None]:
    """Return why an object does not serve yet; None if it serves.

    `planned`: the objects of its cluster that can be used for dry runs.
    """
    live = live_cache.objects.get(object_ref)
    if live is None:
        return Failure("Missing", "not found")
    body = object_body(live)
    if object_ref.ref.kind.name == "CustomResourceDefinition":
        return (yield from _probe_crd(object_ref, body, live_cache))
    return (yield from probe_webhooks(object_ref.cluster, body, live_cache, planned))


def _probe_crd(
    object_ref: ClusterRef, body: JsonObject, live_cache: LiveCache
) -> Procedure[Failure | None]:
    kinds = crd_kinds(body)
    if not _are_served(object_ref, live_cache, kinds):
        yield from live_cache.discover_kinds((object_ref.cluster,))
    missing = [
        kind for kind in kinds if kind not in live_cache.served_kinds.get(object_ref.cluster, {})
    ]
    if missing:
        return Failure("NotServed", f"`{missing[0]}` is not served yet")
    return None


def _are_served(object_ref: ClusterRef, live_cache: LiveCache, kinds: list[Kind]) -> bool:
    return all(kind in live_cache.served_kinds.get(object_ref.cluster, {}) for kind in kinds)


def crd_kinds(body: JsonObject) -> list[Kind]:
    """Return the kinds that a CRD serves."""
    group = get_text(body, "spec", "group")
    name = get_text(body, "spec", "names", "kind")
    versions = get_mappings(body, "spec", "versions")
    return [
        Kind(group, get_text(version, "name"), name)
        for version in versions
        if get_value(version, "served") is True
    ]


def probe_webhooks(
    cluster: str, body: JsonObject, live_cache: LiveCache, planned: PlannedItems
) -> Procedure[Failure | None]:
    """Return why a webhook of a configuration does not answer; None if all of them answer."""
    for webhook in get_mappings(body, "webhooks"):
        if get_text(webhook, "failurePolicy", default="Fail") != "Ignore":
            failure = yield from _WebhookProbe(cluster, webhook, live_cache, planned).run()
            if failure is not None:
                return failure
    return None


class _ProbeResult(msgspec.Struct, frozen=True):
    """Result of a conclusive dry run."""

    failure: Failure | None = None


class _WebhookProbe(msgspec.Struct):
    """Probe of one webhook, with the objects that it may be tried with."""

    cluster: str
    webhook: JsonObject
    live_cache: LiveCache
    planned: PlannedItems
    namespace_labels: dict[str, JsonObject | None] = msgspec.field(default_factory=dict)
    """Labels of namespaces; None for a namespace that does not exist."""

    def run(self) -> Procedure[Failure | None]:
        """Try objects until a dry run is conclusive.

        Otherwise check the endpoints of the webhook.
        """
        result: _ProbeResult | None = None
        if supports_dry_run(self.webhook):
            result = (yield from self._try_planned()) or (yield from self._try_live())
        return result.failure if result else (yield from self._check_endpoints())

    def _try_planned(self) -> Procedure[_ProbeResult | None]:
        tried = 0
        for trial in self._planned_trials():
            if not (yield from self._selects_namespace(trial.ref)):
                continue
            result = yield from self._try_write(trial)
            tried += 1
            if result or tried == MAX_TRIALS:
                return result
        return None

    def _try_live(self) -> Procedure[_ProbeResult | None]:
        for served in islice(self._updatable_kinds(), MAX_KINDS):
            trial = yield from self._live_trial(served)
            result = (yield from self._try_write(trial)) if trial else None
            if result:
                return result
        return None

    def _try_write(self, trial: Write) -> Procedure[_ProbeResult | None]:
        outcome: Outcome | None = None
        for _ in range(REPEATS):
            (outcome,) = yield (ApiCall(self.cluster, trial),)
            failure = webhook_failure(outcome, self._name)
            if failure is not None:
                return _ProbeResult(failure)
        return _ProbeResult() if outcome and is_webhook_answer(outcome) else None

    def _planned_trials(self) -> Iterator[Write]:
        """Yield dry runs of planned objects that the webhook matches."""
        kinds = self.live_cache.served_kinds.get(self.cluster, {})
        for item, unit in self.planned:
            served = kinds.get(item.ref.kind)
            if served is None or item.action is ItemAction.DELETE:
                continue
            trial = self._trial(item, unit, served)
            if trial is not None and self._selects(msgspec.json.decode(item.body)):
                yield trial

    def _trial(self, item: PlanItem, unit: PlannedUnit, served: ServedKind) -> Write | None:
        exists = ClusterRef(self.cluster, item.ref) in self.live_cache.objects
        if has_matching_rule(self.webhook, served, "UPDATE" if exists else "CREATE"):
            return build_write(item, unit, WritePayload(item.body), None, dry_run=True)
        if exists and has_matching_rule(self.webhook, served, "CREATE"):
            # The API server reports AlreadyExists only after it called all webhooks.
            return Write(verb=Verb.CREATE, ref=item.ref, body=item.body, dry_run=True)
        return None

    def _updatable_kinds(self) -> Iterator[ServedKind]:
        for served in self.live_cache.served_kinds.get(self.cluster, {}).values():
            can_be_tried = "list" in served.verbs and "patch" in served.verbs
            if can_be_tried and has_matching_rule(self.webhook, served, "UPDATE"):
                yield served

    def _live_trial(self, served: ServedKind) -> Procedure[Write | None]:
        """Return a dry run that changes nothing of a live object; None if no object is found."""
        selection = Selection(served.kind, view=View.METADATA)
        (outcome,) = yield (ApiCall(self.cluster, List(selection, limit=1)),)
        if not isinstance(outcome, ListPage) or not outcome.items:
            return None
        live = outcome.items[0]
        if not self._selects(object_body(live)) or not (
            yield from self._selects_namespace(live.ref)
        ):
            return None
        return _noop_apply(live.ref)

    def _selects(self, body: JsonObject) -> bool:
        return selector_matches(get_mapping(self.webhook, "objectSelector"), object_labels(body))

    def _selects_namespace(self, ref: Ref) -> Procedure[bool]:
        """Return whether the webhook matches objects of a namespace, which must exist."""
        served = self.live_cache.served_kinds[self.cluster][ref.kind]
        is_namespace = (ref.kind.group, served.plural) == NAMESPACE_RESOURCE
        name = ref.name if is_namespace else ref.namespace
        selector = get_mapping(self.webhook, "namespaceSelector")
        if not name or not selector:
            return True
        if name not in self.namespace_labels:
            (outcome,) = yield (
                ApiCall(self.cluster, Get(Ref(NAMESPACE, "", name), View.METADATA)),
            )
            live = outcome.live if isinstance(outcome, Success) else None
            self.namespace_labels[name] = object_labels(object_body(live)) if live else None
        labels = self.namespace_labels[name]
        return labels is not None and selector_matches(selector, labels)

    def _check_endpoints(self) -> Procedure[Failure | None]:
        """Return why the Service of the webhook is not ready.

        A webhook with a URL cannot be checked.
        """
        service = get_mapping(self.webhook, "clientConfig", "service")
        if not service:
            return None
        if not get_text(self.webhook, "clientConfig", "caBundle"):
            return Failure("NoCABundle", f"webhook `{self._name}` has no CA bundle yet")
        namespace, name = get_text(service, "namespace"), get_text(service, "name")
        selection = Selection(ENDPOINT_SLICE, namespace, label_selector=f"{SERVICE_NAME}={name}")
        (outcome,) = yield (ApiCall(self.cluster, List(selection)),)
        slices = outcome.items if isinstance(outcome, ListPage) else ()
        if any(has_ready_endpoint(object_body(live)) for live in slices):
            return None
        message = f"Service {namespace}/{name} of webhook `{self._name}` has no ready endpoints"
        return Failure("NoEndpoints", message)

    @property
    def _name(self) -> str:
        return get_text(self.webhook, "name")


def supports_dry_run(webhook: JsonObject) -> bool:
    """Return whether a dry run of a matching object certainly reaches the webhook.

    The server rejects dry runs if side effects are possible, and only it can evaluate match
    conditions.
    """
    is_dry_run_safe = get_text(webhook, "sideEffects") in ("None", "NoneOnDryRun")
    return is_dry_run_safe and not get_list(webhook, "matchConditions")


def webhook_failure(outcome: Outcome, name: str) -> Failure | None:
    """Return the failure of a webhook that an outcome shows; None if it shows none."""
    if not is_error(outcome):
        return None
    if CALL_FAILED in outcome.message:
        message = f"webhook `{name}` does not respond: {sanitize(outcome.message)}"
        return Failure("WebhookUnreachable", message)
    is_down = isinstance(outcome, ServerError) and outcome.status >= SERVER_ERROR
    if is_down or isinstance(outcome, NoResponse | TooManyRequests):
        message = f"webhook `{name}` does not support dry runs: {sanitize(outcome.message)}"
        return Failure("NoDryRun", message)
    return None


def failing_webhook(outcome: Outcome) -> str:
    """Return the webhook that the server could not call; empty if there is none.

    Like `ErrCallingWebhook` in `pkg/admission/plugin/webhook/errors.go` of k8s.io/apiserver 0.36.4.
    """
    match = FAILED_CALL.search(outcome.message) if is_error(outcome) else None
    return match["name"] if match else ""


def is_webhook_answer(outcome: Outcome) -> bool:
    """Return whether all webhooks were called and answered; other checks may reject before that."""
    if is_error(outcome):
        return isinstance(outcome, AlreadyExists) or DENIED in outcome.message
    return True


def has_ready_endpoint(body: JsonObject) -> bool:
    """Return whether an EndpointSlice has a ready endpoint.

    A missing `ready` condition means ready.
    """
    return any(
        get_value(endpoint, "conditions", "ready") is not False
        and bool(get_list(endpoint, "addresses"))
        for endpoint in get_mappings(body, "endpoints")
    )


def _noop_apply(ref: Ref) -> Write:
    metadata: dict[str, Json] = {"name": ref.name}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    body: Json = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": metadata,
    }
    encoded = msgspec.json.encode(body)
    return Write(verb=Verb.APPLY, ref=ref, body=encoded, manager=PROBE_MANAGER, dry_run=True)
