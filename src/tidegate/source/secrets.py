"""What the entries of a Secret open, by the names that are usual for them.

For passwords, tokens, certificates and keys of ssh, Flux has one set of names and Argo CD another;
they do not contradict each other. Which address a Secret is for, says whoever refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.errors import Place, SourceError
from tidegate.model.secret import Secret
from tidegate.model.source import Credentials
from tidegate.source.credentials import Given, Keyring, read_docker_logins

DOCKER = ".dockerconfigjson"
NAMES = {
    "username": ("username",),
    "password": ("password",),
    "token": ("bearerToken",),
    "authority": ("ca.crt", "caFile"),
    "certificate": ("tls.crt", "certFile", "tlsClientCertData"),
    "key": ("tls.key", "keyFile", "tlsClientCertKey"),
    "identity": ("identity", "sshPrivateKey"),
    "known_hosts": ("known_hosts",),
}


def keyring_of_secret(entries: Mapping[str, bytes], origin: str, *, name: str) -> Keyring:
    """Credentials for an address (`https://host`, `ssh://host`), from decoded entries.

    A Docker configuration says itself for whom it is. `name` is how errors call the Secret.
    """
    if DOCKER in entries:
        return read_docker_logins(entries[DOCKER], name)
    found = {field: _first(entries, names, name) for field, names in NAMES.items()}
    if not any(found.values()):
        problem = "the Secret has no entry that opens a source"
        known = ("username", "password", "bearerToken", "identity", "tls.crt", DOCKER)
        hint = "there may be " + ", ".join(f"`{each}`" for each in known)
        raise SourceError("source.login", problem, where=Place(name), hint=hint)
    credentials = Credentials(
        username=found["username"],
        password=_secret(found["password"]),
        token=_secret(found["token"]),
        authority=found["authority"],
        certificate=found["certificate"],
        key=_secret(found["key"]),
        identity=_secret(found["identity"]),
        known_hosts=found["known_hosts"],
    )
    return Given(origin, credentials)


def _first(entries: Mapping[str, bytes], names: tuple[str, ...], where: str) -> str:
    for name in names:
        if entries.get(name):
            try:
                return entries[name].decode()
            except UnicodeDecodeError:
                problem = "an entry of the Secret is not text"
                raise SourceError("source.login", problem, where=Place(where, field=name)) from None
    return ""


def _secret(text: str) -> Secret | None:
    return Secret(text) if text else None
