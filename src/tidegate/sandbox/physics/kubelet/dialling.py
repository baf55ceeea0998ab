"""Which Services a container calls, read from its variables, its command and the scripts that it
runs, and whether they answer. All of this is assumed: what a program does with a host name is its
own affair. So each call says what names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidegate.knowledge.hosts import (
    Host,
    aliases_of,
    command_of,
    fits_any,
    hosts_in,
    is_own_address,
    scripts_of,
    service_of,
)
from tidegate.model.labels import matches
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.sandbox.controllers.conditions import moment_of
from tidegate.sandbox.controllers.pods import ready_condition
from tidegate.sandbox.controllers.reaction import Visible
from tidegate.sandbox.controllers.selectors import slices_of
from tidegate.sandbox.kinds import CONFIG_MAP, NAMESPACE, POD, SERVICE, SLICE
from tidegate.sandbox.physics.kubelet.needs import variables_of
from tidegate.sandbox.physics.profile import Profile
from tidegate.sandbox.server.store import Stored


class Dialled(NamedTuple):
    """A Service that a container calls, by the name it uses, and what says that it does."""

    service: Ref
    host: str
    why: str = ""


class _Seen(NamedTuple):
    """The Services and namespaces of a cluster as they are now."""

    view: Visible

    def has_service(self, namespace: str, name: str) -> bool:
        return self.view.get(Ref(SERVICE, namespace, name)) is not None

    def has_namespace(self, name: str) -> bool:
        return self.view.get(Ref(NAMESPACE, "", name)) is not None


def dialled_services(
    view: Visible, pod: Stored, container: Json, profile: Profile
) -> tuple[Dialled, ...]:
    """The Services that a container names, without its own and those for telemetry."""
    found: dict[Ref, Dialled] = {}
    for host, why in _hosts(view, pod, container, profile):
        meant = service_of(host, pod.ref.namespace, _Seen(view))
        service = Ref(SERVICE, *meant) if meant else None
        if service is not None and service not in found and not _is_own(view, pod, service):
            found[service] = Dialled(service, host.name, why)
    return tuple(found.values())


def _hosts(
    view: Visible, pod: Stored, container: Json, profile: Profile
) -> Iterator[tuple[Host, str]]:
    """The hosts that a container names, each with what names it."""
    command, aliases = command_of(container), aliases_of(pod.body.get("spec"))
    if fits_any(f"{text(container, 'image')} {command}", profile.certifies):
        return  # hosts are names on a certificate there
    places = [
        (value, variable, f"the variable {variable}")
        for variable, value in variables_of(view, pod, container)
        if not is_own_address(variable, profile.telemetry)
    ]
    places.append((command, "", "its command"))
    places += [
        (script, "", f"the script {place}") for place, script in _scripts(view, pod, container)
    ]
    for written, variable, who in places:
        for host in hosts_in(written, variable, aliases, profile.telemetry):
            yield host, f"{who} names it"


def _scripts(view: Visible, pod: Stored, container: Json) -> Iterator[tuple[str, str]]:
    """Files of ConfigMaps that its command names, by their paths."""

    def find(name: str) -> Json:
        found = view.get(Ref(CONFIG_MAP, pod.ref.namespace, name))
        return found.body if found else None

    return scripts_of(container, pod.body.get("spec"), find)


def does_poll(view: Visible, pod: Stored, container: Json, profile: Profile) -> bool:
    """Whether a command, or a script that it runs, waits for what it calls, rather than fail."""
    texts = (command_of(container), *(script for _, script in _scripts(view, pod, container)))
    return any(fits_any(one, profile.polls) for one in texts)


def answering_since(view: Visible, service: Ref) -> Ms | None:
    """Since when a Service has a ready endpoint; None while it has none."""
    stored = view.get(service)
    if stored is None:
        return None
    if part(stored.body, "spec", "type") == "ExternalName":
        return Ms(0)
    moments = [
        _ready_since(view, slice_, endpoint)
        for slice_ in _slices(view, stored)
        for endpoint in mappings(slice_.body, "endpoints")
        if listed(endpoint, "addresses") and part(endpoint, "conditions", "ready") is not False
    ]
    return min(moments, default=None)


def _slices(view: Visible, service: Stored) -> list[Stored]:
    """Those of the cluster's own controller; if they lead nowhere, those of anybody."""
    owned = [own for own in view.owned_by(service.uid) if own.ref.kind.name == SLICE.name]
    if any(mappings(slice_.body, "endpoints") for slice_ in owned):
        return owned
    return slices_of(view, service.ref)


def _ready_since(view: Visible, slice_: Stored, endpoint: Json) -> Ms:
    target = mapping(endpoint, "targetRef")
    if target.get("kind") == POD.name:
        pod = view.get(Ref(POD, slice_.ref.namespace, text(target, "name")))
        condition = ready_condition(pod) if pod else None
        since = moment_of(part(condition, "lastTransitionTime"))
        if since is not None:
            return since
    return moment_of(slice_.metadata.get("creationTimestamp")) or Ms(0)


def _is_own(view: Visible, pod: Stored, service: Ref) -> bool:
    """Whether a Service leads to the pod itself or to its peers."""
    stored = view.get(service)
    if stored is None or service.namespace != pod.ref.namespace:
        return False
    selector = mapping(stored.body, "spec", "selector")
    return bool(selector) and matches({"matchLabels": selector}, pod.labels)
