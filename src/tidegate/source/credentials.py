"""Find what opens a source: in the environment, in a Docker configuration, or given by a caller.

A credential is bound to a host. A stranger's manifest chooses the address, so nothing may be sent
to just any host that it names.

For passwords, tokens, certificates and keys of ssh in a Secret, Flux has one set of names and Argo
CD another; they do not contradict each other. Which address a Secret is for, says whoever refers to
it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from tidegate.errors import Location, SourceError
from tidegate.files import read_regular_file
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import Credentials

TOKEN_PREFIX = "TIDEGATE_TOKEN_"  # noqa: S105  (the name of a variable)
USER_PREFIX = "TIDEGATE_USER_"
DOCKER = ".dockerconfigjson"
ENTRIES = {
    "username": ("username", "accesskey"),
    "password": ("password", "secretkey"),
    "token": ("bearerToken",),
    "authority": ("ca.crt", "caFile"),
    "certificate": ("tls.crt", "certFile", "tlsClientCertData"),
    "key": ("tls.key", "keyFile", "tlsClientCertKey"),
    "identity": ("identity", "sshPrivateKey"),
    "known_hosts": ("known_hosts",),
}
NO_CREDENTIALS = Credentials()


class CredentialProvider(Protocol):
    """Says what opens an address."""

    def find(self, origin: str) -> Credentials: ...


class EnvironmentCredentials(msgspec.Struct, frozen=True):
    """`TIDEGATE_TOKEN_<HOST>` and `TIDEGATE_USER_<HOST>`, never sent over plain HTTP."""

    variables: Mapping[str, str]

    def __repr__(self) -> str:
        return "Environment()"

    def find(self, origin: str) -> Credentials:
        scheme, _, host = origin.partition("://")
        name = host_variable_suffix(host)
        token = self.variables.get(TOKEN_PREFIX + name, "")
        if scheme == "http" or not token:
            return NO_CREDENTIALS
        username = self.variables.get(USER_PREFIX + name, "") or "git"
        return Credentials(username=username, password=SecretValue(token))


class DockerLogins(msgspec.Struct, frozen=True):
    """The `auths` of a Docker configuration, as a file or as a Secret holds them."""

    logins: Mapping[str, Credentials]

    def find(self, origin: str) -> Credentials:
        return self.logins.get(origin.partition("://")[2], NO_CREDENTIALS)


class DockerConfigFile(msgspec.Struct, frozen=True):
    """A Docker configuration that is read when something is to be opened, if it is there."""

    path: Path

    def find(self, origin: str) -> Credentials:
        if not self.path.is_absolute() or not self.path.is_file():
            return NO_CREDENTIALS
        try:
            content = read_regular_file(self.path)
        except OSError:
            problem = "the file of logins cannot be read"
            raise SourceError("source.login", problem, location=Location(str(self.path))) from None
        return read_docker_logins(content, str(self.path)).find(origin)


class CredentialChain(msgspec.Struct, frozen=True):
    """Several, asked in turn."""

    rings: tuple[CredentialProvider, ...] = ()

    def find(self, origin: str) -> Credentials:
        found = (ring.find(origin) for ring in self.rings)
        return next(
            (credentials for credentials in found if credentials != NO_CREDENTIALS), NO_CREDENTIALS
        )


class OriginCredentials(msgspec.Struct, frozen=True):
    """Credentials for one address, such as a Secret beside the source holds them."""

    origin: str
    credentials: Credentials

    def find(self, origin: str) -> Credentials:
        return self.credentials if origin == self.origin else NO_CREDENTIALS


class _Login(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""


class _Logins(msgspec.Struct):
    auths: dict[str, _Login] = {}


def host_variable_suffix(host: str) -> str:
    """A host in the name of a variable. No two hosts share one: `-` is not written as `.` is."""
    marks = (("-", "__"), (".", "_"), (":", "___"))
    name = host.upper()
    for mark, written in marks:
        name = name.replace(mark, written)
    return name


def read_docker_logins(text: bytes, name: str) -> DockerLogins:
    """Read a Docker configuration. `name` is how errors call it."""
    try:
        read = msgspec.json.decode(text, type=_Logins)
        # A login that a helper of Docker's keeps is named here, and empty.
        named = {host: login for host, login in read.auths.items() if login != _Login()}
        logins = {_host(host): _credentials(login) for host, login in named.items()}
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError):
        problem = "the Docker configuration cannot be read"
        raise SourceError("source.login", problem, location=Location(name)) from None
    return DockerLogins(logins)


def credentials_from_environment(variables: Mapping[str, str]) -> CredentialChain:
    """What a user has at hand: variables, and the logins of Docker and of Helm."""
    home = variables.get("HOME", "")
    docker = variables.get("DOCKER_CONFIG") or f"{home}/.docker"
    settings = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    helm = variables.get("HELM_REGISTRY_CONFIG") or f"{settings}/helm/registry/config.json"
    files = (Path(f"{docker}/config.json"), Path(helm))
    return CredentialChain((EnvironmentCredentials(variables), *map(DockerConfigFile, files)))


def authorization_header(credentials: Credentials) -> str:
    """The header's value; empty if there is nothing to send."""
    if credentials.token is not None:
        return f"Bearer {credentials.token.reveal()}"
    if credentials.password is None:
        return ""
    pair = f"{credentials.username}:{credentials.password.reveal()}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _host(key: str) -> str:
    host = key.partition("://")[2] or key
    host = host.partition("/")[0]
    return "registry-1.docker.io" if host in ("index.docker.io", "docker.io") else host


def _credentials(login: _Login) -> Credentials:
    if login.auth:
        username, _, password = base64.b64decode(login.auth, validate=True).decode().partition(":")
        return Credentials(username=username, password=SecretValue(password.rstrip("\0")))
    return Credentials(username=login.username, password=SecretValue(login.password))


def credentials_from_secret(
    entries: Mapping[str, bytes], origin: str, *, name: str
) -> CredentialProvider:
    """Credentials for an address (`https://host`, `ssh://host`), from decoded entries.

    A Docker configuration says itself for whom it is. `name` is how errors call the Secret.
    """
    if DOCKER in entries:
        return read_docker_logins(entries[DOCKER], name)
    found = {field: _first(entries, names, name) for field, names in ENTRIES.items()}
    if not any(found.values()):
        problem = "the Secret has no entry that opens a source"
        known = ("username", "password", "bearerToken", "identity", "tls.crt", DOCKER)
        hint = "there may be " + ", ".join(f"`{each}`" for each in known)
        raise SourceError("source.login", problem, location=Location(name), hint=hint)
    credentials = Credentials(
        username=found["username"],
        password=_secret(found["password"]),
        token=_secret(found["token"]),
        ca_certificate=found["authority"],
        certificate=found["certificate"],
        key=_secret(found["key"]),
        identity=_secret(found["identity"]),
        known_hosts=found["known_hosts"],
    )
    return OriginCredentials(origin, credentials)


def _first(entries: Mapping[str, bytes], names: tuple[str, ...], where: str) -> str:
    for name in names:
        if entries.get(name):
            try:
                return entries[name].decode()
            except UnicodeDecodeError:
                problem = "an entry of the Secret is not text"
                raise SourceError(
                    "source.login", problem, location=Location(where, field=name)
                ) from None
    return ""


def _secret(text: str) -> SecretValue | None:
    return SecretValue(text) if text else None
