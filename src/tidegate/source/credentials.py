"""Credentials of sources: from the environment, from a Docker configuration, or from a Secret.

A credential is bound to a host: a manifest chooses the address, so credentials must not be sent to
any host that it names.

Flux and Argo CD have different names for passwords, tokens, certificates and ssh keys in a Secret;
the names do not contradict each other.
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
DOCKER_CONFIG_ENTRY = ".dockerconfigjson"
SECRET_ENTRIES = {
    "username": ("username", "accesskey"),
    "password": ("password", "secretkey"),
    "token": ("bearerToken",),
    "authority": ("ca.crt", "caFile"),
    "certificate": ("tls.crt", "certFile", "tlsClientCertData"),
    "key": ("tls.key", "keyFile", "tlsClientCertKey"),
    "identity": ("identity", "sshPrivateKey"),
    "known_hosts": ("known_hosts",),
}
"""For each field, the names of its entry in Secrets of Flux and Argo CD."""
NO_CREDENTIALS = Credentials()


class CredentialProvider(Protocol):
    """Anything that finds the credentials of an address."""

    def find(self, origin: str) -> Credentials: ...


class EnvironmentCredentials(msgspec.Struct, frozen=True):
    """Credentials from `TIDEGATE_TOKEN_<HOST>` and `TIDEGATE_USER_<HOST>`; never for plain HTTP."""

    variables: Mapping[str, str]
    """The environment variables."""

    def __repr__(self) -> str:
        return "EnvironmentCredentials()"

    def find(self, origin: str) -> Credentials:
        """Return the credentials of an address; `NO_CREDENTIALS` without any."""
        scheme, _, host = origin.partition("://")
        name = host_variable_suffix(host)
        token = self.variables.get(TOKEN_PREFIX + name, "")
        if scheme == "http" or not token:
            return NO_CREDENTIALS
        username = self.variables.get(USER_PREFIX + name, "") or "git"
        return Credentials(username=username, password=SecretValue(token))


class DockerLogins(msgspec.Struct, frozen=True):
    """Credentials from the `auths` of a Docker configuration."""

    logins: Mapping[str, Credentials]
    """Credentials by registry."""

    def find(self, origin: str) -> Credentials:
        """Return the credentials of an address; `NO_CREDENTIALS` without any."""
        return self.logins.get(origin.partition("://")[2], NO_CREDENTIALS)


class DockerConfigFile(msgspec.Struct, frozen=True):
    """Docker configuration in a file, read when credentials are needed; it may be missing."""

    path: Path
    """The path of the file."""

    def find(self, origin: str) -> Credentials:
        """Return the credentials of an address; `NO_CREDENTIALS` without any."""
        if not self.path.is_absolute() or not self.path.is_file():
            return NO_CREDENTIALS
        try:
            content = read_regular_file(self.path)
        except OSError:
            problem = "cannot read the login file"
            raise SourceError("source.login", problem, location=Location(str(self.path))) from None
        return read_docker_logins(content, str(self.path)).find(origin)


class CredentialChain(msgspec.Struct, frozen=True):
    """Several providers; the first that has credentials counts."""

    providers: tuple[CredentialProvider, ...] = ()
    """The providers, in order of precedence."""

    def find(self, origin: str) -> Credentials:
        """Return the credentials of an address; `NO_CREDENTIALS` without any."""
        candidates = (provider.find(origin) for provider in self.providers)
        return next(
            (credentials for credentials in candidates if credentials != NO_CREDENTIALS),
            NO_CREDENTIALS,
        )


class OriginCredentials(msgspec.Struct, frozen=True):
    """Credentials for one address, such as those of a Secret that a source refers to."""

    origin: str
    """Scheme, host and port."""
    credentials: Credentials
    """The credentials."""

    def find(self, origin: str) -> Credentials:
        """Return the credentials if the address is theirs."""
        return self.credentials if origin == self.origin else NO_CREDENTIALS


class _DockerLogin(msgspec.Struct):
    auth: str = ""
    """User and password in base64."""
    username: str = ""
    """The user."""
    password: str = ""
    """The password."""


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _DockerLogin] = {}
    """The logins by registry."""


def host_variable_suffix(host: str) -> str:
    """Return a host as part of a variable name, different for each host: `-` differs from `.`."""
    replacements = (("-", "__"), (".", "_"), (":", "___"))
    name = host.upper()
    for character, replacement in replacements:
        name = name.replace(character, replacement)
    return name


def read_docker_logins(text: bytes, name: str) -> DockerLogins:
    """Read a Docker configuration. `name` names it in errors."""
    try:
        config = msgspec.json.decode(text, type=_DockerConfig)
        # A login in a credential helper of Docker has an empty entry.
        logins_with_credentials = {
            host: login for host, login in config.auths.items() if login != _DockerLogin()
        }
        logins = {
            _login_host(host): _login_credentials(login)
            for host, login in logins_with_credentials.items()
        }
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError):
        problem = "cannot read the Docker configuration"
        raise SourceError("source.login", problem, location=Location(name)) from None
    return DockerLogins(logins)


def credentials_from_environment(variables: Mapping[str, str]) -> CredentialChain:
    """Return the user's credentials: variables, and the logins of Docker and Helm."""
    user_home = variables.get("HOME", "")
    docker_directory = variables.get("DOCKER_CONFIG") or f"{user_home}/.docker"
    config_directory = variables.get("XDG_CONFIG_HOME") or f"{user_home}/.config"
    helm_config = (
        variables.get("HELM_REGISTRY_CONFIG") or f"{config_directory}/helm/registry/config.json"
    )
    files = (Path(f"{docker_directory}/config.json"), Path(helm_config))
    return CredentialChain((EnvironmentCredentials(variables), *map(DockerConfigFile, files)))


