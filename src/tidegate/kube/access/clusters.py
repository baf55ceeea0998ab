"""The cluster of a context: its server, its certificate authority, and its proxy.

The proxy is set in the kubeconfig, or in the environment with Go's rules.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

import msgspec

from tidegate.errors import ConfigError, Location
from tidegate.kube.access.entries import ConfigEntry
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def check_proxy(url: str, location: Location) -> SecretValue:
    """Return a usable proxy. Messages never contain its URL, which may hold a password.

    Raises ConfigError for other proxies.
    """
    parts = urlsplit(url)
    if parts.scheme in SCHEMES and parts.hostname:
        return SecretValue(url)
    if parts.scheme.startswith("socks"):
        problem = f"proxies of type `{parts.scheme}` are not supported"
        hint = "use an http or https proxy, or a tunnel such as `ssh -L`"
    else:
        problem = "the proxy URL does not start with `http://` or `https://` and a host"
        hint = "write it as `http://proxy.example:3128`"
    raise ConfigError("config.proxy", problem, location=location, hint=hint)


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> SecretValue | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY define for a server.

    The upper-case variable wins. The local machine is never accessed through a proxy.

    Like `http/httpproxy/proxy.go` of golang.org/x/net 0.56.0.
    """
    parts = urlsplit(server)
    variable = f"{parts.scheme.upper()}_PROXY"
    url = environ.get(variable) or environ.get(variable.lower())
    if not url or not _should_use_proxy(parts, environ):
        return None
    return check_proxy(url if "://" in url else f"http://{url}", Location(variable))


def _should_use_proxy(server: SplitResult, environ: Mapping[str, str]) -> bool:
    host = (server.hostname or "").lower()
    port = str(server.port or DEFAULT_PORTS[server.scheme])
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return False
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return not any(
        _matches_exemption(entry.strip().lower(), host, port) for entry in exempt.split(",")
    )


def _matches_exemption(entry: str, host: str, port: str) -> bool:
    """Return whether a NO_PROXY entry matches a host: `*`, a network, an address or a domain."""
    if not entry or entry == "*":
        return bool(entry)
    address = _address(host)
    if "/" in entry:
        return address is not None and _contains(entry, address)
    name, entry_port = _split_port(entry)
    if entry_port not in ("", port):
        return False
    if _address(name):
        return _address(name) == address
    domain = name.removeprefix("*")
    return host.endswith(domain) if domain.startswith(".") else _is_under(host, domain)


def _is_under(host: str, domain: str) -> bool:
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _split_port(entry: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d+))?", entry)
    name, port = (match[1], match[2] or "") if match else (entry, "")
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
    """Address and TLS settings of a cluster."""

    url: str
    """The URL of the API server."""
    plugin_url: str
    """The URL as exec plugins receive it."""
    ca: bytes | None = field(repr=False)
    """The certificate authority as PEM; None for those of the system."""
    ca_location: Location
    """Where the authority is defined."""
    insecure: bool
    """Whether the certificate of the server is not verified."""
    proxy: SecretValue | None
    """The proxy; None for none."""
    tls_server_name: str
    """The name that the certificate must have; empty for the host of the URL."""

    @property
    def is_secure(self) -> bool:
        """Whether the server is accessed over TLS."""
        return self.url.startswith("https:")


def read_server(cluster: ConfigEntry, environ: Mapping[str, str]) -> ServerAddress:
    """Read a cluster entry. Over plain HTTP, TLS settings and credentials are ignored, as in
    kubectl.

    Like `getServerIdentificationPartialConfig` in `tools/clientcmd/client_config.go` of
    k8s.io/client-go 0.36.4.
    """
    url, plugin_url = _read_url(cluster)
    is_secure = url.startswith("https:")
    ca = cluster.read_content("certificate-authority") if is_secure else None
    insecure = cluster.get_flag("insecure-skip-tls-verify")
    if ca and insecure:
        problem = f"{cluster.title} has both a certificate authority and `insecure-skip-tls-verify`"
        location = cluster.locate("insecure-skip-tls-verify")
        raise ConfigError(
            "config.conflict", problem, location=location, hint="remove one of the two"
        )
    proxy = cluster.get_text("proxy-url")
    key = "certificate-authority"
    return ServerAddress(
        url=url,
        plugin_url=plugin_url,
        ca=ca,
        ca_location=cluster.locate(key if cluster.has(key) else f"{key}-data"),
        insecure=insecure and is_secure,
        proxy=(
            check_proxy(proxy, cluster.locate("proxy-url"))
            if proxy
            else proxy_from_environment(url, environ)
        ),
        tls_server_name=cluster.get_text("tls-server-name"),
    )


def encode_cluster_info(cluster: ConfigEntry, server: ServerAddress) -> bytes:
    """Encode the cluster as JSON for an exec plugin with `provideClusterInfo`.

    Like `ConfigToExecCluster` in `rest/exec.go` of k8s.io/client-go 0.36.4.
    """
    info: dict[str, Json | bytes] = {"server": server.plugin_url}
    for key in ("tls-server-name", "proxy-url"):
        if text := cluster.get_text(key):
            info[key] = text
    for key in ("insecure-skip-tls-verify", "disable-compression"):
        if cluster.get_flag(key):
            info[key] = True
    if server.ca:
        info["certificate-authority-data"] = server.ca
    info["config"] = None
    for extension in cluster.get_entries("extensions"):
        if extension.get_text("name") == EXEC_EXTENSION:
            info["config"] = extension.body.get("extension")
    return msgspec.json.encode(info)


def _read_url(cluster: ConfigEntry) -> tuple[str, str]:
    text = cluster.get_text("server")
    if not text:
        problem = f"{cluster.title} has no server"
        hint = "add `server: https://…` to it"
        raise ConfigError("config.server", problem, location=cluster.locate(), hint=hint)
    has_scheme = "://" in text
    parts = _split(text if has_scheme else f"http://{text}")
    is_usable = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    if parts is None or not is_usable or (not has_scheme and parts.path.strip("/")):
        raise _server_error(cluster, "is not the URL of an API server")
    if parts.username or parts.password:
        raise _server_error(cluster, "contains a user name or password")
    path = parts.path.rstrip("/")
    url = f"{parts.scheme}://{parts.netloc}{path}"
    return url, f"{parts.scheme}://{parts.netloc}{parts.path}" if path else text


def _split(text: str) -> SplitResult | None:
    """Split a URL. Returns None where Python would repair what other programs reject."""
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        return None
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return None
    return parts if has_port else None


def _server_error(cluster: ConfigEntry, reason: str) -> ConfigError:
    problem = f"the server of {cluster.title} {reason}"
    hint = "write it as `https://host:port`, and credentials under `users`"
    return ConfigError("config.server", problem, location=cluster.locate("server"), hint=hint)
