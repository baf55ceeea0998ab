"""The cluster of a context: its server, whom to trust, and through which proxy.

The proxy is the kubeconfig's, or the environment's as Go reads it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

import msgspec

from tidegate.errors import ConfigError, Place
from tidegate.kube.access.stanza import Stanza
from tidegate.model.objects import Json
from tidegate.model.secret import Secret

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def check_proxy(url: str, place: Place) -> Secret:
    """A proxy we can use. Its URL may hold a password, so no message shows it."""
    parts = urlsplit(url)
    if parts.scheme in SCHEMES and parts.hostname:
        return Secret(url)
    if parts.scheme.startswith("socks"):
        problem = f"proxies of type `{parts.scheme}` are not supported"
        hint = "use an http or https proxy, or a tunnel such as `ssh -L`"
    else:
        problem = "the proxy's URL does not start with `http://` or `https://` and a host"
        hint = "write it as `http://proxy.example:3128`"
    raise ConfigError("config.proxy", problem, where=place, hint=hint)


def environment_proxy(server: str, environ: Mapping[str, str]) -> Secret | None:
    """What HTTP_PROXY, HTTPS_PROXY and NO_PROXY say for a server.

    The capital name wins over the small one. The machine itself is never reached through a proxy.
    """
    parts = urlsplit(server)
    variable = f"{parts.scheme.upper()}_PROXY"
    url = environ.get(variable) or environ.get(variable.lower())
    if not url or not _wants_proxy(parts, environ):
        return None
    return check_proxy(url if "://" in url else f"http://{url}", Place(variable))


def _wants_proxy(server: SplitResult, environ: Mapping[str, str]) -> bool:
    host = (server.hostname or "").lower()
    port = str(server.port or DEFAULT_PORTS[server.scheme])
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return False
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return not any(_covers(entry.strip().lower(), host, port) for entry in exempt.split(","))


def _covers(entry: str, host: str, port: str) -> bool:
    """Whether one entry of NO_PROXY names a host: `*`, a network, an address, or a domain."""
    if not entry or entry == "*":
        return bool(entry)
    address = _address(host)
    if "/" in entry:
        return address is not None and _contains(entry, address)
    name, wanted = _split_port(entry)
    if wanted not in ("", port):
        return False
    if _address(name):
        return _address(name) == address
    domain = name.removeprefix("*")
    return host.endswith(domain) if domain.startswith(".") else _is_under(host, domain)


def _is_under(host: str, domain: str) -> bool:
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_port(entry: str) -> tuple[str, str]:
    found = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d+))?", entry)
    name, port = (found[1], found[2] or "") if found else (entry, "")
    return name.strip("[]"), port


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _contains(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a cluster is. `announced` is its URL as exec plugins are told."""

    url: str
    announced: str
    ca: bytes | None = field(repr=False)
    ca_place: Place
    insecure: bool
    proxy: Secret | None
    tls_server_name: str

    @property
    def is_secure(self) -> bool:
        return self.url.startswith("https:")


def read_server(cluster: Stanza, environ: Mapping[str, str]) -> ServerAddress:
    """Read a cluster. Over plain http nothing is trusted and nothing is sent, as in kubectl."""
    url, announced = _read_url(cluster)
    is_secure = url.startswith("https:")
    ca = cluster.content("certificate-authority") if is_secure else None
    insecure = cluster.flag("insecure-skip-tls-verify")
    if ca and insecure:
        problem = f"{cluster.title} has both a certificate authority and `insecure-skip-tls-verify`"
        where = cluster.place("insecure-skip-tls-verify")
        raise ConfigError("config.both", problem, where=where, hint="remove one of the two")
    proxy = cluster.text("proxy-url")
    key = "certificate-authority"
    return ServerAddress(
        url=url,
        announced=announced,
        ca=ca,
        ca_place=cluster.place(key if cluster.has(key) else f"{key}-data"),
        insecure=insecure and is_secure,
        proxy=check_proxy(proxy, cluster.place("proxy-url"))
        if proxy
        else environment_proxy(url, environ),
        tls_server_name=cluster.text("tls-server-name"),
    )


def describe(cluster: Stanza, server: ServerAddress) -> bytes:
    """What an exec plugin with `provideClusterInfo` is told, as JSON."""
    told: dict[str, Json | bytes] = {"server": server.announced}
    for key in ("tls-server-name", "proxy-url"):
        if text := cluster.text(key):
            told[key] = text
    for key in ("insecure-skip-tls-verify", "disable-compression"):
        if cluster.flag(key):
            told[key] = True
    if server.ca:
        told["certificate-authority-data"] = server.ca
    told["config"] = None
    for extension in cluster.stanzas("extensions"):
        if extension.text("name") == EXEC_EXTENSION:
            told["config"] = extension.body.get("extension")
    return msgspec.json.encode(told)


def _read_url(cluster: Stanza) -> tuple[str, str]:
    text = cluster.text("server")
    if not text:
        problem = f"{cluster.title} has no server"
        hint = "add `server: https://…` to it"
        raise ConfigError("config.server", problem, where=cluster.place(), hint=hint)
    has_scheme = "://" in text
    parts = _split(text if has_scheme else f"http://{text}")
    is_usable = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    if parts is None or not is_usable or (not has_scheme and parts.path.strip("/")):
        raise _unusable(cluster, "is not a URL of an API server")
    if parts.username or parts.password:
        raise _unusable(cluster, "holds a user name or password")
    path = parts.path.rstrip("/")
    url = f"{parts.scheme}://{parts.netloc}{path}"
    return url, f"{parts.scheme}://{parts.netloc}{parts.path}" if path else text


def _split(text: str) -> SplitResult | None:
    """The parts of a URL; none where Python would quietly repair what others refuse."""
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        return None
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return None
    return parts if has_port else None


def _unusable(cluster: Stanza, why: str) -> ConfigError:
    problem = f"the server of {cluster.title} {why}"
    hint = "write it as `https://host:port`, and credentials under `users`"
    return ConfigError("config.server", problem, where=cluster.place("server"), hint=hint)
