"""Nouns with sensible defaults, for tests that care about one thing in them."""

from __future__ import annotations

import msgspec

from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.plans.manifest import Manifest, Manifests, Phase
from tidegate.model.plans.plan import Plan
from tidegate.model.units.policy import Order, Policy
from tidegate.model.units.unit import Dependency, Destination, Unit, UnitId
from tidegate.plan.build.build import build_plan

WAVE = "argocd.argoproj.io/sync-wave"
DEFAULT_POLICY = Policy()
STAGED_POLICY = Policy(order=Order.STAGES)


def make_object(kind: str, name: str, *, namespace: str = "default", **parts: Json) -> JsonObject:
    """A body: `an_object("apps/v1 Deployment", "web", spec={...})`."""
    api_version, _, word = kind.partition(" ")
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": word, "metadata": metadata, **parts}


def make_config_map(name: str = "settings", **data: str) -> JsonObject:
    return make_object("v1 ConfigMap", name, data={**data})


def make_pod_template(name: str, *, image: str = "app:1", **spec: Json) -> JsonObject:
    container: Json = {"name": "app", "image": image}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def make_deployment(name: str = "web", *, image: str = "app:1", replicas: int = 1) -> JsonObject:
    spec: JsonObject = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": make_pod_template(name, image=image),
    }
    return make_object("apps/v1 Deployment", name, spec=spec)


def make_job(name: str = "migrate", *, image: str = "app:1", ttl: int | None = None) -> JsonObject:
    spec: JsonObject = {"template": make_pod_template(name, image=image, restartPolicy="Never")}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    return make_object("batch/v1 Job", name, spec=spec)


def annotate(body: JsonObject, **notes: str) -> JsonObject:
    """The body with annotations under `test.tidegate.dev/`, for controllers of a test's own."""
    if not notes:
        return body
    known = get_mapping(body, "metadata", "annotations")
    added = {f"test.tidegate.dev/{name.replace('_', '-')}": note for name, note in notes.items()}
    metadata = {**get_mapping(body, "metadata"), "annotations": {**known, **added}}
    return {**body, "metadata": metadata}


def make_manifest(body: JsonObject, *, wave: int = 0, phase: Phase = Phase.SYNC) -> Manifest:
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    ref = Ref(kind, get_text(body, "metadata", "namespace"), get_text(body, "metadata", "name"))
    defines = (get_text(body, "spec", "group"), get_text(body, "spec", "names", "kind"))
    is_definition = kind.name == "CustomResourceDefinition"
    return Manifest(
        ref=ref,
        body=msgspec.json.encode(body),
        wave=wave,
        phase=phase,
        defined_kind=defines if is_definition else ("", ""),
    )


def make_unit(
    *waves: JsonObject | tuple[JsonObject, ...],
    name: str = "shop",
    after: tuple[str, ...] = (),
    cluster: str = "",
    policy: Policy = DEFAULT_POLICY,
) -> Manifests:
    """A unit whose objects come in these waves, one after another; `after` those of these names."""
    manifests = tuple(
        make_manifest(body, wave=number)
        for number, bodies in enumerate(waves)
        for body in (bodies if isinstance(bodies, tuple) else (bodies,))
    )
    unit = Unit(
        id=make_unit_id(name),
        destination=Destination(cluster),
        policy=policy,
        dependencies=tuple(Dependency(unit=make_unit_id(item)) for item in after),
    )
    return Manifests(unit=unit, manifests=manifests)


def make_unit_id(name: str) -> UnitId:
    return UnitId.plain("", name)


def make_plan_from(*waves: JsonObject | tuple[JsonObject, ...] | Manifests) -> Plan:
    """A plan of units, or of one unit whose objects come in these waves."""
    units = tuple(wave for wave in waves if isinstance(wave, Manifests))
    bodies = tuple(wave for wave in waves if not isinstance(wave, Manifests))
    return build_plan(
        (*units, make_unit(*bodies)) if bodies else units, readiness_timeout=readiness_timeout
    )
