"""Users of the control plane, their tokens, and their kubeconfigs.

Each program is a separate user, so that the audit log shows who wrote what.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tidegate.model.k8s.secret import SecretValue

MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """Someone the API server knows by a token."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return self.name.removeprefix("system:")


ADMIN = User("admin", (MASTERS,))
TIDEGATE = User("tidegate", (MASTERS,))
CONTROLLER_MANAGER = User("system:kube-controller-manager", (MASTERS,))
SCHEDULER = User("system:kube-scheduler", (MASTERS,))
KWOK = User("kwok", (MASTERS,))
# In no group but the one every known user is in: may look at what the server can do, and no more.
GUEST = User("guest")
USERS = (ADMIN, TIDEGATE, CONTROLLER_MANAGER, SCHEDULER, KWOK, GUEST)


def make_tokens() -> dict[str, SecretValue]:
    """A new token for every user, by the user's short name."""
    return {user.file_name: SecretValue(secrets.token_hex(16)) for user in USERS}


def token_file(tokens: Mapping[str, SecretValue]) -> str:
    """The file the API server reads: token, name, uid, groups."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for user in USERS:
        token = tokens[user.file_name].reveal()
        # An empty column would be a group without a name.
        groups = [",".join(user.groups)] if user.groups else []
        writer.writerow([token, user.name, user.name, *groups])
    return text.getvalue()


def kubeconfig_text(
    user: str, *, server: str, ca: Path, credentials: Mapping[str, str], namespace: str = "default"
) -> str:
    """A kubeconfig with one context.

    `credentials` are the fields of its user: a `token`, or `client-certificate` and `client-key`.
    """
    cluster = {"server": server, "certificate-authority": str(ca)}
    context = {"cluster": "plane", "user": user, "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "plane", "cluster": cluster}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": "plane", "context": context}],
        "current-context": "plane",
    }
    return yaml.safe_dump(config, sort_keys=False)


def write_private(path: Path, text: str) -> Path:
    """Write what only its owner may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    return path
