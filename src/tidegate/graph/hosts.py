"""Which Services an object's texts name as hosts, and what becomes of it while they are silent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.documents import FieldPath
from tidegate.graph.ground import GraphGround
from tidegate.graph.supply import Supply
from tidegate.knowledge.fields import texts_of
from tidegate.knowledge.hosts import (
    Host,
    addresses_in,
    aliases_of,
    command_of,
    fits_any,
    hosts_in,
    is_own_address,
    port_of,
    scripts_of,
    service_of,
)
from tidegate.knowledge.naming import Body, Pods
from tidegate.knowledge.settings import variables_of
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.operators import Effect
from tidegate.model.reading import mappings, text

CONFIG_MAP = Kind("", "v1", "ConfigMap")
INIT, MAIN = "initContainers", "containers"
TELLERS = frozenset(
    {
        ("", "ConfigMap"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""Kinds of Kubernetes' own whose texts are read; so are those of all custom resources."""


OWN_NAMES = frozenset({"dnsNames", "commonName", "hostnames", "hosts"})
"""Fields that say under which names somebody is known, and not whom they call."""


class Dialling(NamedTuple):
    """A Service that is named, by the field that names it."""

    namespace: str
    name: str
    field: FieldPath
    effect: Effect
    port: str = ""
    certain: bool = True


class _BroughtServices(NamedTuple):
    """The Services and namespaces that the repository brings to a cluster."""

    supply: Supply
    cluster: str

    def has_service(self, namespace: str, name: str) -> bool:
        return self.supply.has_service(self.cluster, namespace, name)

    def has_namespace(self, name: str) -> bool:
        return self.supply.has_namespace(self.cluster, name)


def dialled_by(
    ref: Ref, body: Body, pods: Pods | None, cluster: str, supply: Supply, ground: GraphGround
) -> Iterator[Dialling]:
    """Each Service once, by the field that matters most."""
    name = (ref.kind.group, ref.kind.name)
    if pods is not None:
        found = _of_pods(ref, pods, cluster, supply, ground)
    elif name in TELLERS or name not in ground.served:
        found = _of_texts(ref, body, cluster, supply, ground)
    else:
        return
    best: dict[tuple[str, str], Dialling] = {}
    for one in found:
        if ground.is_given("", "Service", one.namespace, one.name):
            continue
        known = best.get((one.namespace, one.name))
        if known is None or _weight(one) > _weight(known):
            best[one.namespace, one.name] = one
    yield from best.values()


def _weight(one: Dialling) -> tuple[bool, bool]:
    return (one.effect is not Effect.NOTHING, one.certain)


def _of_pods(
    ref: Ref, pods: Pods, cluster: str, supply: Supply, ground: GraphGround
) -> Iterator[Dialling]:
    seen, aliases = _BroughtServices(supply, cluster), aliases_of(pods.spec)
    for kind in (INIT, MAIN):
        for at, container in enumerate(mappings(pods.spec, kind)):
            path = (*pods.path, kind, at)
            said = f"{text(container, 'image')} {command_of(container)}"
            if fits_any(said, ground.certifies):
                continue
            scripts = [*_scripts(container, pods, ref, cluster, supply)]
            effect = _effect(container, pods, ground, scripts, is_init=kind == INIT)
            named = [*_hosts(container, path, ref, cluster, supply)]
            named += [((*path, "volumeMounts"), "", script) for script in scripts]
            for field, variable, written in named:
                if variable and is_own_address(variable, ground.telemetry):
                    continue
                for host in hosts_in(written, variable, aliases, ground.telemetry):
                    meant = service_of(host, ref.namespace, seen)
                    if meant and not supply.is_own(cluster, meant, ref.namespace, pods.labels):
                        port = port_of(host, written)
                        yield Dialling(*meant, field, effect, port, host.sure)


def _hosts(
    container: Body, path: FieldPath, ref: Ref, cluster: str, supply: Supply
) -> Iterator[tuple[FieldPath, str, str]]:
    """The texts of a container that may name hosts: its variables, then its command."""

    def find(kind: Kind, name: str) -> Body | None:
        return supply.body_of(cluster, kind, ref.namespace, name)

    places = {text(one, "name"): at for at, one in enumerate(mappings(container, "env"))}
    for variable, value in variables_of(container, find):
        at = places.get(variable)
        yield (*path, *(("env", at) if at is not None else ("envFrom",))), variable, value
    yield (*path, "command" if "command" in container else "args"), "", command_of(container)


def _scripts(container: Body, pods: Pods, ref: Ref, cluster: str, supply: Supply) -> Iterator[str]:
    """The files of ConfigMaps that its command runs."""

    def find(name: str) -> Json:
        return supply.body_of(cluster, CONFIG_MAP, ref.namespace, name)

    return (script for _, script in scripts_of(container, pods.spec, find))


def _effect(
    container: Json, pods: Pods, ground: GraphGround, scripts: list[str], *, is_init: bool
) -> Effect:
    """A server tries again. A task fails, unless it waits; so does what comes before a server."""
    if pods.row.later or not (is_init or pods.row.is_task):
        return Effect.NOTHING
    polls = any(fits_any(one, ground.polls) for one in (command_of(container), *scripts))
    if not pods.row.is_task or polls:
        return Effect.HELD
    return Effect.FAILS


def _of_texts(
    ref: Ref, body: Body, cluster: str, supply: Supply, ground: GraphGround
) -> Iterator[Dialling]:
    seen = _BroughtServices(supply, cluster)
    parts = ("data", "webhooks", "spec")
    for part in parts:
        for field, written in texts_of(body.get(part), (part,)):
            if OWN_NAMES.intersection(field):
                continue
            for host in addresses_in(written, ground.telemetry):
                meant = _meant(host, ref, seen)
                if meant:
                    yield Dialling(*meant, field, Effect.NOTHING, port_of(host, written))


def _meant(host: Host, ref: Ref, seen: _BroughtServices) -> tuple[str, str] | None:
    """In a text whose use nobody knows, a host counts if it is a Service for certain."""
    meant = service_of(host, ref.namespace, seen)
    return meant if meant and (host.sure or seen.has_service(*meant)) else None
