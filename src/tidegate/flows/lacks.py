"""What an object needs and is not there.

Pods need Secrets, ConfigMaps, an account, volumes and classes. A custom resource needs what the row
of its operator says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import needs_of, settings_of
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, text
from tidegate.world.ask import ask
from tidegate.world.calls import Get, Kinds
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue as ServedKinds
from tidegate.world.facts import Missing, NotServed

POD = Kind("", "v1", "Pod")
ACCOUNT = Kind("", "v1", "ServiceAccount")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
CRON_JOB = Kind("batch", "v1", "CronJob")
STORAGE = Kind("storage.k8s.io", "v1", "StorageClass")
PRIORITY = Kind("scheduling.k8s.io", "v1", "PriorityClass")
RUNTIME = Kind("node.k8s.io", "v1", "RuntimeClass")
API = Kind("apiregistration.k8s.io", "v1", "APIService")
AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")
METRICS = {"Pods": "custom.", "Object": "custom.", "External": "external."}
"""Which API tells a metric; those that are not here are of resources."""
EVERYWHERE = "kube-root-ca.crt"
"""A ConfigMap that every namespace has."""
PATIENCE = Ms(5 * SECOND)
"""How long a question about a failure may take."""

Body = dict[str, Json]


async def find_lacks(
    world: Exchange, ref: Ref, body: Body, catalogue: KnownRows, *, cluster: str = ""
) -> list[Ref]:
    """What an object needs and the cluster says is not there, each once."""
    wanted = dict.fromkeys(wanted_by(ref, body, catalogue))
    if not wanted:
        return []
    (served,) = await ask(world, Kinds(), cluster=cluster, within=PATIENCE)
    if not isinstance(served, ServedKinds):
        return []
    asked = list(as_served(wanted, served))
    outcomes = await ask(world, *map(Get, asked), cluster=cluster, within=PATIENCE)
    pairs = zip(asked, outcomes, strict=True)
    return [one for one, outcome in pairs if isinstance(outcome, Missing | NotServed)]


def wanted_by(ref: Ref, body: Body, catalogue: KnownRows) -> Iterator[Ref]:
    """What an object cannot do without, told from its text."""
    yield from _of_pods(ref, body)
    yield from _of_claims(ref, body)
    yield from metrics_for(ref, body)
    yield from _of_operator(ref, body, catalogue)


def _of_pods(ref: Ref, body: Body) -> Iterator[Ref]:
    spec = mapping(body, "spec")
    path = ("jobTemplate", "spec") if ref.kind == CRON_JOB else ()
    pod = spec if ref.kind == POD else mapping(spec, *path, "template", "spec")
    own = {text(one, "metadata", "name") for one in mappings(spec, "volumeClaimTemplates")}
    yield from (one for one in settings_of(pod, ref.namespace) if one.name != EVERYWHERE)
    if account := text(pod, "serviceAccountName"):
        yield Ref(ACCOUNT, ref.namespace, account)
    for volume in mappings(pod, "volumes"):
        claim = text(volume, "persistentVolumeClaim", "claimName")
        if claim and text(volume, "name") not in own:
            yield Ref(CLAIM, ref.namespace, claim)
    if (priority := text(pod, "priorityClassName")) and not priority.startswith("system-"):
        yield Ref(PRIORITY, "", priority)
    if runtime := text(pod, "runtimeClassName"):
        yield Ref(RUNTIME, "", runtime)


def metrics_for(ref: Ref, body: Body) -> Iterator[Ref]:
    """Somebody must tell what is measured; without metrics of its own, that is the CPU."""
    if (ref.kind.group, ref.kind.name) == AUTOSCALER:
        sorts = [text(one, "type") for one in mappings(body, "spec", "metrics")] or ["Resource"]
        apis = dict.fromkeys(f"v1beta1.{METRICS.get(one, '')}metrics.k8s.io" for one in sorts)
        yield from (Ref(API, "", one) for one in apis)


def _of_claims(ref: Ref, body: Body) -> Iterator[Ref]:
    claims = [body] if ref.kind == CLAIM else mappings(body, "spec", "volumeClaimTemplates")
    for claim in claims:
        if storage := text(claim, "spec", "storageClassName"):
            yield Ref(STORAGE, "", storage)


def _of_operator(ref: Ref, body: Body, catalogue: KnownRows) -> Iterator[Ref]:
    row = catalogue.row_of(ref.kind)
    for need in needs_of(row, body, ref.kind) if row else ():
        yield Ref(Kind(need.group, "", need.kind), need.namespace, need.name)


def as_served(wanted: Iterable[Ref], served: ServedKinds) -> Iterator[Ref]:
    """In a version that the cluster has, and in no namespace where its kind knows none."""
    known = {(one.kind.group, one.kind.name): one for one in reversed(served.kinds)}
    for ref in wanted:
        found = known.get((ref.kind.group, ref.kind.name))
        if found is None:
            yield ref
        else:
            yield Ref(found.kind, ref.namespace if found.namespaced else "", ref.name)
