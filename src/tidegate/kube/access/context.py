"""What a kubeconfig comes down to: which server, whom it trusts, and as whom we come.

Frozen values, with every file read and every path resolved. Only credentials that change by
themselves, a token file or an exec plugin, are looked at again later (see `credentials`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import Place
from tidegate.model.identity import Identity
from tidegate.model.secret import Secret


class Anonymous(msgspec.Struct, frozen=True):
    """Nothing is sent. A client certificate may still say who we are."""


class Token(msgspec.Struct, frozen=True):
    """A bearer token that stands in the kubeconfig."""

    token: Secret


class TokenFile(msgspec.Struct, frozen=True):
    """A bearer token in a file that somebody renews. `spare` serves while it cannot be read."""

    path: Path
    place: Place
    spare: Secret | None = None


class Basic(msgspec.Struct, frozen=True):
    username: str
    password: Secret


class Interactive(StrEnum):
    """Whether an exec plugin may ask the person at the terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A program that prints credentials. `cluster` is what it is told of the cluster, as JSON."""

    command: str
    args: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    path: str
    api_version: str
    interactive: Interactive
    install_hint: str
    cluster: bytes | None = field(repr=False)
    place: Place
    given: tuple[Secret, ...] = ()
    """What the kubeconfig puts into its environment."""


Login: TypeAlias = Anonymous | Token | TokenFile | Basic | Plugin


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both as PEM."""

    certificate: bytes = field(repr=False)
    key: Secret
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeTarget:
    """One API server and how to come to it.

    `proxy` is a secret since it may hold a password. `identity` is whom the kubeconfig says to
    impersonate. `ca` is PEM; without one the system's own authorities are trusted.
    """

    name: str
    server: str
    namespace: str
    user: str
    login: Login
    certificate: ClientCertificate | None = None
    identity: Identity | None = None
    ca: bytes | None = field(default=None, repr=False)
    ca_place: Place | None = None
    insecure: bool = False
    proxy: Secret | None = None
    tls_server_name: str = ""
    place: Place
