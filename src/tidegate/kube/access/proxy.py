"""Which proxy leads to a server: the kubeconfig's, or the environment's as Go reads it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from tidegate.errors import ConfigError, Place
from tidegate.model.secret import Secret

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}


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
