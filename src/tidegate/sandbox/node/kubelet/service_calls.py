"""Services that a container calls, and whether they have ready endpoints.

The calls are read from variables, the command and the scripts that it runs. They are assumed:
how a program uses a host name is unknown. So each call names its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.knowledge.hosts import (
    Host,
    find_hosts,
    is_own_address,
    join_command,
    list_host_aliases,
    list_mounted_scripts,
    matches_any,
    resolve_service,
)
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import CONFIG_MAP, ENDPOINT_SLICE, NAMESPACE, POD, SERVICE
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.pods import ready_condition
from tidegate.sandbox.controllers.selectors import slices_for_service
from tidegate.sandbox.node.kubelet.config_references import container_variables
from tidegate.sandbox.node.profile import Profile
from tidegate.sandbox.server.store import StoredObject


class ServiceCall(NamedTuple):
    """A call of a container to a Service: the host name it uses, and what names that host."""

    service: Ref
    """The Service."""
    host: str
    """The host name that the container uses."""
    reason: str = ""
    """What names the host."""


class _ServiceLookup(NamedTuple):
    """The current Services and namespaces of a cluster."""

    reader: ObjectReader
    """Read access to the cluster."""

    def has_service(self, namespace: str, name: str) -> bool:
        return self.reader.get(Ref(SERVICE, namespace, name)) is not None

    def has_namespace(self, name: str) -> bool:
        return self.reader.get(Ref(NAMESPACE, "", name)) is not None


def called_services(
    reader: ObjectReader, pod: StoredObject, container: Json, profile: Profile
) -> tuple[ServiceCall, ...]:
    """Return the Services that a container names, without its own and those for telemetry."""
    calls: dict[Ref, ServiceCall] = {}
    for host, reason in _hosts(reader, pod, container, profile):
        namespace_and_name = resolve_service(host, pod.ref.namespace, _ServiceLookup(reader))
        service = Ref(SERVICE, *namespace_and_name) if namespace_and_name else None
        if service is not None and service not in calls and not _selects_pod(reader, pod, service):
            calls[service] = ServiceCall(service, host.name, reason)
    return tuple(calls.values())


def _hosts(
    reader: ObjectReader, pod: StoredObject, container: Json, profile: Profile
) -> Iterator[tuple[Host, str]]:
    """Yield the hosts that a container names, each with its source."""
    command, aliases = join_command(container), list_host_aliases(pod.body.get("spec"))
    if matches_any(f"{get_text(container, 'image')} {command}", profile.certifies):
        return  # hosts are names on a certificate there
    sources = [
        (variable.value, variable.name, f"the variable {variable.name}")
        for variable in container_variables(reader, pod, container)
        if variable.is_used and not is_own_address(variable.name, profile.telemetry)
    ]
    sources.append((command, "", "its command"))
    sources += [
        (script, "", f"the script {path}") for path, script in list_scripts(reader, pod, container)
    ]
    for source_text, variable, source in sources:
        for host in find_hosts(source_text, variable, aliases, profile.telemetry):
            yield host, source


def list_scripts(
    reader: ObjectReader, pod: StoredObject, container: Json
) -> Iterator[tuple[str, str]]:
    """Yield path and text of the ConfigMap files that the command names."""

    def find(name: str) -> Json:
        config_map = reader.get(Ref(CONFIG_MAP, pod.ref.namespace, name))
        return config_map.body if config_map else None

    return list_mounted_scripts(container, pod.body.get("spec"), find)


def is_polling(reader: ObjectReader, pod: StoredObject, container: Json, profile: Profile) -> bool:
    """Return whether the command, or a script it runs, waits for Services instead of failing."""
    texts = (
        join_command(container),
        *(script for _, script in list_scripts(reader, pod, container)),
    )
    return any(matches_any(script_text, profile.polls) for script_text in texts)


def ready_since(reader: ObjectReader, service: Ref) -> Ms | None:
    """Return since when a Service has a ready endpoint; None if it has none."""
    stored = reader.get(service)
    if stored is None:
        return None
    if get_value(stored.body, "spec", "type") == "ExternalName":
        return Ms(0)
    times = [
        _endpoint_ready_since(reader, slice_, endpoint)
        for slice_ in _slices(reader, stored)
        for endpoint in get_mappings(slice_.body, "endpoints")
        if get_list(endpoint, "addresses")
        and get_value(endpoint, "conditions", "ready") is not False
    ]
    return min(times, default=None)


def _slices(reader: ObjectReader, service: StoredObject) -> list[StoredObject]:
    """Return the slices of the endpoint controller; if they are empty, all of the Service."""
    owned = [
        owned_object
        for owned_object in reader.list_owned(service.uid)
        if owned_object.ref.kind.name == ENDPOINT_SLICE.name
    ]
    if any(get_mappings(slice_.body, "endpoints") for slice_ in owned):
        return owned
    return slices_for_service(reader, service.ref)


def _endpoint_ready_since(reader: ObjectReader, slice_: StoredObject, endpoint: Json) -> Ms:
    target = get_mapping(endpoint, "targetRef")
    if target.get("kind") == POD.name:
        pod = reader.get(Ref(POD, slice_.ref.namespace, get_text(target, "name")))
        condition = ready_condition(pod) if pod else None
        since = read_timestamp(get_value(condition, "lastTransitionTime"))
        if since is not None:
            return since
    return read_timestamp(slice_.metadata.get("creationTimestamp")) or Ms(0)


def _selects_pod(reader: ObjectReader, pod: StoredObject, service: Ref) -> bool:
    """Return whether a Service selects the pod itself or its peers."""
    stored = reader.get(service)
    if stored is None or service.namespace != pod.ref.namespace:
        return False
    selector = get_mapping(stored.body, "spec", "selector")
    return bool(selector) and selector_matches({"matchLabels": selector}, pod.labels)
