"""Services that an object calls by host name, and the effect if they do not respond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.graph.inputs import GraphInputs
from tidegate.graph.providers import ProviderIndex
from tidegate.knowledge.fields import list_texts
from tidegate.knowledge.hosts import (
    Host,
    find_addresses,
    find_hosts,
    find_port,
    is_own_address,
    join_command,
    list_host_aliases,
    list_mounted_scripts,
    matches_any,
    resolve_service,
)
from tidegate.knowledge.named_objects import PodTemplate
from tidegate.knowledge.settings import Variable, list_variables
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import CONFIG_MAP
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import Effect

INIT, MAIN = "initContainers", "containers"
TEXT_KINDS = frozenset(
    {
        ("", "ConfigMap"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""Built-in kinds whose texts are searched, in addition to all custom resources."""
IDENTITY_FIELDS = frozenset({"dnsNames", "commonName", "hostnames", "hosts"})
"""Fields with the host names of the object itself, not with hosts that it calls."""


class ServiceCall(NamedTuple):
    """A Service that is called by host name, with the field that contains the host name."""

    namespace: str
    name: str
    field: FieldPath
    effect: Effect
    port: str = ""
    is_certain: bool = True


class _KnownServices(NamedTuple):
    """The Services and namespaces that the repository provides in a cluster."""

    provider_index: ProviderIndex
    cluster: str

    def has_service(self, namespace: str, name: str) -> bool:
        return self.provider_index.has_service(self.cluster, namespace, name)

    def has_namespace(self, name: str) -> bool:
        return self.provider_index.has_namespace(self.cluster, name)


def find_service_calls(
    ref: Ref,
    body: JsonObject,
    pods: PodTemplate | None,
    cluster: str,
    provider_index: ProviderIndex,
    inputs: GraphInputs,
) -> Iterator[ServiceCall]:
    """Yield each called Service once, by its most important field."""
    kind_key = (ref.kind.group, ref.kind.name)
    if pods is not None:
        calls = _calls_of_pods(ref, pods, cluster, provider_index, inputs)
    elif kind_key in TEXT_KINDS or kind_key not in inputs.served_kinds:
        calls = _calls_of_texts(ref, body, cluster, provider_index, inputs)
    else:
        return
    best: dict[tuple[str, str], ServiceCall] = {}
    for call in calls:
        if inputs.is_preinstalled("", "Service", call.namespace, call.name):
            continue
        best_call = best.get((call.namespace, call.name))
        if best_call is None or _importance(call) > _importance(best_call):
            best[call.namespace, call.name] = call
    yield from best.values()


def _importance(call: ServiceCall) -> tuple[bool, bool]:
    return (call.effect is not Effect.NONE, call.is_certain)


def _calls_of_pods(
    ref: Ref, pods: PodTemplate, cluster: str, provider_index: ProviderIndex, inputs: GraphInputs
) -> Iterator[ServiceCall]:
    services, aliases = _KnownServices(provider_index, cluster), list_host_aliases(pods.spec)
    for kind in (INIT, MAIN):
        for index, container in enumerate(get_mappings(pods.spec, kind)):
            path = (*pods.path, kind, index)
            command = f"{get_text(container, 'image')} {join_command(container)}"
            if matches_any(command, inputs.certificate_commands):
                continue
            scripts = [*_scripts(container, pods, ref, cluster, provider_index)]
            effect = _effect(container, pods, inputs, scripts, is_init=kind == INIT)
            texts = [*_host_texts(container, path, ref, cluster, provider_index)]
            texts += [((*path, "volumeMounts"), Variable("", script)) for script in scripts]
            for field, variable in texts:
                name, value = variable.name, variable.value
                if name and is_own_address(name, inputs.telemetry_hosts):
                    continue
                field_effect = effect if variable.is_used else Effect.NONE
                for host in find_hosts(value, name, aliases, inputs.telemetry_hosts):
                    service = resolve_service(host, ref.namespace, services)
                    if service and not provider_index.selects_pods(
                        cluster, service, ref.namespace, pods.labels
                    ):
                        port = find_port(host, value)
                        yield ServiceCall(*service, field, field_effect, port, host.is_certain)


def _host_texts(
    container: JsonObject, path: FieldPath, ref: Ref, cluster: str, provider_index: ProviderIndex
) -> Iterator[tuple[FieldPath, Variable]]:
    """Yield the texts of a container that may contain hosts: its variables, then its command.

    The command is a variable without a name.
    """

    def find(kind: Kind, name: str) -> JsonObject | None:
        return provider_index.find_body(cluster, kind, ref.namespace, name)

    env_indexes = {
        get_text(entry, "name"): index for index, entry in enumerate(get_mappings(container, "env"))
    }
    for variable in list_variables(container, find):
        index = None if variable.is_shared else env_indexes.get(variable.name)
        yield (*path, *(("env", index) if index is not None else ("envFrom",))), variable
    command_field = "command" if "command" in container else "args"
    yield (*path, command_field), Variable("", join_command(container))


def _scripts(
    container: JsonObject, pods: PodTemplate, ref: Ref, cluster: str, provider_index: ProviderIndex
) -> Iterator[str]:
    """Return the files of ConfigMaps that the command of a container runs."""

    def find(name: str) -> Json:
        return provider_index.find_body(cluster, CONFIG_MAP, ref.namespace, name)

    return (script for _, script in list_mounted_scripts(container, pods.spec, find))


def _effect(
    container: Json, pods: PodTemplate, inputs: GraphInputs, scripts: list[str], *, is_init: bool
) -> Effect:
    """Return the effect of a missing host: a server retries, a task fails unless it polls.

    An init container blocks its server.
    """
    if pods.row.later or not (is_init or pods.row.is_task):
        return Effect.NONE
    is_polling = any(
        matches_any(script, inputs.polling_commands)
        for script in (join_command(container), *scripts)
    )
    if not pods.row.is_task or is_polling:
        return Effect.BLOCKED
    return Effect.FAILS


def _calls_of_texts(
    ref: Ref, body: JsonObject, cluster: str, provider_index: ProviderIndex, inputs: GraphInputs
) -> Iterator[ServiceCall]:
    services = _KnownServices(provider_index, cluster)
    parts = ("data", "webhooks", "spec")
    for part in parts:
        for field, value in list_texts(body.get(part), (part,)):
            if IDENTITY_FIELDS.intersection(field):
                continue
            for host in find_addresses(value, inputs.telemetry_hosts):
                service = _certain_service(host, ref, services)
                if service:
                    yield ServiceCall(*service, field, Effect.NONE, find_port(host, value))


def _certain_service(host: Host, ref: Ref, services: _KnownServices) -> tuple[str, str] | None:
    """Return the Service of a host in a text of unknown use, or None if it is uncertain."""
    service = resolve_service(host, ref.namespace, services)
    return service if service and (host.is_certain or services.has_service(*service)) else None
