"""Exec plugins: runs one for credentials, with the protocol of `client.authentication.k8s.io`.

The output of a plugin contains a token, so messages never show any part of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import ConfigError, DocumentError, ProcessError, WaitTimeoutError, sanitize
from tidegate.external.process import MIB, Command, Limits, run
from tidegate.external.tools import find_program
from tidegate.kube.access.context import ClientCertificate, ExecPlugin, InteractiveMode
from tidegate.kube.access.users import check_token
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.times import MINUTE, Ms

NON_INTERACTIVE_LIMITS = Limits(time=Ms(2 * MINUTE), output=MIB)
INTERACTIVE_LIMITS = Limits(time=Ms(10 * MINUTE), output=MIB)
"""The user may have to find a phone and type a code."""
MIN_REDACTED_LENGTH = 4
"""Minimum length of a value that is redacted: shorter ones are part of many words."""
MANUAL_HINT = "see the documentation of the plugin"


class ExecCredential(NamedTuple):
    """Credentials of a plugin."""

    token: SecretValue | None
    """The bearer token; None for none."""
    certificate: ClientCertificate | None
    """The client certificate; None for none."""
    expires: Ms | None
    """When they expire; None if they are valid until a server rejects them."""


class _CredentialStatus(msgspec.Struct, rename="camel"):
    """The `status` of an ExecCredential."""

    token: str | None = None
    """The bearer token."""
    client_certificate_data: str | None = None
    """The client certificate as PEM."""
    client_key_data: str | None = None
    """The private key as PEM."""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """When the credentials expire."""


class _PluginResponse(msgspec.Struct, rename="camel"):
    """The ExecCredential that a plugin prints."""

    api_version: str = ""
    """The version of the protocol."""
    kind: str = "ExecCredential"
    """`ExecCredential`."""
    status: _CredentialStatus | None = None
    """The credentials."""


async def run_plugin(plugin: ExecPlugin, *, has_terminal: bool) -> ExecCredential:
    """Run the plugin and return its credentials.

    Raises ConfigError if it fails, and WaitTimeoutError if it does not finish in time.

    Like `refreshCredsLocked` in `plugin/pkg/client/auth/exec/exec.go` of k8s.io/client-go 0.36.4.
    """
    if plugin.interactive_mode is InteractiveMode.ALWAYS and not has_terminal:
        problem = f"exec plugin `{plugin.command}` needs a terminal to ask questions"
        hint = "run this from a terminal, or use another login"
        raise ConfigError("config.exec.terminal", problem, location=plugin.location, hint=hint)
    interactive = has_terminal and plugin.interactive_mode is not InteractiveMode.NEVER
    return _read_credential(await _run_program(plugin, interactive=interactive), plugin)


async def _run_program(plugin: ExecPlugin, *, interactive: bool) -> bytes:
    hint = sanitize(plugin.install_hint)
    try:
        program = find_program(plugin.command, path=plugin.path, hint=hint)
        environment = dict(plugin.environment) | {
            "KUBERNETES_EXEC_INFO": _encode_exec_info(plugin, interactive=interactive)
        }
        command = Command(
            argv=(str(program), *plugin.args), env=environment, shares_terminal=interactive
        )
        result = await run(
            command, limits=INTERACTIVE_LIMITS if interactive else NON_INTERACTIVE_LIMITS
        )
    except ProcessError as error:
        problem, hint = f"exec plugin: {error.problem}", error.hint or hint
        problem, hint, location = _redact(problem, plugin), _redact(hint, plugin), plugin.location
        if error.code == "external.timeout":
            raise WaitTimeoutError(
                "config.exec.timeout", problem, location=location, hint=hint
            ) from None
        if error.code == "external.missing":
            raise ConfigError(
                "config.exec.missing", problem, location=location, hint=hint
            ) from None
        raise ConfigError("config.exec.failed", problem, location=location, hint=hint) from None
    return result.stdout


def _redact(text: str, plugin: ExecPlugin) -> str:
    """Redact the values that the kubeconfig adds to the environment of the plugin."""
    for value in plugin.secrets:
        if len(value.reveal()) >= MIN_REDACTED_LENGTH:
            text = text.replace(value.reveal(), "***")
    return text


def _encode_exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    """Return the value of KUBERNETES_EXEC_INFO."""
    spec: dict[str, bool | msgspec.Raw] = {"interactive": interactive}
    if plugin.cluster_info is not None:
        spec["cluster"] = msgspec.Raw(plugin.cluster_info)
    exec_info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(exec_info).decode()


def _read_credential(output: bytes, plugin: ExecPlugin) -> ExecCredential:
    response = _decode(output, plugin)
    if (response.api_version, response.kind) != (plugin.api_version, "ExecCredential"):
        actual = sanitize(f"{response.api_version} {response.kind}")
        raise _response_error(
            plugin, f"returned `{actual}`, not `{plugin.api_version} ExecCredential`"
        )
    status = response.status
    if status is None:
        raise _response_error(plugin, "returned no `status`")
    if not (status.token or status.client_certificate_data or status.client_key_data):
        raise _response_error(plugin, "returned neither a token nor a certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _response_error(
            plugin, "returned a certificate without a key, or a key without a certificate"
        )
    if status.token and check_token(status.token, ""):
        raise _response_error(plugin, "returned a token with a line break")
    expiry = status.expiration_timestamp
    return ExecCredential(
        SecretValue(status.token) if status.token else None,
        _certificate(status, plugin),
        Ms(int(expiry.timestamp() * 1000)) if expiry else None,
    )


def _certificate(status: _CredentialStatus, plugin: ExecPlugin) -> ClientCertificate | None:
    if not status.client_certificate_data or not status.client_key_data:
        return None
    certificate = status.client_certificate_data.encode()
    return ClientCertificate(certificate, SecretValue(status.client_key_data), plugin.location)


def _decode(output: bytes, plugin: ExecPlugin) -> _PluginResponse:
    """Decode JSON, as the protocol specifies, or YAML, which kubectl accepts as well."""
    try:
        return msgspec.json.decode(output, type=_PluginResponse)
    except msgspec.ValidationError as error:
        raise _response_error(plugin, f"returned invalid output: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        documents = read_documents(output, plugin.command)
        return msgspec.convert(documents[0].body if documents else {}, type=_PluginResponse)
    except (DocumentError, msgspec.ValidationError):
        # Not chained: the error of the parser may quote its input.
        raise _response_error(plugin, "returned no JSON") from None


def _response_error(plugin: ExecPlugin, reason: str) -> ConfigError:
    problem = f"exec plugin `{plugin.command}` {reason}"
    return ConfigError("config.exec.answer", problem, location=plugin.location, hint=MANUAL_HINT)
