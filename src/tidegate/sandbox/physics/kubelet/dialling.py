"""Which Services a container calls, read from its variables, its command and the scripts that it
runs, and whether they answer. All of this is assumed: what a program does with a host name is its
own affair. So each call says what names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

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

LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
HOST = re.compile(rf"(?<![\w.-]){LABEL}(?:\.{LABEL})*(?![\w-])")
USER_OF_URL = re.compile(r"://[^/@\s]*@")
URL_HOST = re.compile(rf"[a-z][a-z0-9+.-]*://({LABEL}(?:\.{LABEL})*)(?![\w-])")
BEFORE = r"@|\s-h[ =]|(?:host|hostname|server|addr|address|endpoint)[ =]"
AFTER_OPTION = re.compile(rf"(?:{BEFORE})({LABEL})(?![\w.-])", re.IGNORECASE)
BEFORE_PORT = re.compile(rf"(?<![\w./-])({LABEL})[: ](?=\d{{2,5}}\b)")
HOST_VARIABLE = re.compile(r"(?:^|_)HOST$", re.IGNORECASE)
ADDRESS_VARIABLE = re.compile(
    r"(?:HOST|HOSTNAME|SERVER|ADDR|ADDRESS|ENDPOINT|URL|URI|DSN|BROKER|SERVICE|UPSTREAM|BACKEND)S?$",
    re.IGNORECASE,
)
OWN_ADDRESS = re.compile(
    r"^(?:(?:\w+_)?(?:HOME|SITE_?URL)|(?:APP|PUBLIC|EXTERNAL|CANONICAL)_URL)$", re.IGNORECASE
)
"""Where an application says under which address others know it."""
CLIENT = re.compile(
    r"\b(?:curl|wget|nc|ncat|ping|nslookup|getent|dig|telnet|grpcurl|grpc_health_probe"
    r"|pg_isready|psql|pg_dump|pg_restore|mysql|mysqladmin|mysqldump|mariadb|mongosh?|mongodump"
    r"|redis-cli|valkey-cli|amqp-publish|kcat|kafkacat|cqlsh|clickhouse-client|nats|mc|sqlcmd)\b"
)
"""Programs that do nothing but call somebody."""
_COMMANDS = re.compile(r"[\n;|&]+")
_SILENT = re.compile(r"(?m)^\s*(?:#.*|(?:echo|printf)\s.*|-?\s*[\w./-]+:\s+\S.*)$")
"""Lines of a script that call nobody: comments, what is printed, and texts of objects."""
CLUSTER_SUFFIX = (".svc.cluster.local", ".svc")
LOCAL = frozenset({"localhost", "kubernetes", "kubernetes.default", "simulated"})
"""Hosts that are no Services of the plan; the last stands where an operator would write one."""


class Host(NamedTuple):
    """A host that is named. A sure one is a Service even if no such Service is there."""

    name: str
    sure: bool
    why: str = ""


class Dialled(NamedTuple):
    """A Service that a container calls, by the name it uses, and what says that it does."""

    service: Ref
    host: str
    why: str = ""


def dialled_services(
    view: Visible, pod: Stored, container: Json, profile: Profile
) -> tuple[Dialled, ...]:
    """The Services that a container names, without its own and those for telemetry."""
    found: dict[Ref, Dialled] = {}
    for host in _hosts(view, pod, container, profile):
        service = _service_of(view, pod, host)
        if service is not None and service not in found and not _is_own(view, pod, service):
            found[service] = Dialled(service, host.name, host.why)
    return tuple(found.values())


def does_poll(view: Visible, pod: Stored, container: Json, profile: Profile) -> bool:
    """Whether a command, or a script that it runs, waits for what it calls, rather than fail."""
    texts = [_command(container), *(script for _, script in _scripts(view, pod, container))]
    return any(_compiled(pattern).search(words) for words in texts for pattern in profile.polls)


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


def _hosts(view: Visible, pod: Stored, container: Json, profile: Profile) -> Iterator[Host]:
    aliases = {
        name
        for alias in mappings(pod.body, "spec", "hostAliases")
        for name in listed(alias, "hostnames")
    }
    command = _command(container)
    if any(
        _compiled(one).search(f"{text(container, 'image')} {command}") for one in profile.certifies
    ):
        return  # hosts are names on a certificate there
    places = [
        (value, variable, f"the variable {variable}")
        for variable, value in variables_of(view, pod, container)
        if not OWN_ADDRESS.search(variable) and not _is_telemetry(variable, profile)
    ]
    places.append((_spoken(command), "", "its command"))
    places += [
        (script, "", f"the script {place}") for place, script in _scripts(view, pod, container)
    ]
    for written, variable, who in places:
        for host in _hosts_in(written, variable, profile):
            if host.name not in aliases:
                yield host._replace(why=f"{who} names it")


def _hosts_in(written: str, variable: str, profile: Profile) -> Iterator[Host]:
    written = USER_OF_URL.sub("://", written)
    sure = set(URL_HOST.findall(written))
    sure |= _called(written, variable)
    is_host = bool(HOST_VARIABLE.search(variable))
    for name in (*sorted(sure), *_names_in(written, variable)):
        if name not in LOCAL and not _is_telemetry(name, profile):
            yield Host(name, name in sure or is_host or name.endswith(CLUSTER_SUFFIX))


def _called(written: str, variable: str) -> set[str]:
    """Hosts that nobody can mistake: what a client is told to call, an address with its port."""
    if variable:
        is_address = ADDRESS_VARIABLE.search(variable)
        return set(BEFORE_PORT.findall(written)) if is_address else set()
    found: set[str] = set()
    for line in _COMMANDS.split(written):
        if CLIENT.search(line):
            found |= {*AFTER_OPTION.findall(f" {line}"), *BEFORE_PORT.findall(line)}
    return found


def _scripts(view: Visible, pod: Stored, container: Json) -> Iterator[tuple[str, str]]:
    """Files of ConfigMaps that its command names, by their paths."""
    words = _command(container)
    volumes = {text(one, "name"): one for one in mappings(pod.body, "spec", "volumes")}
    for mount in mappings(container, "volumeMounts"):
        source = mapping(volumes.get(text(mount, "name"), {}), "configMap")
        found = view.get(Ref(CONFIG_MAP, pod.ref.namespace, text(source, "name")))
        for key, written in mapping(found.body, "data").items() if found else ():
            place = _place(mount, source, key)
            if place and isinstance(written, str) and _is_named(place, words):
                yield place, _spoken(written)


def _spoken(script: str) -> str:
    """What of a script is done; a command of one line is all done."""
    return _SILENT.sub("", script) if "\n" in script else script


def _place(mount: Json, source: Json, key: str) -> str:
    """Where a key of a ConfigMap is mounted; empty where it is not."""
    items = {text(one, "key"): text(one, "path") for one in mappings(source, "items")}
    path = items.get(key, "") if items else key
    folder, alone = text(mount, "mountPath").rstrip("/"), text(mount, "subPath")
    if alone:
        return folder if path == alone else ""
    return f"{folder}/{path}" if path else ""


def _is_named(place: str, words: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place)}(?![\w-])", words) is not None


def _names_in(written: str, variable: str) -> Iterator[str]:
    """What may be a host. A word without a dot is one only in the right company."""
    words = HOST.findall(written)
    yield from (word for word in words if "." in word)
    yield from AFTER_OPTION.findall(f" {written}")
    yield from BEFORE_PORT.findall(written)
    if variable and ADDRESS_VARIABLE.search(variable):
        yield from (part for part in re.split(r"[,;\s]+", written) if part in words)
    elif not variable and CLIENT.search(written):
        yield from (word for word in words if "." not in word)


def _service_of(view: Visible, pod: Stored, host: Host) -> Ref | None:
    """The Service that a host means, seen from a pod."""
    name = host.name
    for suffix in CLUSTER_SUFFIX:
        if name.endswith(suffix):
            labels = name.removesuffix(suffix).split(".")
            return Ref(SERVICE, labels[-1], labels[-2]) if len(labels) > 1 else None
    labels = name.split(".")
    if len(labels) == 1:
        service = Ref(SERVICE, pod.ref.namespace, name)
        is_word = name.isdigit() or name in ("true", "false")
        return service if view.get(service) or (host.sure and not is_word) else None
    if len(labels) == 2:  # noqa: PLR2004 - service and namespace
        service = Ref(SERVICE, labels[1], labels[0])
        is_sure = host.sure and view.get(Ref(NAMESPACE, "", labels[1])) is not None
        return service if view.get(service) or is_sure else None
    return None


def _is_own(view: Visible, pod: Stored, service: Ref) -> bool:
    """Whether a Service leads to the pod itself or to its peers."""
    stored = view.get(service)
    if stored is None or service.namespace != pod.ref.namespace:
        return False
    selector = mapping(stored.body, "spec", "selector")
    return bool(selector) and matches({"matchLabels": selector}, pod.labels)


def _command(container: Json) -> str:
    words = [*listed(container, "command"), *listed(container, "args")]
    return " ".join(word for word in words if isinstance(word, str))


def _is_telemetry(name: str, profile: Profile) -> bool:
    return any(_compiled(pattern).search(name) for pattern in profile.telemetry)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
