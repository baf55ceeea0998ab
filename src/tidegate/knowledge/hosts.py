"""Host names in texts, and the Services that they mean.

Used for the simulated network of containers and for the dependency graph. It is a heuristic: the
text does not prove that a program uses the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple, Protocol

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.text.lazy_regex import lazy_regex

LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
HOST = lazy_regex(rf"(?<![\w.-]){LABEL}(?:\.{LABEL})*(?![\w-])")
USER_OF_URL = lazy_regex(r"://[^/@\s]*@")
URL_HOST = lazy_regex(rf"[a-z][a-z0-9+.-]*://({LABEL}(?:\.{LABEL})*)(?![\w-])")
HOST_PREFIX = r"@|\s-h[ =]|(?:host|hostname|server|addr|address|endpoint)[ =]"
AFTER_OPTION = lazy_regex(rf"(?:{HOST_PREFIX})({LABEL})(?![\w.-])", re.IGNORECASE)
BEFORE_PORT = lazy_regex(rf"(?<![\w./-])({LABEL})[: ](?=\d{{2,5}}\b)")
WITH_PORT = lazy_regex(r"(?<![\w.-])([\w.-]+)(?=:(\d{2,5})(?!\d))")
HOST_VARIABLE = lazy_regex(r"(?:^|_|PG|DB|SQL|REDIS|MONGO)HOST$|_HOSTNAME$", re.IGNORECASE)
ADDRESS_VARIABLE = lazy_regex(
    r"(?:HOST|HOSTNAME|SERVER|ADDR|ADDRESS|ENDPOINT|URL|URI|DSN|BROKER|SERVICE|UPSTREAM|BACKEND)S?$",
    re.IGNORECASE,
)
OWN_ADDRESS = lazy_regex(
    r"^(?:(?:\w+_)?(?:HOME|SITE_?URL)|(?:APP|PUBLIC|EXTERNAL|CANONICAL)_URL)$", re.IGNORECASE
)
"""Variables that hold the public address of the application itself."""
CLIENT = lazy_regex(
    r"\b(?:curl|wget|nc|ncat|ping|nslookup|getent|dig|telnet|grpcurl|grpc_health_probe"
    r"|pg_isready|psql|pg_dump|pg_restore|mysql|mysqladmin|mysqldump|mariadb|mongosh?|mongodump"
    r"|redis-cli|valkey-cli|amqp-publish|kcat|kafkacat|cqlsh|clickhouse-client|nats|mc|sqlcmd)\b"
)
"""Programs that only call a server."""
_COMMANDS = lazy_regex(r"[\n;|&]+")
_SILENT = lazy_regex(r"(?m)^\s*(?:#.*|(?:echo|printf)\s.*|-?\s*[\w./-]+:\s+\S.*)$")
"""Lines of a script that call no server: comments, printed text and YAML."""
CLUSTER_SUFFIX = (".svc.cluster.local", ".svc")
IGNORED_HOSTS = frozenset({"localhost", "kubernetes", "kubernetes.default", "simulated"})
"""Hosts that are not Services of the plan. `simulated` replaces a value of an operator."""
MAX_TEXT_LENGTH = 100_000
"""Longer texts are not searched."""


class Host(NamedTuple):
    """A host name in a text."""

    name: str
    """The host name."""
    is_certain: bool
    """Whether the host is a Service even if the Service does not exist."""


class ServiceLookup(Protocol):
    """The Services and namespaces of a cluster."""

    def has_service(self, namespace: str, name: str) -> bool:
        """Return whether there is such a Service."""
        ...

    def has_namespace(self, name: str) -> bool:
        """Return whether there is such a namespace."""
        ...


def list_host_aliases(spec: Json) -> frozenset[str]:
    """Return the host names in `hostAliases` of a pod spec."""
    return frozenset(
        name
        for alias in get_mappings(spec, "hostAliases")
        for name in get_list(alias, "hostnames")
        if isinstance(name, str)
    )


def join_command(container: Json) -> str:
    """Return the command and arguments of a container as one text."""
    words = [*get_list(container, "command"), *get_list(container, "args")]
    return " ".join(word for word in words if isinstance(word, str))


def is_own_address(variable: str, telemetry: tuple[str, ...]) -> bool:
    """Return whether a variable holds the public address of the program or a telemetry endpoint."""
    return bool(OWN_ADDRESS.search(variable)) or matches_any(variable, telemetry)


def find_hosts(
    text: str, variable: str, aliases: Collection[str], telemetry: tuple[str, ...]
) -> Iterator[Host]:
    """Yield the hosts in the value of a variable, or in a command if `variable` is empty."""
    text = USER_OF_URL.sub("://", text if variable else strip_inactive_lines(text))
    certain = set(URL_HOST.findall(text)) | _certain_hosts(text, variable)
    is_host = bool(HOST_VARIABLE.search(variable))
    for name in (*sorted(certain), *_possible_hosts(text, variable)):
        if name not in IGNORED_HOSTS and name not in aliases and not matches_any(name, telemetry):
            yield Host(name, name in certain or is_host or name.endswith(CLUSTER_SUFFIX))


def strip_inactive_lines(script: str) -> str:
    """Return a script without the lines that call no server."""
    return _SILENT.sub("", script) if "\n" in script else script


def _certain_hosts(text: str, variable: str) -> set[str]:
    """Return the unambiguous hosts: arguments of a client, and addresses with a port."""
    if variable:
        is_address = ADDRESS_VARIABLE.search(variable)
        return set(BEFORE_PORT.findall(text)) if is_address else set()
    hosts: set[str] = set()
    for line in _COMMANDS.split(text):
        if CLIENT.search(line):
            hosts |= {*AFTER_OPTION.findall(f" {line}"), *BEFORE_PORT.findall(line)}
    return hosts


def find_addresses(text: str, telemetry: tuple[str, ...]) -> Iterator[Host]:
    """Yield the hosts in a text of unknown purpose: those of URLs and full names of Services."""
    if len(text) > MAX_TEXT_LENGTH or ("://" not in text and ".svc" not in text):
        return
    text = USER_OF_URL.sub("://", text)
    services = (word for word in HOST.findall(text) if word.endswith(CLUSTER_SUFFIX))
    for name in dict.fromkeys((*URL_HOST.findall(text), *services)):
        if name not in IGNORED_HOSTS and not matches_any(name, telemetry):
            yield Host(name, is_certain=name.endswith(CLUSTER_SUFFIX))


def resolve_service(host: Host, namespace: str, lookup: ServiceLookup) -> tuple[str, str] | None:
    """Return the namespace and name of the Service that a host means in a namespace, or None."""
    name = host.name
    for suffix in CLUSTER_SUFFIX:
        if name.endswith(suffix):
            labels = name.removesuffix(suffix).split(".")
            return (labels[-1], labels[-2]) if len(labels) > 1 else None
    labels = name.split(".")
    if len(labels) == 1:
        is_word = name.isdigit() or name in ("true", "false")
        is_meant = lookup.has_service(namespace, name) or (host.is_certain and not is_word)
        return (namespace, name) if is_meant else None
    if len(labels) == 2:  # noqa: PLR2004 - service and namespace
        is_sure = host.is_certain and lookup.has_namespace(labels[1])
        is_meant = lookup.has_service(labels[1], labels[0]) or is_sure
        return (labels[1], labels[0]) if is_meant else None
    return None


def find_port(host: Host, text: str) -> str:
    """Return the port after a host in a text. Returns "" if there is none or more than one."""
    if f"{host.name}:" not in text:
        return ""
    ports = {port for name, port in WITH_PORT.findall(text) if name == host.name}
    return ports.pop() if len(ports) == 1 else ""


def list_mounted_scripts(
    container: Json, pod: Json, find: Callable[[str], Json]
) -> Iterator[tuple[str, str]]:
    """Yield the mounted ConfigMap files that the command of a container names, with their paths.

    `find` returns a ConfigMap by name.
    """
    command = join_command(container)
    volumes = {get_text(volume, "name"): volume for volume in get_mappings(pod, "volumes")}
    for mount in get_mappings(container, "volumeMounts"):
        source = get_mapping(volumes.get(get_text(mount, "name"), {}), "configMap")
        for key, content in (
            get_mapping(find(get_text(source, "name")), "data").items() if source else ()
        ):
            path = _mount_path(mount, source, key)
            if path and isinstance(content, str) and _contains_path(path, command):
                yield path, content


def _mount_path(mount: Json, source: Json, key: str) -> str:
    """Return where a key of a ConfigMap is mounted, or "" if it is not."""
    items = {
        get_text(item, "key"): get_text(item, "path") for item in get_mappings(source, "items")
    }
    path = items.get(key, "") if items else key
    mount_path, sub_path = get_text(mount, "mountPath").rstrip("/"), get_text(mount, "subPath")
    if sub_path:
        return mount_path if path == sub_path else ""
    return f"{mount_path}/{path}" if path else ""


def _contains_path(path: str, command: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w-])", command) is not None


def matches_any(text: str, patterns: Iterable[str]) -> bool:
    """Return whether a text matches one of the patterns, ignoring case."""
    return any(_compile_pattern(pattern).search(text) for pattern in patterns)


def _possible_hosts(text: str, variable: str) -> Iterator[str]:
    """Yield the words that may be hosts. A word without a dot needs a hint beside it."""
    words = HOST.findall(text)
    yield from (word for word in words if "." in word)
    yield from AFTER_OPTION.findall(f" {text}")
    yield from BEFORE_PORT.findall(text)
    if variable and ADDRESS_VARIABLE.search(variable):
        yield from (part for part in re.split(r"[,;\s]+", text) if part in words)
    elif not variable and CLIENT.search(text):
        yield from (word for word in words if "." not in word)


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
