"""What reaches a server from kubectl and from us, for the same kubeconfig, is the same."""

from __future__ import annotations

import asyncio
import base64
import http.client
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.support.certificates import issue
from tests.support.echo_server import echo_server
from tidegate.errors import ConfigError
from tidegate.kube.config import load_target
from tidegate.kube.credentials import make_auth_source
from tidegate.kube.tls import make_context
from tidegate.model.k8s.objects import Json

KUBECTL = Path(sys.executable).with_name("kubectl")
Fields = dict[str, Json]
PLUGIN = """#!/bin/sh
printf '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}' "$V" "${1:-plugged}"
"""
V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
EXEC: Fields = {
    "apiVersion": V1,
    "command": "bin/plugin",
    "interactiveMode": "Never",
    "env": [{"name": "V", "value": V1}],
}
IS_BETA: Json = [{"name": "V", "value": BETA}]
TELL = 'printf \'{"apiVersion":"%s","status":{"token":"%s"}}\' "$V" "$(echo "$KUBERNETES_EXEC_INFO" | base64 -w0)"'  # noqa: E501


@dataclass(frozen=True, slots=True)
class CredentialsFolder:
    """A folder with credentials in it, and two servers that record their clients."""

    folder: Path
    secure: int
    plain: int

    def write(self, user: Fields, cluster: Fields) -> Path:
        server = f"https://127.0.0.1:{self.secure}"
        whole: Fields = {"server": server, "certificate-authority": "ca.crt", **cluster}
        body: Fields = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": whole}],
            "users": [{"name": "u", "user": user}],
        }
        text = msgspec.json.encode(body).decode().replace("PLAIN", str(self.plain))
        path = self.folder / "config"
        path.write_text(text.replace("SECURE", str(self.secure)))
        return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CredentialsFolder]:
    folder = tmp_path_factory.mktemp("lab")
    authority = issue("authority", is_authority=True)
    server, client = issue("server", authority), issue("jane", authority)
    contents = {
        "ca.crt": authority.certificate,
        "client.crt": client.certificate,
        "client.key": client.key,
        "server.pem": server.certificate + server.key,
        "token": b"  filed\n\n",
        "bin/plugin": PLUGIN.encode(),
    }
    (folder / "bin").mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "bin" / "plugin").chmod(0o755)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    with echo_server(context) as secure, echo_server() as plain:
        yield CredentialsFolder(folder, secure, plain)


def by_kubectl(path: Path) -> Fields | None:
    argv = [str(KUBECTL), "--kubeconfig", str(path), "get", "--raw", "/x"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(path.parent)}
    ended = subprocess.run(
        argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    echoed: Fields | None = msgspec.json.decode(ended.stdout) if ended.returncode == 0 else None
    return echoed


def by_us(path: Path) -> Fields | None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(path.parent)}
    try:
        target = load_target(kubeconfig=str(path), environ=environ)
        source = make_auth_source(target, has_terminal=lambda: False)
        auth = asyncio.run(source.current())
        context = make_context(target, auth.certificate) if target.server[4] == "s" else None
    except ConfigError:
        return None
    url = urlsplit(target.server)
    assert url.hostname is not None
    connection = http.client.HTTPConnection(url.hostname, url.port)
    if context is not None:
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
    connection.putrequest("GET", f"{url.path}/x", skip_accept_encoding=True)
    for name, value in auth.headers():
        connection.putheader(name, value.encode())
    connection.endheaders()
    echoed: Fields = msgspec.json.decode(connection.getresponse().read())
    connection.close()
    return echoed


CERTIFICATE: Fields = {"client-certificate": "client.crt", "client-key": "client.key"}
PLAIN: Fields = {"server": "http://127.0.0.1:PLAIN"}
CASES: list[tuple[Fields, Fields]] = [
    ({"token": "t"}, {}),
    ({"token": "t"}, {"server": "https://127.0.0.1:SECURE/below/"}),
    ({"token": "t"}, {"certificate-authority": None, "insecure-skip-tls-verify": True}),
    ({"token": "t"}, {"insecure-skip-tls-verify": True}),
    ({"token": "t", "tokenFile": "token"}, {}),
    ({"token": "t", "tokenFile": "none"}, {}),
    ({"tokenFile": "token"}, {}),
    ({"tokenFile": "none"}, {}),
    ({"token": "a\nb"}, {}),
    ({"token": "t", "username": "jane"}, {}),
    ({"username": "jane", "password": "p:ä"}, {}),
    (CERTIFICATE, {}),
    ({**CERTIFICATE, "token": "t"}, {}),
    ({**CERTIFICATE, "exec": EXEC}, {}),
    ({"token": "t", "exec": EXEC}, {}),
    ({"exec": EXEC}, {}),
    ({"exec": {**EXEC, "args": ["given"]}}, {}),
    ({"exec": {**EXEC, "apiVersion": BETA, "interactiveMode": None, "env": IS_BETA}}, {}),
    ({"exec": {**EXEC, "env": IS_BETA}}, {}),
    ({"exec": {**EXEC, "interactiveMode": None}}, {}),
    ({"token": "t", "auth-provider": {"name": "gcp"}}, {}),
    ({"token": "t", "as-groups": ["g"]}, {}),
    (
        {
            "token": "t",
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["g1", "g 2"],
            "as-user-extra": {"scopes": ["b", "a"], "acme.com/x y%(~)": ["c"], "none": []},
        },
        {},
    ),
    ({"token": "t", "as": "jane"}, PLAIN),
    ({"exec": EXEC}, {"server": "127.0.0.1:PLAIN"}),
]


@pytest.mark.parametrize(("user", "cluster"), CASES)
def test_a_server_sees_the_same_from_kubectl_and_from_us(
    lab: CredentialsFolder, user: Fields, cluster: Fields
) -> None:
    path = lab.write(user, cluster)

    ours, theirs = by_us(path), by_kubectl(path)

    assert ours == theirs


def test_a_plugin_gets_the_same_input_from_kubectl_and_from_us(lab: CredentialsFolder) -> None:
    teller: Fields = {**EXEC, "command": "sh", "args": ["-c", TELL], "provideClusterInfo": True}
    extension: Json = {"name": f"{V1.rpartition('/')[0]}/exec", "extension": {"audience": "x"}}
    cluster: Fields = {"extensions": [extension], "tls-server-name": "127.0.0.1"}
    path = lab.write({"exec": teller}, {**cluster, "disable-compression": True})

    ours, theirs = (comparable_fields(echoed) for echoed in (by_us(path), by_kubectl(path)))

    assert ours == theirs
    assert ours["spec"] != {"interactive": False}


def comparable_fields(echoed: Fields | None) -> Fields:
    """The input of a plugin, which it put into its token."""
    assert echoed is not None
    headers = echoed["headers"]
    assert isinstance(headers, list)
    tokens = [pair[1] for pair in headers if isinstance(pair, list) and pair[0] == "authorization"]
    document: Fields = msgspec.json.decode(base64.b64decode(str(tokens[0]).removeprefix("Bearer ")))
    return document
