"""Which hosts a text names, and which Services these are.

For what containers dial, as the sandbox plays it, and for what the graph reads of manifests. All of
this is assumed: what a program does with a host name is its own affair.
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
"""Where an application says under which address others know it."""
CLIENT = lazy_regex(
    r"\b(?:curl|wget|nc|ncat|ping|nslookup|getent|dig|telnet|grpcurl|grpc_health_probe"
    r"|pg_isready|psql|pg_dump|pg_restore|mysql|mysqladmin|mysqldump|mariadb|mongosh?|mongodump"
    r"|redis-cli|valkey-cli|amqp-publish|kcat|kafkacat|cqlsh|clickhouse-client|nats|mc|sqlcmd)\b"
)
"""Programs that do nothing but call somebody."""
_COMMANDS = lazy_regex(r"[\n;|&]+")
_SILENT = lazy_regex(r"(?m)^\s*(?:#.*|(?:echo|printf)\s.*|-?\s*[\w./-]+:\s+\S.*)$")
"""Lines of a script that call nobody: comments, what is printed, and texts of objects."""
CLUSTER_SUFFIX = (".svc.cluster.local", ".svc")
IGNORED_HOSTS = frozenset({"localhost", "kubernetes", "kubernetes.default", "simulated"})
"""Hosts that are no Services of the plan; the last stands where an operator would write one."""
MAX_TEXT_LENGTH = 100_000
"""Texts that are longer are no settings."""


class Host(NamedTuple):
    """A host that is named. A sure one is a Service even if no such Service is there."""

    name: str
    is_certain: bool


class ServiceLookup(Protocol):
    """What is known of a cluster's Services and namespaces."""

    def has_service(self, namespace: str, name: str) -> bool: ...
    def has_namespace(self, name: str) -> bool: ...


def list_host_aliases(spec: Json) -> frozenset[str]:
    """Hosts that a pod's spec gives addresses to by itself."""
    return frozenset(
        name
        for alias in get_mappings(spec, "hostAliases")
        for name in get_list(alias, "hostnames")
        if isinstance(name, str)
    )


def join_command(container: Json) -> str:
    words = [*get_list(container, "command"), *get_list(container, "args")]
    return " ".join(word for word in words if isinstance(word, str))


def is_own_address(variable: str, telemetry: tuple[str, ...]) -> bool:
    """Whether a variable says where others find the program, or where it only reports to."""
    return bool(OWN_ADDRESS.search(variable)) or is_telemetry(variable, telemetry)


def find_hosts(
    written: str, variable: str, aliases: Collection[str], telemetry: tuple[str, ...]
) -> Iterator[Host]:
    """The hosts in one text; of a variable if it has a name, else of a command."""
    written = USER_OF_URL.sub("://", written if variable else strip_inactive_lines(written))
    sure = set(URL_HOST.findall(written)) | _called(written, variable)
    is_host = bool(HOST_VARIABLE.search(variable))
    for name in (*sorted(sure), *_names_in(written, variable)):
        if name not in IGNORED_HOSTS and name not in aliases and not is_telemetry(name, telemetry):
            yield Host(name, name in sure or is_host or name.endswith(CLUSTER_SUFFIX))


def strip_inactive_lines(script: str) -> str:
    """What of a script is done; a command of one line is all done."""
    return _SILENT.sub("", script) if "\n" in script else script


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


def find_addresses(written: str, telemetry: tuple[str, ...]) -> Iterator[Host]:
    """The hosts in a text of which nobody knows what it is for: those of URLs, and Services' own.

    A word in passing is none.
    """
    if len(written) > MAX_TEXT_LENGTH or ("://" not in written and ".svc" not in written):
        return
    written = USER_OF_URL.sub("://", written)
    named = (word for word in HOST.findall(written) if word.endswith(CLUSTER_SUFFIX))
    for name in dict.fromkeys((*URL_HOST.findall(written), *named)):
        if name not in IGNORED_HOSTS and not is_telemetry(name, telemetry):
            yield Host(name, is_certain=name.endswith(CLUSTER_SUFFIX))


def resolve_service(host: Host, home: str, known: ServiceLookup) -> tuple[str, str] | None:
    """The namespace and the name of the Service that a host means, seen from a namespace."""
    name = host.name
    for suffix in CLUSTER_SUFFIX:
        if name.endswith(suffix):
            labels = name.removesuffix(suffix).split(".")
            return (labels[-1], labels[-2]) if len(labels) > 1 else None
    labels = name.split(".")
    if len(labels) == 1:
        is_word = name.isdigit() or name in ("true", "false")
        is_meant = known.has_service(home, name) or (host.is_certain and not is_word)
        return (home, name) if is_meant else None
    if len(labels) == 2:  # noqa: PLR2004 - service and namespace
        is_sure = host.is_certain and known.has_namespace(labels[1])
        is_meant = known.has_service(labels[1], labels[0]) or is_sure
        return (labels[1], labels[0]) if is_meant else None
    return None


def find_port(host: Host, written: str) -> str:
    """The port that a text names behind a host; empty where it names none, or several."""
    if f"{host.name}:" not in written:
        return ""
    found = {port for name, port in WITH_PORT.findall(written) if name == host.name}
    return found.pop() if len(found) == 1 else ""


def list_mounted_scripts(
    container: Json, pod: Json, find: Callable[[str], Json]
) -> Iterator[tuple[str, str]]:
    """Files of ConfigMaps that a container's command names, by their paths; `find` gets these."""
    words = join_command(container)
    volumes = {get_text(one, "name"): one for one in get_mappings(pod, "volumes")}
    for mount in get_mappings(container, "volumeMounts"):
        source = get_mapping(volumes.get(get_text(mount, "name"), {}), "configMap")
        for key, written in (
            get_mapping(find(get_text(source, "name")), "data").items() if source else ()
        ):
            place = _place(mount, source, key)
            if place and isinstance(written, str) and _is_named(place, words):
                yield place, written


def _place(mount: Json, source: Json, key: str) -> str:
    """Where a key of a ConfigMap is mounted; empty where it is not."""
    items = {get_text(one, "key"): get_text(one, "path") for one in get_mappings(source, "items")}
    path = items.get(key, "") if items else key
    folder, alone = get_text(mount, "mountPath").rstrip("/"), get_text(mount, "subPath")
    if alone:
        return folder if path == alone else ""
    return f"{folder}/{path}" if path else ""


def _is_named(place: str, words: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place)}(?![\w-])", words) is not None


def matches_any(words: str, patterns: Iterable[str]) -> bool:
    """Whether one of these patterns is found in a text, in any case."""
    return any(_compiled(pattern).search(words) for pattern in patterns)


def is_telemetry(name: str, telemetry: tuple[str, ...]) -> bool:
    return any(_compiled(pattern).search(name) for pattern in telemetry)


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


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
