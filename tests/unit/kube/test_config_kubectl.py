"""The same files, read by kubectl and by us, come down to the same."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tidegate.errors import ConfigError
from tidegate.kube.access.context import BasicAuth, BearerToken, ExecPlugin, KubeTarget, TokenFile
from tidegate.kube.config import load_target
from tidegate.model.k8s.objects import Json

KUBECTL = Path(sys.executable).with_name("kubectl")
FILES = ("one/ca.crt", "one/sub/ca.crt", "two/ca.crt", "ca.crt")
Fields = dict[str, Json]


def kubectl_view(listed: str, folder: Path, context: str | None) -> Fields | None:
    """What kubectl makes of a list of kubeconfigs: the one context that is meant, files inlined."""
    argv = [str(KUBECTL), "config", "view", "--merge", "--flatten", "--raw", "--minify", "-o=json"]
    argv += ["--context", context] if context else []
    environ = {"KUBECONFIG": listed, "HOME": str(folder)}
    ended = subprocess.run(argv, env=environ, cwd=folder, capture_output=True, check=False)
    view: Fields | None = msgspec.json.decode(ended.stdout) if ended.returncode == 0 else None
    return view


def entry(view: Fields, kind: str) -> Fields:
    """The one stanza of a kind that is left in a minified view."""
    listed = view.get(f"{kind}s")
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], dict):
        return {}
    inner = listed[0].get(kind)
    return inner if isinstance(inner, dict) else {}


def seen_by_kubectl(view: Fields) -> Fields:
    cluster, user, context = entry(view, "cluster"), entry(view, "user"), entry(view, "context")
    plugin = user.get("exec") or {}
    assert isinstance(plugin, dict)
    return {
        "name": view["current-context"],
        "server": cluster.get("server"),
        "ca": cluster.get("certificate-authority-data"),
        "tls": cluster.get("tls-server-name"),
        "namespace": context.get("namespace"),
        "certificate": user.get("client-certificate-data"),
        "key": user.get("client-key-data"),
        "token": user.get("token"),
        "token file": last_part(user.get("tokenFile")),
        "basic": [user["username"], user["password"]] if "username" in user else None,
        "command": last_part(plugin.get("command")),
        "as": user.get("as"),
        "groups": user.get("as-groups"),
    }


def last_part(path: Json) -> str | None:
    """`config view` inlines some files and leaves the paths of others as they are written."""
    return Path(path).name if isinstance(path, str) else None


def packed(content: bytes | None) -> str | None:
    return base64.b64encode(content).decode() if content else None


def seen_by_us(target: KubeTarget) -> Fields:
    login, shown = target.login, target.certificate
    spare = login.fallback if isinstance(login, TokenFile) else None
    token = login.token if isinstance(login, BearerToken) else spare
    basic = [login.username, login.password.reveal()] if isinstance(login, BasicAuth) else None
    identity = target.identity
    return {
        "name": target.name,
        "server": target.server,
        "ca": packed(target.ca),
        "tls": target.tls_server_name or None,
        "namespace": None if target.namespace == "default" else target.namespace,
        "certificate": packed(shown.certificate) if shown else None,
        "key": packed(shown.key.reveal().encode()) if shown else None,
        "token": token.reveal() if token else None,
        "token file": last_part(str(login.path)) if isinstance(login, TokenFile) else None,
        "basic": list[Json](basic) if basic else None,
        "command": last_part(login.command) if isinstance(login, ExecPlugin) else None,
        "as": identity.user if identity else None,
        "groups": list[Json](identity.groups) if identity and identity.groups else None,
    }


names = some.sampled_from(["a", "b"])
clusters: some.SearchStrategy[Fields] = some.fixed_dictionaries(
    {"server": some.sampled_from(["https://x.example:6443", "https://y.example/path"])},
    optional={
        "certificate-authority": some.sampled_from(["ca.crt", "sub/ca.crt", "../ca.crt", ""]),
        "tls-server-name": some.sampled_from(["z.example", None]),
    },
)
plugin = some.fixed_dictionaries(
    {
        "apiVersion": some.just("client.authentication.k8s.io/v1"),
        "command": some.sampled_from(["tool", "./tool", "sub/../tool", "/bin/tool"]),
        "interactiveMode": some.just("Never"),
    }
)
pair: Fields = {"client-certificate": "ca.crt", "client-key": "../ca.crt"}
logins = some.one_of(
    some.just({}),
    some.just({"token": "t1"}),
    some.just({"token": "t2", "tokenFile": "ca.crt"}),
    some.just({"tokenFile": "../ca.crt"}),
    some.just({"username": "jane", "password": "p"}),
    some.just(pair),
    some.just({**pair, "token": "t3"}),
    some.fixed_dictionaries({"exec": plugin}),
)
users: some.SearchStrategy[Fields] = some.builds(
    lambda login, as_whom: {**login, **as_whom},
    logins,
    some.sampled_from([{}, {"as": "root"}, {"as": "root", "as-groups": ["g", "h"]}]),
)
contexts: some.SearchStrategy[Fields] = some.fixed_dictionaries(
    {"cluster": names, "user": names}, optional={"namespace": some.sampled_from(["shop", ""])}
)


def listed_as(kind: str, bodies: dict[str, Fields]) -> list[Json]:
    return [{"name": name, kind: body} for name, body in bodies.items()]


def stanzas(kind: str, bodies: some.SearchStrategy[Fields]) -> some.SearchStrategy[list[Json]]:
    return some.dictionaries(names, bodies, min_size=1).map(lambda made: listed_as(kind, made))


kubeconfigs = some.fixed_dictionaries(
    {},
    optional={
        "apiVersion": some.just("v1"),
        "current-context": some.sampled_from(["a", "b", ""]),
        "contexts": stanzas("context", contexts),
        "clusters": stanzas("cluster", clusters),
        "users": stanzas("user", users),
    },
)


def load_or_say(listed: str, context: str | None) -> KubeTarget | str:
    try:
        return load_target(context=context, environ={"KUBECONFIG": listed})
    except ConfigError as error:
        return error.code


def compare(bodies: tuple[Fields, Fields], context: str | None, *, quirk: str) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made).resolve()
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"content of {name}")
        paths = [folder / "one" / "config", folder / "two" / "config"]
        (folder / "two" / "sub").mkdir()
        (folder / "two" / "sub" / "ca.crt").write_text("deep")
        for path, body in zip(paths, bodies, strict=True):
            path.write_bytes(msgspec.json.encode(body))
        listed = os.pathsep.join([quirk, *map(str, paths), str(paths[0])])

        view = kubectl_view(listed, folder, context)
        or_say = load_or_say(listed, context)

    if isinstance(or_say, str):
        # A context that names missing entries: kubectl uses localhost, or an anonymous user.
        assert view is None or or_say == "config.reference"
    else:
        assert view is not None
        assert seen_by_us(or_say) == seen_by_kubectl(view)


@settings(max_examples=25, deadline=None)
@given(
    some.tuples(kubeconfigs, kubeconfigs),
    some.sampled_from([None, None, "a", "b"]),
    some.sampled_from(["", "missing"]),
)
def test_any_two_files_merge_as_kubectl_merges_them(
    bodies: tuple[Fields, Fields], context: str | None, quirk: str
) -> None:
    compare(bodies, context, quirk=quirk)


FULL: Fields = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "b", "namespace": "one"}}],
    "clusters": [
        {"name": "a", "cluster": {"server": "https://1.example", "certificate-authority": "ca.crt"}}
    ],
    "users": [{"name": "a", "user": {"token": "first", "as": "root", "as-groups": ["g"]}}],
}
OTHER: Fields = {
    "current-context": "b",
    "contexts": [
        {"name": "a", "context": {"cluster": "b", "user": "b", "namespace": "two"}},
        {"name": "b", "context": {"cluster": "a", "user": "a"}},
    ],
    "clusters": [{"name": "a", "cluster": {"server": "https://2.example", "tls-server-name": "x"}}],
    "users": [{"name": "b", "user": pair | {"tokenFile": "sub/ca.crt"}}],
}


@pytest.mark.parametrize("context", [None, "a", "b", "c"])
def test_two_files_that_need_each_other(context: str | None) -> None:
    compare((FULL, OTHER), context, quirk="")
