"""Every bad kubeconfig is one clear error: a code, a line, a way out, and never a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.kube.test_config import EXEC, SECRET, config, load, refused
from tidegate.model.k8s.objects import Json

B64 = "YXV0aG9yaXR5"
USERS: list[tuple[str, dict[str, Json]]] = [
    ("config.field", {"token": 12345}),
    ("config.field", {"as-groups": "admins", "as": "jane"}),
    ("config.field", {"as-groups": [1], "as": "jane"}),
    ("config.field", {"exec": "tool"}),
    ("config.field", {"exec": {**EXEC, "args": [True]}}),
    ("config.token", {"token": f"{SECRET}\n"}),
    ("config.file", {"tokenFile": "none"}),
    ("config.conflict", {"token": SECRET, "username": "jane"}),
    ("config.conflict", {"tokenFile": "config", "password": SECRET}),
    ("config.login", {"password": SECRET}),
    ("config.encoding", {"client-certificate-data": f"{SECRET}!", "client-key-data": B64}),
    ("config.conflict", {"client-certificate-data": B64, "client-certificate": "config"}),
    ("config.certificate", {"client-certificate-data": B64, "token": SECRET}),
    ("config.certificate", {"client-key-data": B64}),
    ("config.impersonation", {"as-groups": ["admins"]}),
    ("config.impersonation", {"as-uid": "7"}),
    ("config.impersonation", {"as-user-extra": {"a": ["b"]}}),
    ("config.impersonation", {"as": "jane\r\nX-Admin: yes"}),
    ("config.auth-provider", {"auth-provider": {"name": "gcp"}}),
    ("config.auth-provider", {"auth-provider": {"name": "oidc"}, "token": SECRET}),
    ("config.exec", {"exec": {**EXEC, "command": ""}}),
    ("config.exec", {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
    ("config.exec", {"exec": {**EXEC, "interactiveMode": None}}),
    ("config.exec", {"exec": {**EXEC, "interactiveMode": "Sometimes"}}),
    ("config.exec", {"exec": {**EXEC, "env": [{"name": "", "value": SECRET}]}}),
]
CLUSTERS: list[tuple[str, dict[str, Json]]] = [
    ("config.server", {"server": ""}),
    ("config.server", {"server": "https://"}),
    ("config.server", {"server": "ftp://a.example"}),
    ("config.server", {"server": " https://a.example"}),
    ("config.server", {"server": "https://a.example:port"}),
    ("config.server", {"server": "a.example/with/path"}),
    ("config.server", {"server": f"https://jane:{SECRET}@a.example"}),
    ("config.field", {"server": 6443}),
    ("config.field", {"insecure-skip-tls-verify": "true"}),
    ("config.file", {"certificate-authority": "none"}),
    ("config.encoding", {"certificate-authority-data": "not base64"}),
    ("config.conflict", {"certificate-authority-data": B64, "certificate-authority": "config"}),
    ("config.conflict", {"certificate-authority-data": B64, "insecure-skip-tls-verify": True}),
    ("config.proxy", {"proxy-url": "socks5://proxy.example"}),
    ("config.proxy", {"proxy-url": f"jane:{SECRET}@proxy.example:3128"}),
]
WHOLES: list[tuple[str, dict[str, Json] | str]] = [
    ("config.yaml", "contexts: [here\nusers: x"),
    ("config.yaml", "- a list\n"),
    ("config.kind", config(kind="Secret")),
    ("config.kind", config(apiVersion="v2")),
    ("config.context", config(current_context=None)),
    ("config.context", config(current_context="nowhere")),
    ("config.context", ""),
    ("config.field", config(current_context=["here"])),
    ("config.field", config(contexts="here")),
    ("config.field", config(contexts=["here"])),
    ("config.field", config(contexts=[{"name": "here", "context": "c"}])),
    ("config.reference", config(context={"cluster": "nowhere"})),
    ("config.reference", config(context={"cluster": None})),
    ("config.reference", config(context={"user": "nobody"})),
    ("config.duplicate", config(users=[{"name": "u"}, {"name": "u"}])),
]


@pytest.mark.parametrize(("code", "user"), USERS)
def test_a_wrong_user_is_reported(tmp_path: Path, code: str, user: dict[str, Json]) -> None:
    error = refused(tmp_path, config(user))

    assert error.code == code
    assert error.location is not None
    assert error.location.line > 0


@pytest.mark.parametrize(("code", "cluster"), CLUSTERS)
def test_a_wrong_cluster_is_reported(tmp_path: Path, code: str, cluster: dict[str, Json]) -> None:
    error = refused(tmp_path, config({"token": SECRET}, cluster))

    assert error.code == code
    assert error.location is not None
    assert error.location.line > 0
    assert error.hint


@pytest.mark.parametrize(("code", "body"), WHOLES)
def test_a_wrong_file_is_reported(tmp_path: Path, code: str, body: dict[str, Json] | str) -> None:
    error = refused(tmp_path, body)

    assert error.code == code
    assert error.location is not None
    assert error.location.name == str(tmp_path / "config")
    assert error.hint


def test_an_error_points_to_the_line_of_the_field(tmp_path: Path, wording: RecordedWording) -> None:
    text = (
        "current-context: here\n"
        "contexts:\n- name: here\n  context: {cluster: c, user: u}\n"
        "clusters:\n- name: c\n  cluster:\n    server: https://a.example\n"
        "    certificate-authority-data: '%%%'\n"
        "users:\n- name: u\n"
    )

    error = refused(tmp_path, text)

    assert error.code == "config.encoding"
    wording(str(error))


def test_a_mistake_in_another_context_is_no_hindrance(tmp_path: Path) -> None:
    clusters: list[Json] = [
        {"name": "broken", "cluster": {"server": 1}},
        {"name": "c", "cluster": {"server": "https://a.example"}},
    ]

    assert load(tmp_path, config(clusters=clusters)).server == "https://a.example"


def test_many_contexts_are_not_all_listed(tmp_path: Path) -> None:
    contexts: list[Json] = [{"name": f"c{number:02}"} for number in range(30)]

    error = refused(tmp_path, config(contexts=contexts), "nowhere")

    assert "`c09`" in error.hint
    assert "`c10`" not in error.hint
    assert " 20 " in error.hint
