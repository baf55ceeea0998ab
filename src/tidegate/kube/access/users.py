"""The user of a context: credentials, client certificate and impersonation.

Which of several credentials counts was determined with kubectl:

    tokenFile           wins over `token`, which is used while the file cannot be read
    token and password  contradict each other
    client certificate  is presented together with a token or a password
    exec                runs only if there is none of these
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.errors import ConfigError
from tidegate.kube.access.clusters import ServerAddress, encode_cluster_info
from tidegate.kube.access.context import (
    Anonymous,
    BasicAuth,
    BearerToken,
    ClientCertificate,
    ExecPlugin,
    InteractiveMode,
    Login,
    TokenFile,
)
from tidegate.kube.access.entries import ConfigEntry, read_file
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.identity import ImpersonatedUser

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
CONTROL_CHARACTER = lazy_regex(r"[\x00-\x08\x0a-\x1f\x7f]")
AUTH_PROVIDER_HINTS = {
    "gcp": "use the exec plugin `gke-gcloud-auth-plugin`",
    "azure": "use the exec plugin `kubelogin`",
    "oidc": "use an exec plugin such as `kubectl oidc-login`",
}


def read_login(
    user: ConfigEntry, *, cluster: ConfigEntry, server: ServerAddress, environ: Mapping[str, str]
) -> tuple[Login, ClientCertificate | None]:
    """Return the credentials of a user, and the client certificate to present with them.

    Raises ConfigError if they contradict each other.

    Like `getUserIdentificationPartialConfig` in `tools/clientcmd/client_config.go` and
    `validateAuthInfo` in `tools/clientcmd/validation.go` of k8s.io/client-go 0.36.4.
    """
    if user.has("auth-provider"):
        raise _auth_provider_error(user)
    certificate = read_certificate(user)
    has_token = user.has("token", "tokenFile")
    if has_token and user.has("username", "password"):
        problem = f"{user.title} has both a token and a user name or password"
        location = user.locate("username" if user.has("username") else "password")
        raise ConfigError(
            "config.conflict", problem, location=location, hint="remove one of the two"
        )
    if has_token:
        return _read_token(user), certificate
    if user.has("username", "password"):
        return _read_basic(user), certificate
    if certificate is None and user.has("exec"):
        cluster_info = encode_cluster_info(cluster, server)
        return read_plugin(user.get_entry("exec"), cluster=cluster_info, environ=environ), None
    return Anonymous(), certificate


def read_certificate(user: ConfigEntry) -> ClientCertificate | None:
    """Return the client certificate of a user. Returns None if there is none."""
    certificate = user.read_content("client-certificate")
    if certificate is None:
        others = ("token", "tokenFile", "username", "exec")
        if user.has("client-key", "client-key-data") and not user.has(*others):
            problem = f"{user.title} has a client key, but no client certificate"
            hint = "add `client-certificate` or `client-certificate-data`"
            raise ConfigError("config.certificate", problem, location=user.locate(), hint=hint)
        return None
    field = "client-certificate"
    location = user.locate(field if user.has(field) else f"{field}-data")
    key = user.read_content("client-key")
    if key is None:
        problem = f"{user.title} has a client certificate, but no key"
        hint = "add `client-key` or `client-key-data`"
        raise ConfigError("config.certificate", problem, location=location, hint=hint)
    return ClientCertificate(certificate, SecretValue(key.decode("latin-1")), location)


def read_identity(user: ConfigEntry) -> ImpersonatedUser | None:
    """Return the user to impersonate. Returns None if there is none.

    Ignoring it would give more rights than the kubeconfig requests.
    """
    extra_entry = user.get_entry("as-user-extra")
    identity = ImpersonatedUser(
        user=user.get_text("as"),
        uid=user.get_text("as-uid"),
        groups=user.get_texts("as-groups"),
        extra=tuple((key, text) for key in extra_entry.body for text in extra_entry.get_texts(key)),
    )
    if not identity.user:
        if user.has("as-uid", "as-groups", "as-user-extra"):
            problem = f"{user.title} impersonates a uid, groups or extras, but no user"
            hint = "add `as: <user>`"
            raise ConfigError("config.impersonation", problem, location=user.locate(), hint=hint)
        return None
    texts = (identity.user, identity.uid, *identity.groups, *(text for _, text in identity.extra))
    if any(CONTROL_CHARACTER.search(text) for text in texts):
        problem = f"{user.title} impersonates a name with a line break"
        raise ConfigError("config.impersonation", problem, location=user.locate("as"))
    return identity


def read_plugin(
    exec_entry: ConfigEntry, *, cluster: bytes, environ: Mapping[str, str]
) -> ExecPlugin:
    """Return the exec plugin of a user. Raises ConfigError if it is invalid."""
    command = exec_entry.get_text("command")
    if not command:
        raise _plugin_error(exec_entry, "command", "has no `command`", "set the program to run")
    api_version = exec_entry.get_text("apiVersion")
    if api_version not in (V1, V1BETA1):
        reason = f"must have `apiVersion` {V1} or {V1BETA1}"
        raise _plugin_error(exec_entry, "apiVersion", reason, "see the documentation of the plugin")
    path = exec_entry.resolve_path("command") if "/" in command else None
    variables = _read_variables(exec_entry)
    return ExecPlugin(
        command=str(path or command),
        args=exec_entry.get_texts("args"),
        environment=tuple({**environ, **variables}.items()),
        path=environ.get("PATH", ""),
        api_version=api_version,
        interactive_mode=_read_interactive(exec_entry, api_version),
        install_hint=exec_entry.get_text("installHint"),
        cluster_info=cluster if exec_entry.get_flag("provideClusterInfo") else None,
        location=exec_entry.locate(),
        secrets=tuple(map(SecretValue, variables.values())),
    )


def check_token(token: str, title: str) -> str:
    """Return what is wrong with a token. Returns an empty text if it is valid."""
    if not token:
        return f"the token of {title} is empty"
    return f"the token of {title} contains a line break" if CONTROL_CHARACTER.search(token) else ""


def _read_token(user: ConfigEntry) -> BearerToken | TokenFile:
    token = user.get_text("token")
    if token and (problem := check_token(token, user.title)):
        hint = "write the token on one line"
        raise ConfigError("config.token", problem, location=user.locate("token"), hint=hint)
    path = user.resolve_path("tokenFile")
    if path is None:
        return BearerToken(SecretValue(token))
    if not token:
        read_file(path, user.locate("tokenFile"))
    return TokenFile(path, user.locate("tokenFile"), SecretValue(token) if token else None)


def _read_basic(user: ConfigEntry) -> BasicAuth:
    if not user.has("username"):
        problem = f"{user.title} has a password, but no user name"
        hint = "add `username`"
        raise ConfigError("config.login", problem, location=user.locate("password"), hint=hint)
    return BasicAuth(user.get_text("username"), SecretValue(user.get_text("password")))


def _read_variables(exec_entry: ConfigEntry) -> dict[str, str]:
    variables = {}
    for entry in exec_entry.get_entries("env"):
        name = entry.get_text("name")
        if not name:
            reason = "has a variable without a name"
            raise _plugin_error(exec_entry, "env", reason, "give it a `name`")
        variables[name] = entry.get_text("value")
    return variables


def _read_interactive(exec_entry: ConfigEntry, api_version: str) -> InteractiveMode:
    text = exec_entry.get_text("interactiveMode")
    if not text and api_version == V1BETA1:
        return InteractiveMode.IF_AVAILABLE
    try:
        return InteractiveMode(text)
    except ValueError:
        reason = "does not set whether it may ask the user"
        hint = "set `interactiveMode` to Never, IfAvailable or Always"
        raise _plugin_error(exec_entry, "interactiveMode", reason, hint) from None


def _plugin_error(exec_entry: ConfigEntry, key: str, reason: str, hint: str) -> ConfigError:
    problem = f"the exec plugin of {exec_entry.title} {reason}"
    return ConfigError("config.exec", problem, location=exec_entry.locate(key), hint=hint)


def _auth_provider_error(user: ConfigEntry) -> ConfigError:
    name = user.get_entry("auth-provider").get_text("name")
    state = "Kubernetes has removed" if name in ("gcp", "azure") else "is not supported"
    problem = f"{user.title} logs in with the auth provider `{name}`, which {state}"
    hint = AUTH_PROVIDER_HINTS.get(name, "use an exec plugin")
    location = user.locate("auth-provider")
    return ConfigError("config.auth-provider", problem, location=location, hint=hint)
