"""Asking for what an object promises: a definition's kinds, a webhook's answer.

Does a webhook answer? A dry run of an object that it is asked about tells: it is not ready while
the server says `failed calling webhook`. A denial is an answer. Where no dry run can tell, its
endpoints must be ready and its CA bundle be set. A webhook that fails open holds nobody up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import msgspec

from tidegate.engine.means import Body, Draft
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.matching import NAMESPACES, is_asked, labels_of
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.writing import read_body, wish
from tidegate.engine.vocabulary import Trouble
from tidegate.errors import foreign
from tidegate.model.labels import matches
from tidegate.model.objects import Json, Kind, Ref, Served, Spot
from tidegate.model.plan import Deed, Item, PlannedUnit
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.world.calls import Get, List, Selection, Verb, View, Write
from tidegate.world.facts import Done, Exists, Failed, Listed, Lost, Outcome, Throttled, is_refusal

Planned: TypeAlias = Sequence[tuple[Item, PlannedUnit]]

PROBER = "tidegate-probe"
"""The manager of dry runs that want nothing changed."""
UNANSWERED = "failed calling webhook"
DENIED = "denied the request"
SERVER_ERROR = 500
TRIALS = 3
"""So many objects are tried before a webhook counts as one that cannot be probed."""
KINDS = 3
"""So many kinds are searched for an object that lives."""
ASKED = 2
"""An answer counts when it comes again: a server acts on a webhook soon after it has stored it."""
NAMESPACE = Kind("", "v1", "Namespace")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
SERVICE_NAME = "kubernetes.io/service-name"


def probe(spot: Spot, outlook: Outlook, planned: Planned) -> Errand[Trouble | None]:
    """None: it serves. `planned` are the objects of its cluster that can be tried."""
    live = outlook.lives.get(spot)
    if live is None:
        return Trouble("Missing", "it is not there")
    body = read_body(live)
    if spot.ref.kind.name == "CustomResourceDefinition":
        return (yield from _probe_definition(spot, body, outlook))
    return (yield from probe_webhooks(spot.cluster, body, outlook, planned))


def _probe_definition(spot: Spot, body: Body, outlook: Outlook) -> Errand[Trouble | None]:
    kinds = defined_kinds(body)
    if not _served(spot, outlook, kinds):
        yield from outlook.catalogue((spot.cluster,))
    missing = [kind for kind in kinds if kind not in outlook.served.get(spot.cluster, {})]
    if missing:
        return Trouble("NotServed", f"`{missing[0]}` is not served yet")
    return None


def _served(spot: Spot, outlook: Outlook, kinds: list[Kind]) -> bool:
    return all(kind in outlook.served.get(spot.cluster, {}) for kind in kinds)


def defined_kinds(body: Body) -> list[Kind]:
    """The kinds that a definition says it serves."""
    group = text(body, "spec", "group")
    name = text(body, "spec", "names", "kind")
    versions = mappings(body, "spec", "versions")
    return [
        Kind(group, text(version, "name"), name)
        for version in versions
        if part(version, "served") is True
    ]


def probe_webhooks(
    cluster: str, body: Body, outlook: Outlook, planned: Planned
) -> Errand[Trouble | None]:
    """What is wrong with the webhooks of a configuration; None: all of them answer."""
    for hook in mappings(body, "webhooks"):
        if text(hook, "failurePolicy", default="Fail") != "Ignore":
            trouble = yield from _Probe(cluster, hook, outlook, planned).ask()
            if trouble is not None:
                return trouble
    return None


class _Heard(msgspec.Struct, frozen=True):
    """What a dry run told of a webhook; some tell nothing."""

    trouble: Trouble | None = None


class _Probe(msgspec.Struct):
    """One webhook, and where objects for it may be found."""

    cluster: str
    hook: Body
    outlook: Outlook
    planned: Planned
    namespaces: dict[str, Body | None] = msgspec.field(default_factory=dict)
    """The labels of namespaces; None for one that is not there."""

    def ask(self) -> Errand[Trouble | None]:
        """Try objects until one tells; else look at what can be seen of the webhook."""
        heard: _Heard | None = None
        if takes_dry_runs(self.hook):
            heard = (yield from self._try_planned()) or (yield from self._try_living())
        return heard.trouble if heard else (yield from self._look_at_endpoints())

    def _try_planned(self) -> Errand[_Heard | None]:
        tried = 0
        for trial in self._planned_trials():
            if not (yield from self._takes_namespace(trial.ref)):
                continue
            heard = yield from self._try(trial)
            tried += 1
            if heard or tried == TRIALS:
                return heard
        return None

    def _try_living(self) -> Errand[_Heard | None]:
        for served in islice(self._updatable(), KINDS):
            trial = yield from self._living_trial(served)
            heard = (yield from self._try(trial)) if trial else None
            if heard:
                return heard
        return None

    def _try(self, trial: Write) -> Errand[_Heard | None]:
        outcome: Outcome | None = None
        for _ in range(ASKED):
            (outcome,) = yield (Ask(self.cluster, trial),)
            trouble = trouble_in(outcome, self._name)
            if trouble is not None:
                return _Heard(trouble)
        return _Heard() if outcome and is_answer(outcome) else None

    def _planned_trials(self) -> Iterator[Write]:
        """Dry runs of planned objects that the webhook is asked about."""
        kinds = self.outlook.served.get(self.cluster, {})
        for item, unit in self.planned:
            served = kinds.get(item.ref.kind)
            if served is None or item.deed is Deed.DELETE:
                continue
            trial = self._trial(item, unit, served)
            if trial is not None and self._takes(msgspec.json.decode(item.body)):
                yield trial

    def _trial(self, item: Item, unit: PlannedUnit, served: Served) -> Write | None:
        lives = Spot(self.cluster, item.ref) in self.outlook.lives
        if is_asked(self.hook, served, "UPDATE" if lives else "CREATE"):
            return wish(item, unit, Draft(item.body), None, dry_run=True)
        if lives and is_asked(self.hook, served, "CREATE"):
            # That it is there already is said after all webhooks have been asked.
            return Write(verb=Verb.CREATE, ref=item.ref, body=item.body, dry_run=True)
        return None

    def _updatable(self) -> Iterator[Served]:
        for served in self.outlook.served.get(self.cluster, {}).values():
            can_be_tried = "list" in served.verbs and "patch" in served.verbs
            if can_be_tried and is_asked(self.hook, served, "UPDATE"):
                yield served

    def _living_trial(self, served: Served) -> Errand[Write | None]:
        """A dry run that changes nothing of an object that lives, where there is one to find."""
        selection = Selection(served.kind, view=View.METADATA)
        (found,) = yield (Ask(self.cluster, List(selection, limit=1)),)
        if not isinstance(found, Listed) or not found.items:
            return None
        live = found.items[0]
        if not self._takes(read_body(live)) or not (yield from self._takes_namespace(live.ref)):
            return None
        return _touch(live.ref)

    def _takes(self, body: Body) -> bool:
        return matches(mapping(self.hook, "objectSelector"), labels_of(body))

    def _takes_namespace(self, ref: Ref) -> Errand[bool]:
        """Whether the webhook is asked about what is in a namespace, which must be there."""
        served = self.outlook.served[self.cluster][ref.kind]
        is_namespace = (ref.kind.group, served.plural) == NAMESPACES
        name = ref.name if is_namespace else ref.namespace
        selector = mapping(self.hook, "namespaceSelector")
        if not name or not selector:
            return True
        if name not in self.namespaces:
            (found,) = yield (Ask(self.cluster, Get(Ref(NAMESPACE, "", name), View.METADATA)),)
            live = found.live if isinstance(found, Done) else None
            self.namespaces[name] = labels_of(read_body(live)) if live else None
        labels = self.namespaces[name]
        return labels is not None and matches(selector, labels)

    def _look_at_endpoints(self) -> Errand[Trouble | None]:
        """Whether the Service that is called has somebody behind it; an address says nothing."""
        service = mapping(self.hook, "clientConfig", "service")
        if not service:
            return None
        if not text(self.hook, "clientConfig", "caBundle"):
            return Trouble("NoAuthority", f"webhook `{self._name}` has no CA bundle yet")
        place, name = text(service, "namespace"), text(service, "name")
        selection = Selection(SLICE, place, labels=f"{SERVICE_NAME}={name}")
        (found,) = yield (Ask(self.cluster, List(selection)),)
        slices = found.items if isinstance(found, Listed) else ()
        if any(has_ready_endpoint(read_body(live)) for live in slices):
            return None
        sentence = f"Service {place}/{name} of webhook `{self._name}` has no endpoint that is ready"
        return Trouble("NoEndpoints", sentence)

    @property
    def _name(self) -> str:
        return text(self.hook, "name")


def takes_dry_runs(hook: Body) -> bool:
    """Whether a dry run of a matching object is certain to reach the webhook.

    The server refuses dry runs where side effects are possible. Only it can evaluate conditions.
    """
    harmless = text(hook, "sideEffects") in ("None", "NoneOnDryRun")
    return harmless and not listed(hook, "matchConditions")


def trouble_in(outcome: Outcome, name: str) -> Trouble | None:
    """What an outcome says against the webhook; not every outcome says anything."""
    if not is_refusal(outcome):
        return None
    if UNANSWERED in outcome.message:
        sentence = f"webhook `{name}` does not answer: {foreign(outcome.message)}"
        return Trouble("NoAnswer", sentence)
    is_down = isinstance(outcome, Failed) and outcome.status >= SERVER_ERROR
    if is_down or isinstance(outcome, Lost | Throttled):
        return Trouble("NoDryRun", f"webhook `{name}` cannot be tried: {foreign(outcome.message)}")
    return None


def is_answer(outcome: Outcome) -> bool:
    """Whether all webhooks were asked and answered; others may refuse before that."""
    if is_refusal(outcome):
        return isinstance(outcome, Exists) or DENIED in outcome.message
    return True


def has_ready_endpoint(body: Body) -> bool:
    """An endpoint that does not say whether it is ready is."""
    return any(
        part(endpoint, "conditions", "ready") is not False and bool(listed(endpoint, "addresses"))
        for endpoint in mappings(body, "endpoints")
    )


def _touch(ref: Ref) -> Write:
    metadata: dict[str, Json] = {"name": ref.name}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    body: Json = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": metadata,
    }
    encoded = msgspec.json.encode(body)
    return Write(verb=Verb.APPLY, ref=ref, body=encoded, manager=PROBER, dry_run=True)
