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


class TokenFile(msgspec.Struct, frozen=True):
    """A bearer token in a file that another process renews."""

    path: Path
    location: Location
    fallback: SecretValue | None = None
    """The token to use while the file cannot be read."""


class BasicAuth(msgspec.Struct, frozen=True):
    """User name and password."""

    username: str
    password: SecretValue


class InteractiveMode(StrEnum):
    """Whether an exec plugin may prompt the user."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    args: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    path: str
    api_version: str
    interactive_mode: InteractiveMode
    install_hint: str
    cluster_info: bytes | None = field(repr=False)
    """The cluster, as JSON for `provideClusterInfo`."""
    location: Location
    secrets: tuple[SecretValue, ...] = ()
    """The values that the kubeconfig adds to the environment."""


Login: TypeAlias = Anonymous | BearerToken | TokenFile | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both as PEM."""

    certificate: bytes = field(repr=False)
    key: SecretValue
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeTarget:
    """One API server and how to connect to it."""

    name: str
    server: str
    namespace: str
    user: str
    login: Login
    certificate: ClientCertificate | None = None
    identity: ImpersonatedUser | None = None
    """The user that the kubeconfig impersonates."""
    ca: bytes | None = field(default=None, repr=False)
    """PEM. If there is none, the authorities of the system are trusted."""
    ca_location: Location | None = None
    insecure: bool = False
    proxy: SecretValue | None = None
    """Secret, since it may contain a password."""
    tls_server_name: str = ""
    location: Location