def authorization_header(credentials: Credentials) -> str:
    """Return the value of the `Authorization` header; empty without credentials."""
    if credentials.token is not None:
        return f"Bearer {credentials.token.reveal()}"
    if credentials.password is None:
        return ""
    pair = f"{credentials.username}:{credentials.password.reveal()}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _login_host(key: str) -> str:
    host = key.partition("://")[2] or key
    host = host.partition("/")[0]
    return "registry-1.docker.io" if host in ("index.docker.io", "docker.io") else host


def _login_credentials(login: _DockerLogin) -> Credentials:
    if login.auth:
        username, _, password = base64.b64decode(login.auth, validate=True).decode().partition(":")
        return Credentials(username=username, password=SecretValue(password.rstrip("\0")))
    return Credentials(username=login.username, password=SecretValue(login.password))


def credentials_from_secret(
    entries: Mapping[str, bytes], origin: str, *, name: str
) -> CredentialProvider:
    """Return the credentials in the decoded entries of a Secret.

    They are bound to `origin` (`https://host`, `ssh://host`), except a Docker configuration, which
    names its hosts itself. `name` names the Secret in errors.

    Like `secretToRepository` in `util/db/repository_secrets.go` of Argo CD 3.5.6 and `getAuthOpts`
    in `internal/controller/gitrepository_controller.go` of source-controller 1.9.6.
    """
    if DOCKER_CONFIG_ENTRY in entries:
        return read_docker_logins(entries[DOCKER_CONFIG_ENTRY], name)
    fields = {field: _read_entry(entries, names, name) for field, names in SECRET_ENTRIES.items()}
    if not any(fields.values()):
        problem = "the Secret has no credentials for a source"
        supported = (
            "username",
            "password",
            "bearerToken",
            "identity",
            "tls.crt",
            DOCKER_CONFIG_ENTRY,
        )
        hint = "supported entries: " + ", ".join(f"`{entry}`" for entry in supported)
        raise SourceError("source.login", problem, location=Location(name), hint=hint)
    credentials = Credentials(
        username=fields["username"],
        password=_optional_secret(fields["password"]),
        token=_optional_secret(fields["token"]),
        ca_certificate=fields["authority"],
        certificate=fields["certificate"],
        key=_optional_secret(fields["key"]),
        identity=_optional_secret(fields["identity"]),
        known_hosts=fields["known_hosts"],
    )
    return OriginCredentials(origin, credentials)


def _read_entry(entries: Mapping[str, bytes], names: tuple[str, ...], secret_name: str) -> str:
    for name in names:
        if entries.get(name):
            try:
                return entries[name].decode()
            except UnicodeDecodeError:
                problem = "an entry of the Secret is not text"
                raise SourceError(
                    "source.login", problem, location=Location(secret_name, field=name)
                ) from None
    return ""


def _optional_secret(text: str) -> SecretValue | None:
    return SecretValue(text) if text else None
