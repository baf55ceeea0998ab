"""The user of a context: how we log in, with which certificate, and whom we impersonate.

What counts when a user has several credentials was found out from kubectl:

    tokenFile           wins over `token`, which serves while the file cannot be read
    token and password  contradict each other
    client certificate  is shown together with a token or a password
    exec                is run only where there is none of these
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.errors import ConfigError
from tidegate.kube.access.clusters import ServerAddress, describe
from tidegate.kube.access.context import (
    Anonymous,
    Basic,
    ClientCertificate,
    Interactive,
    Login,
    Plugin,
    Token,
    TokenFile,
)
from tidegate.kube.access.stanza import Stanza, read_file
from tidegate.model.identity import Identity
from tidegate.model.patterns import late
from tidegate.model.secret import Secret

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
CONTROL = late(r"[\x00-\x08\x0a-\x1f\x7f]")
REPLACEMENTS = {
    "gcp": "use the exec plugin `gke-gcloud-auth-plugin`",
    "azure": "use the exec plugin `kubelogin`",
    "oidc": "use an exec plugin such as `kubectl oidc-login`",
}


def read_login(
    user: Stanza, *, cluster: Stanza, server: ServerAddress, environ: Mapping[str, str]
) -> tuple[Login, ClientCertificate | None]:
    """How a user logs in, and the certificate that is shown besides."""
    if user.has("auth-provider"):
        raise _no_auth_provider(user)
    certificate = read_certificate(user)
    has_token = user.has("token", "tokenFile")
    if has_token and user.has("username", "password"):
        problem = f"{user.title} has both a token and a user name or password"
        where = user.place("username" if user.has("username") else "password")
        raise ConfigError("config.both", problem, where=where, hint="remove one of the two")
    if has_token:
        return _read_token(user), certificate
    if user.has("username", "password"):
        return _read_basic(user), certificate
    if certificate is None and user.has("exec"):
        cluster_told = describe(cluster, server)
        return read_plugin(user.stanza("exec"), cluster=cluster_told, environ=environ), None
    return Anonymous(), certificate


def read_certificate(user: Stanza) -> ClientCertificate | None:
    certificate = user.content("client-certificate")
    if certificate is None:
        others = ("token", "tokenFile", "username", "exec")
        if user.has("client-key", "client-key-data") and not user.has(*others):
            problem = f"{user.title} has a client key, but no client certificate"
            hint = "add `client-certificate` or `client-certificate-data`"
            raise ConfigError("config.certificate", problem, where=user.place(), hint=hint)
        return None
    named = "client-certificate"
    place = user.place(named if user.has(named) else f"{named}-data")
    key = user.content("client-key")
    if key is None:
        problem = f"{user.title} has a client certificate, but no key"
        hint = "add `client-key` or `client-key-data`"
        raise ConfigError("config.certificate", problem, where=place, hint=hint)
    return ClientCertificate(certificate, Secret(key.decode("latin-1")), place)


def read_identity(user: Stanza) -> Identity | None:
    """Whom to impersonate. Ignoring it would give more rights than the kubeconfig asks for."""
    extra_stanza = user.stanza("as-user-extra")
    identity = Identity(
        user=user.text("as"),
        uid=user.text("as-uid"),
        groups=user.texts("as-groups"),
        extra=tuple((key, text) for key in extra_stanza.body for text in extra_stanza.texts(key)),
    )
    if not identity.user:
        if user.has("as-uid", "as-groups", "as-user-extra"):
            problem = f"{user.title} impersonates a uid, groups or extras, but no user"
            hint = "add `as: <user>`"
            raise ConfigError("config.impersonation", problem, where=user.place(), hint=hint)
        return None
    texts = (identity.user, identity.uid, *identity.groups, *(text for _, text in identity.extra))
    if any(CONTROL.search(text) for text in texts):
        problem = f"{user.title} impersonates a name that holds a line break"
        raise ConfigError("config.impersonation", problem, where=user.place("as"))
    return identity


def read_plugin(stanza: Stanza, *, cluster: bytes, environ: Mapping[str, str]) -> Plugin:
    command = stanza.text("command")
    if not command:
        raise _wrong_plugin(stanza, "command", "has no `command`", "name the program to run")
    api_version = stanza.text("apiVersion")
    if api_version not in (V1, V1BETA1):
        why = f"must have `apiVersion` {V1} or {V1BETA1}"
        raise _wrong_plugin(stanza, "apiVersion", why, "see the manual of the plugin")
    path = stanza.file_path("command") if "/" in command else None
    variables = _read_variables(stanza)
    return Plugin(
        command=str(path or command),
        args=stanza.texts("args"),
        environment=tuple({**environ, **variables}.items()),
        path=environ.get("PATH", ""),
        api_version=api_version,
        interactive=_read_interactive(stanza, api_version),
        install_hint=stanza.text("installHint"),
        cluster=cluster if stanza.flag("provideClusterInfo") else None,
        place=stanza.place(),
        given=tuple(map(Secret, variables.values())),
    )


def check_token(token: str, stanza_title: str) -> str:
    """What is wrong with a token, or nothing."""
    if not token:
        return f"the token of {stanza_title} is empty"
    return f"the token of {stanza_title} holds a line break" if CONTROL.search(token) else ""


def _read_token(user: Stanza) -> Token | TokenFile:
    token = user.text("token")
    if token and (wrong := check_token(token, user.title)):
        hint = "write the token on one line"
        raise ConfigError("config.token", wrong, where=user.place("token"), hint=hint)
    path = user.file_path("tokenFile")
    if path is None:
        return Token(Secret(token))
    if not token:
        read_file(path, user.place("tokenFile"))
    return TokenFile(path, user.place("tokenFile"), Secret(token) if token else None)


def _read_basic(user: Stanza) -> Basic:
    if not user.has("username"):
        problem = f"{user.title} has a password, but no user name"
        hint = "add `username`"
        raise ConfigError("config.login", problem, where=user.place("password"), hint=hint)
    return Basic(user.text("username"), Secret(user.text("password")))


def _read_variables(stanza: Stanza) -> dict[str, str]:
    variables = {}
    for entry in stanza.stanzas("env"):
        name = entry.text("name")
        if not name:
            why = "has a variable without a name"
            raise _wrong_plugin(stanza, "env", why, "give it a `name`")
        variables[name] = entry.text("value")
    return variables


def _read_interactive(stanza: Stanza, api_version: str) -> Interactive:
    text = stanza.text("interactiveMode")
    if not text and api_version == V1BETA1:
        return Interactive.IF_AVAILABLE
    try:
        return Interactive(text)
    except ValueError:
        why = "must say whether it may ask the user"
        hint = "set `interactiveMode` to Never, IfAvailable or Always"
        raise _wrong_plugin(stanza, "interactiveMode", why, hint) from None


def _wrong_plugin(stanza: Stanza, key: str, why: str, hint: str) -> ConfigError:
    problem = f"the exec plugin of {stanza.title} {why}"
    return ConfigError("config.exec", problem, where=stanza.place(key), hint=hint)


def _no_auth_provider(user: Stanza) -> ConfigError:
    name = user.stanza("auth-provider").text("name")
    state = "Kubernetes has removed" if name in ("gcp", "azure") else "is not supported"
    problem = f"{user.title} logs in with the auth provider `{name}`, which {state}"
    hint = REPLACEMENTS.get(name, "use an exec plugin")
    where = user.place("auth-provider")
    return ConfigError("config.auth-provider", problem, where=where, hint=hint)
