"""Which cluster is meant: files, merging, contexts, and errors."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec
import pytest

from tidegate.errors import ConfigError
from tidegate.kube.access.context import (
    Anonymous,
    BasicAuth,
    BearerToken,
    ExecPlugin,
    KubeTarget,
    TokenFile,
)
from tidegate.kube.config import load_target
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue

SECRET = "s3cr3t-s3cr3t"
EXEC: dict[str, Json] = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "tool",
    "interactiveMode": "Never",
}


def config(
    user: dict[str, Json] | None = None,
    cluster: dict[str, Json] | None = None,
    context: dict[str, Json] | None = None,
    **top: Json,
) -> dict[str, Json]:
    """A kubeconfig with one of each; `None` takes a field away."""
    whole: dict[str, Json] = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://a.example", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    return whole | {key.replace("_", "-"): value for key, value in top.items()}


def write(folder: Path, body: dict[str, Json] | str, name: str = "config") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body.encode() if isinstance(body, str) else msgspec.json.encode(body))
    return path


def load(folder: Path, body: dict[str, Json] | str, context: str | None = None) -> KubeTarget:
    return load_target(kubeconfig=str(write(folder, body)), context=context, environ={})


def refused(folder: Path, body: dict[str, Json] | str, context: str | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, body, context)
    assert SECRET not in str(caught.value)
    return caught.value


def test_a_context_leads_to_its_server_namespace_and_user(tmp_path: Path) -> None:
    target = load(tmp_path, config({"token": SECRET}, context={"namespace": "shop"}))

    assert (target.name, target.server, target.namespace) == ("here", "https://a.example", "shop")
    assert target.login == BearerToken(SecretValue(SECRET))
    assert SECRET not in repr(target)


def test_without_a_namespace_the_namespace_is_default(tmp_path: Path) -> None:
    assert load(tmp_path, config()).namespace == "default"


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    contexts: list[Json] = [
        {"name": "here", "context": {"cluster": "c"}},
        {"name": "there", "context": {"cluster": "c", "namespace": "far"}},
    ]

    assert load(tmp_path, config(contexts=contexts), "there").namespace == "far"


def test_the_first_file_has_all_of_a_stanza_and_names_the_current_context(tmp_path: Path) -> None:
    first = write(tmp_path, config({"token": "first"}, contexts=None, current_context=None), "1")
    second = write(tmp_path, config({"token": "second", "as": "jane"}), "2")
    third = write(tmp_path, config({"token": "third"}, current_context="other"), "3")
    listed = os.pathsep.join(["", str(tmp_path / "none"), str(first), str(second), str(third)])

    target = load_target(environ={"KUBECONFIG": listed})

    assert target.login == BearerToken(SecretValue("first"))
    assert (target.name, target.identity) == ("here", None)


def test_the_file_in_the_home_directory_is_the_default(tmp_path: Path) -> None:
    write(tmp_path, config(), ".kube/config")

    assert load_target(environ={"HOME": str(tmp_path)}).name == "here"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    write(tmp_path, "authority", "deep/pki/ca.crt")
    write(tmp_path, " rotated \n", "deep/token")
    cluster: dict[str, Json] = {"certificate-authority": "pki/ca.crt"}
    body = config({"tokenFile": "../deep/token"}, cluster)

    path = write(tmp_path, body, "deep/config")
    target = load_target(kubeconfig=str(path), environ={})

    assert target.ca == b"authority"
    assert isinstance(target.login, TokenFile)
    assert target.login.path.read_text() == " rotated \n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("tool", "tool"),
        ("./tool", "{folder}/tool"),
        ("bin/tool", "{folder}/bin/tool"),
        ("/t", "/t"),
    ],
)
def test_only_a_plugin_with_a_slash_is_relative_to_the_file(
    tmp_path: Path, command: str, expected: str
) -> None:
    login = load(tmp_path, config({"exec": {**EXEC, "command": command}})).login

    assert isinstance(login, ExecPlugin)
    assert login.command == expected.format(folder=tmp_path)


def test_inline_bytes_may_be_folded_over_lines(tmp_path: Path) -> None:
    packed = base64.b64encode(b"authority" * 20).decode()
    folded = packed[:70] + "\n" + packed[70:]

    assert load(tmp_path, config(cluster={"certificate-authority-data": folded})).ca == (
        b"authority" * 20
    )


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://a.example/", "https://a.example"),
        ("https://a.example:6443/k8s/clusters/x/", "https://a.example:6443/k8s/clusters/x"),
        ("https://[::1]:6443?x=1", "https://[::1]:6443"),
        ("a.example:8080", "http://a.example:8080"),
    ],
)
def test_a_server_is_made_plain(tmp_path: Path, server: str, expected: str) -> None:
    assert load(tmp_path, config(cluster={"server": server})).server == expected


def test_over_plain_http_no_credential_is_sent(tmp_path: Path) -> None:
    user: dict[str, Json] = {"token": SECRET, "as": "jane"}

    target = load(tmp_path, config(user, {"server": "http://a.example"}))

    assert target.login == Anonymous()
    assert target.identity is not None
    assert target.identity.user == "jane"


def test_a_user_with_a_name_and_a_password(tmp_path: Path) -> None:
    target = load(tmp_path, config({"username": "jane", "password": SECRET}))

    assert target.login == BasicAuth("jane", SecretValue(SECRET))


@pytest.mark.parametrize("other", [{"token": "t"}, {"username": "jane"}])
def test_a_plugin_is_not_run_where_there_is_something_simpler(
    tmp_path: Path, other: dict[str, Json]
) -> None:
    assert not isinstance(load(tmp_path, config({"exec": EXEC, **other})).login, ExecPlugin)


def test_the_plugins_of_the_beta_may_ask_where_they_can(tmp_path: Path) -> None:
    beta: dict[str, Json] = {**EXEC, "apiVersion": "client.authentication.k8s.io/v1beta1"}
    del beta["interactiveMode"]

    login = load(tmp_path, config({"exec": beta})).login

    assert isinstance(login, ExecPlugin)
    assert login.interactive_mode.value == "IfAvailable"


def test_unknown_fields_and_null_are_no_error(tmp_path: Path) -> None:
    body = config({"token": None, "x": 1}, {"y": 2}, {"namespace": None}, preferences={}, z=3)

    assert load(tmp_path, body).login == Anonymous()


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    assert load(tmp_path, config(context={"user": None})).login == Anonymous()


def test_only_the_first_document_of_a_file_is_read(tmp_path: Path) -> None:
    texts = [msgspec.json.encode(config({"token": token})).decode() for token in ("one", "two")]

    assert load(tmp_path, "---\n" + "\n---\n".join(texts)).login == BearerToken(SecretValue("one"))


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    for name, text in {"token": "t", "ca.crt": "authority", "namespace": "shop\n"}.items():
        write(tmp_path, text, f"account/{name}")
    return tmp_path / "account"


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_without_a_kubeconfig_uses_its_service_account(pod: Path) -> None:
    target = load_target(environ=IN_POD, service_account=pod)

    assert (target.name, target.server) == ("in-cluster", "https://10.0.0.1:443")
    assert (target.namespace, target.ca) == ("shop", b"authority")
    assert isinstance(target.login, TokenFile)


def test_a_pod_on_ipv6_and_one_with_a_given_namespace(pod: Path) -> None:
    environ = IN_POD | {"KUBERNETES_SERVICE_HOST": "fd00::1", "POD_NAMESPACE": "told"}

    target = load_target(environ=environ, service_account=pod)

    assert (target.server, target.namespace) == ("https://[fd00::1]:443", "told")


def test_a_kubeconfig_with_a_current_context_wins_over_the_pod(pod: Path, tmp_path: Path) -> None:
    path = write(tmp_path, config())

    target = load_target(environ=IN_POD | {"KUBECONFIG": str(path)}, service_account=pod)

    assert target.name == "here"


def test_a_flag_never_leads_to_the_pods_own_cluster(pod: Path, tmp_path: Path) -> None:
    path = write(tmp_path, config(current_context=None))

    with pytest.raises(ConfigError) as caught:
        load_target(kubeconfig=str(path), environ=IN_POD, service_account=pod)

    assert caught.value.code == "config.context"


def test_without_any_kubeconfig_the_searched_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_target(environ={"HOME": str(tmp_path)})

    assert caught.value.code == "config.none"
    assert f"`{tmp_path}/.kube/config`" in caught.value.problem


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_target(kubeconfig=str(tmp_path / "none"), environ={})

    assert caught.value.code == "config.file"


def test_an_unknown_context_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, config(), "nowhere")

    assert error.code == "config.context"
    assert "`nowhere`" in error.problem
    assert error.missing_context == "nowhere"
    assert error.hint.endswith(" `here`")
