"""Ask an exec plugin for credentials, in the words of `client.authentication.k8s.io`.

What a plugin prints holds a token, so no message ever shows a part of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from tidegate.documents import read
from tidegate.errors import ConfigError, DocumentError, LateError, ProcessError, foreign
from tidegate.external.process import MIB, Command, Limits, run
from tidegate.external.tools import find_program
from tidegate.kube.access.context import ClientCertificate, Interactive, Plugin
from tidegate.kube.access.users import check_token
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.secret import Secret

ALONE = Limits(time=Ms(2 * MINUTE), output=MIB)
WITH_A_PERSON = Limits(time=Ms(10 * MINUTE), output=MIB)
"""Someone may have to find a telephone and type a code."""

LONG_ENOUGH = 4
"""Characters of a value that is hidden: shorter ones stand in many words."""
MANUAL = "see the manual of the plugin"


class Grant(NamedTuple):
    """What a plugin gave, and until when it is good; without a moment, until a server says no."""

    token: Secret | None
    certificate: ClientCertificate | None
    expires: Ms | None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _PluginAnswer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = "ExecCredential"
    status: _Status | None = None


async def ask_plugin(plugin: Plugin, *, has_terminal: bool) -> Grant:
    """Run the plugin and read what it grants."""
    if plugin.interactive is Interactive.ALWAYS and not has_terminal:
        problem = f"exec plugin `{plugin.command}` wants to ask questions, and there is no terminal"
        hint = "run this from a terminal, or log in by another way"
        raise ConfigError("config.exec.terminal", problem, where=plugin.place, hint=hint)
    talks = has_terminal and plugin.interactive is not Interactive.NEVER
    return _read_grant(await _run(plugin, talks=talks), plugin)


async def _run(plugin: Plugin, *, talks: bool) -> bytes:
    hint = foreign(plugin.install_hint)
    try:
        program = find_program(plugin.command, path=plugin.path, hint=hint)
        environment = dict(plugin.environment) | {
            "KUBERNETES_EXEC_INFO": _request(plugin, talks=talks)
        }
        command = Command(argv=(str(program), *plugin.args), env=environment, shares_terminal=talks)
        ran = await run(command, limits=WITH_A_PERSON if talks else ALONE)
    except ProcessError as error:
        problem, hint = f"exec plugin: {error.problem}", error.hint or hint
        problem, hint, where = _discreet(problem, plugin), _discreet(hint, plugin), plugin.place
        if error.code == "external.timeout":
            raise LateError("config.exec.timeout", problem, where=where, hint=hint) from None
        if error.code == "external.missing":
            raise ConfigError("config.exec.missing", problem, where=where, hint=hint) from None
        raise ConfigError("config.exec.failed", problem, where=where, hint=hint) from None
    return ran.stdout


def _discreet(text: str, plugin: Plugin) -> str:
    """The words of a plugin without what the kubeconfig gave it."""
    for value in plugin.given:
        if len(value.reveal()) >= LONG_ENOUGH:
            text = text.replace(value.reveal(), "***")
    return text


def _request(plugin: Plugin, *, talks: bool) -> str:
    """What the plugin finds in its environment."""
    spec: dict[str, bool | msgspec.Raw] = {"interactive": talks}
    if plugin.cluster is not None:
        spec["cluster"] = msgspec.Raw(plugin.cluster)
    asked = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(asked).decode()


def _read_grant(output: bytes, plugin: Plugin) -> Grant:
    answer = _decode(output, plugin)
    if (answer.api_version, answer.kind) != (plugin.api_version, "ExecCredential"):
        got = foreign(f"{answer.api_version} {answer.kind}")
        raise _unusable(plugin, f"answered with `{got}`, not `{plugin.api_version} ExecCredential`")
    status = answer.status
    if status is None:
        raise _unusable(plugin, "gave no `status`")
    if not (status.token or status.client_certificate_data or status.client_key_data):
        raise _unusable(plugin, "gave neither a token nor a certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _unusable(plugin, "gave a certificate without its key, or a key alone")
    if status.token and check_token(status.token, ""):
        raise _unusable(plugin, "gave a token that holds a line break")
    end = status.expiration_timestamp
    return Grant(
        Secret(status.token) if status.token else None,
        _certificate(status, plugin),
        Ms(int(end.timestamp() * 1000)) if end else None,
    )


def _certificate(status: _Status, plugin: Plugin) -> ClientCertificate | None:
    if not status.client_certificate_data or not status.client_key_data:
        return None
    certificate = status.client_certificate_data.encode()
    return ClientCertificate(certificate, Secret(status.client_key_data), plugin.place)


def _decode(output: bytes, plugin: Plugin) -> _PluginAnswer:
    """JSON as the protocol says, or YAML, which kubectl takes as well."""
    try:
        return msgspec.json.decode(output, type=_PluginAnswer)
    except msgspec.ValidationError as error:
        raise _unusable(plugin, f"gave a wrong answer: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        documents = read(output, plugin.command)
        return msgspec.convert(documents[0].body if documents else {}, type=_PluginAnswer)
    except (DocumentError, msgspec.ValidationError):
        # Not chained: a reader's complaint may quote what it read.
        raise _unusable(plugin, "gave no JSON") from None


def _unusable(plugin: Plugin, why: str) -> ConfigError:
    problem = f"exec plugin `{plugin.command}` {why}"
    return ConfigError("config.exec.answer", problem, where=plugin.place, hint=MANUAL)
