"""A resolved kubeconfig context: server, certificate authority and credentials.

The values are frozen, with all files read and all paths resolved. Only credentials that change by
themselves, a token file or an exec plugin, are read again later (see `credentials`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Location
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.identity import ImpersonatedUser


class Anonymous(msgspec.Struct, frozen=True):
    """No credentials in headers. A client certificate may still identify the user."""


class BearerToken(msgspec.Struct, frozen=True):
    """A bearer token of the kubeconfig."""

    token: SecretValue
    """The token."""


class TokenFile(msgspec.Struct, frozen=True):
    """A bearer token in a file that another process renews."""

    path: Path
    """The file."""
    location: Location
    """Where the kubeconfig names the file."""
    fallback: SecretValue | None = None
    """The token to use while the file cannot be read."""


class BasicAuth(msgspec.Struct, frozen=True):
    """User name and password."""

    username: str
    """The user name."""
    password: SecretValue
    """The password."""


class InteractiveMode(StrEnum):
    """The permission of an exec plugin to prompt the user."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    """The program."""
    args: tuple[str, ...]
    """Arguments of the program."""
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    """The environment of the program."""
    path: str
    """`PATH` to find the program in."""
    api_version: str
    """The version of the protocol."""
    interactive_mode: InteractiveMode
    """Whether the program may prompt the user."""
    install_hint: str
    """The hint of the kubeconfig for a missing program."""
    cluster_info: bytes | None = field(repr=False)
    """The cluster, as JSON for `provideClusterInfo`."""
    location: Location
    """Where the plugin is defined."""
    secrets: tuple[SecretValue, ...] = ()
    """The values that the kubeconfig adds to the environment."""


Login: TypeAlias = Anonymous | BearerToken | TokenFile | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both as PEM."""

    certificate: bytes = field(repr=False)
    """The certificate."""
    key: SecretValue
    """The private key."""
    location: Location
    """Where the certificate is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeTarget:
    """One API server and how to connect to it."""

    name: str
    """The name of the context."""
    server: str
    """The URL of the API server."""
    namespace: str
    """The default namespace of the context."""
    user: str
    """The name of the user entry."""
    login: Login
    """The credentials."""
    certificate: ClientCertificate | None = None
    """The client certificate; None for none."""
    identity: ImpersonatedUser | None = None
    """The user that the kubeconfig impersonates."""
    ca: bytes | None = field(default=None, repr=False)
    """PEM. If there is none, the authorities of the system are trusted."""
    ca_location: Location | None = None
    """Where the authority is defined."""
    insecure: bool = False
    """Whether the certificate of the server is not verified."""
    proxy: SecretValue | None = None
    """Secret, since it may contain a password."""
    tls_server_name: str = ""
    """The name that the certificate must have; empty for the host of the URL."""
    location: Location
    """Where the context is defined."""
