"""Tokens and kubeconfigs."""

from __future__ import annotations

from pathlib import Path

import yaml

from plane.identity.users import USERS, kubeconfig_text, make_tokens, token_file, write_private


def test_each_user_has_a_token_of_its_own() -> None:
    tokens = make_tokens()

    revealed = {token.reveal() for token in tokens.values()}
    assert len(revealed) == len(USERS)


def test_tokens_do_not_print() -> None:
    tokens = make_tokens()

    assert not any(token.reveal() in repr(tokens) for token in tokens.values())


def test_the_guest_is_in_no_group_and_other_users_are_admins() -> None:
    tokens = make_tokens()

    rows = [line.split(",") for line in token_file(tokens).splitlines()]

    groups = {row[1]: row[3:] for row in rows}
    assert groups.pop("guest") == []
    assert set(map(tuple, groups.values())) == {("system:masters",)}


def test_a_kubeconfig_has_cluster_user_and_credentials() -> None:
    text = kubeconfig_text(
        "eve",
        server="https://127.0.0.1:6443",
        ca=Path("/state/ca.crt"),
        credentials={"client-certificate": "/state/eve.crt", "client-key": "/state/eve.key"},
    )

    assert yaml.safe_load(text) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "plane",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority": "/state/ca.crt",
                },
            }
        ],
        "users": [
            {
                "name": "eve",
                "user": {"client-certificate": "/state/eve.crt", "client-key": "/state/eve.key"},
            }
        ],
        "contexts": [
            {
                "name": "plane",
                "context": {"cluster": "plane", "user": "eve", "namespace": "default"},
            }
        ],
        "current-context": "plane",
    }


def test_private_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = write_private(tmp_path / "kubeconfigs" / "admin.yaml", "secret")

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
