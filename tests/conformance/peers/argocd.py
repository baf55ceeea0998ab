"""A real Argo CD on a control plane: application controller, repo-server and set controller.

    with argo_cd(plane, folder) as peer:
        peer.apply(application)
        peer.settle(limit=60)

It needs `redis-server` and `git` on PATH. What it writes is read from the audit log, where it is a
user of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from plane import ControlPlane
from plane.audit import AuditEntry, read_audit
from plane.client import wait_until
from plane.identity.users import MASTERS
from plane.parts import tied
from plane.ports import free_ports
from tests.conformance.peers.build import ARGO_CD
from tests.support.kubectl import kubectl
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject

USER = "argocd"
HOME = "argocd"
WRITES = frozenset({"create", "update", "patch", "delete"})
IGNORED = frozenset({"events", "leases", "selfsubjectaccessreviews", "selfsubjectreviews"})
QUIET_SECONDS = 4
COMPLETED = frozenset({"Succeeded", "Failed", "Error"})
KINDS = ("applications", "applicationsets", "appprojects")
PROJECT: JsonObject = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default", "namespace": HOME},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a controller."""

    seconds: float
    verb: str
    resource: str
    name: str
    namespace: str
    code: int


@dataclass(frozen=True, slots=True)
class ArgoCd:
    """Running controllers of Argo CD."""

    plane: ControlPlane
    admin: Path

    def apply(self, *bodies: JsonObject) -> None:
        for body in bodies:
            kubectl(self.admin, "apply", "-f", "-", text=json.dumps(body))

    def configure(self, data: JsonObject) -> None:
        """Replace the settings of `argocd-cm`."""
        patch = json.dumps([{"op": "add", "path": "/data", "value": data}])
        kubectl(self.admin, "patch", "cm", "argocd-cm", "-n", HOME, "--type=json", "-p", patch)
        time.sleep(1)

    def refresh(self) -> None:
        """Ask for a comparison of all Applications."""
        note = "argocd.argoproj.io/refresh=normal"
        kubectl(self.admin, "annotate", "applications", "--all", "-n", HOME, "--overwrite", note)

    def applications(self) -> list[JsonObject]:
        listed: JsonObject = json.loads(
            kubectl(self.admin, "get", "applications", "-n", HOME, "-o", "json")
        )
        return get_mappings(listed, "items")

    def settle(self, *, limit: float) -> list[str]:
        """Wait until no operation runs and nothing changes; return what operations waited for."""
        end, since, before = time.monotonic() + limit, time.monotonic(), ""
        messages: dict[str, None] = {}
        while time.monotonic() < end:
            applications = self.applications()
            states = [_state(body) for body in applications]
            for body in applications:
                message = get_text(body, "status", "operationState", "message")
                messages[f"{get_text(body, 'metadata', 'name')}: {message}"] = None
            if (now := json.dumps(states)) != before:
                before, since = now, time.monotonic()
            is_done = states and all(_is_settled(state) for state in states)
            if is_done and time.monotonic() - since > QUIET_SECONDS:
                break
            time.sleep(0.3)
        return [message for message in messages if "waiting for" in message]

    def sync(self, name: str) -> None:
        """Request a sync of an Application, as a user does."""
        requested: Json = {"initiatedBy": {"username": "peer"}, "sync": {"revision": "HEAD"}}
        patch = json.dumps({"operation": requested})
        kubectl(self.admin, "patch", "app", name, "-n", HOME, "--type=merge", "-p", patch)
        time.sleep(1)

    def writes(self, start: datetime) -> list[Write]:
        """What the controllers wrote since, without dry runs, statuses and their own records."""
        entries = (entry for entry in read_audit(self.plane.audit_log) if _is_write(entry, start))
        return [
            Write(
                (datetime.fromisoformat(entry.request_received_timestamp) - start).total_seconds(),
                entry.verb,
                entry.object_ref.resource,
                entry.object_ref.name,
                entry.object_ref.namespace,
                entry.response_status.code,
            )
            for entry in entries
        ]

    def clear(self, namespace: str) -> None:
        """Delete all Applications, without their objects, and the namespace of a case."""
        options = ("--all", "-n", HOME, "--wait=true", "--timeout=30s")
        kubectl(self.admin, "delete", "applicationsets", *options, "--cascade=orphan")
        patch = '{"metadata":{"finalizers":null},"operation":null}'
        for body in self.applications():
            name = get_text(body, "metadata", "name")
            kubectl(self.admin, "patch", "app", name, "-n", HOME, "--type=merge", "-p", patch)
        kubectl(self.admin, "delete", "applications", *options)
        kubectl(self.admin, "delete", "ns", namespace, "--ignore-not-found", "--wait=false")


def _state(body: JsonObject) -> tuple[str, ...]:
    operation = "running" if "operation" in body else ""
    fields = ("sync.status", "health.status", "operationState.phase", "operationState.retryCount")
    return (operation, *(str(get_text(body, "status", *name.split("."))) for name in fields))


def _is_settled(state: tuple[str, ...]) -> bool:
    operation, sync, health, phase, _ = state
    is_idle = not operation and (phase in COMPLETED or sync == "Synced")
    return is_idle and health != "Progressing"


def _is_write(entry: AuditEntry, start: datetime) -> bool:
    reference = entry.object_ref
    is_own = reference.api_group == "argoproj.io" and reference.resource != "applications"
    is_status = reference.resource == "applications" and (
        entry.user_agent.startswith("argocd-application-controller") or reference.subresource
    )
    return (
        entry.user.username == USER
        and entry.verb in WRITES
        and reference.resource not in IGNORED
        and not reference.subresource
        and not (is_own or is_status or (reference.namespace == HOME and not reference.api_group))
        and "dryRun=All" not in entry.request_uri
        and datetime.fromisoformat(entry.request_received_timestamp) >= start
    )


@contextmanager
def argo_cd(plane: ControlPlane, folder: Path) -> Iterator[ArgoCd]:
    """Install Argo CD and run its controllers until the block ends."""
    program = ARGO_CD.built()
    pair = plane.client_certificate(USER, groups=(MASTERS,))
    login = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    kubeconfig, admin = plane.kubeconfig(USER, credentials=login), plane.kubeconfig("admin")
    _install(admin)
    redis, server, metrics, *others = free_ports(9)
    programs = folder / "bin"
    programs.mkdir()
    (programs / "git-verify-wrapper.sh").write_text("#!/bin/sh\n")
    (programs / "git-verify-wrapper.sh").chmod(0o755)
    environment = {
        "HOME": str(folder),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    at_redis = ("--redis", f"127.0.0.1:{redis}")
    commands: dict[str, tuple[str, ...]] = {
        "repo-server": (
            *at_redis,
            *("--disable-tls", "--client-ca-path", "", "--address", "127.0.0.1"),
            *("--port", str(server), "--metrics-address", "127.0.0.1"),
            *("--metrics-port", str(metrics)),
        ),
        "application-controller": (
            *("--namespace", HOME, "--kubeconfig", str(kubeconfig), *at_redis),
            *("--repo-server", f"127.0.0.1:{server}", "--repo-server-plaintext"),
            *("--metrics-port", str(others[0])),
        ),
        "applicationset-controller": (
            *("--namespace", HOME, "--enable-progressive-syncs"),
            *("--argocd-repo-server", f"127.0.0.1:{server}", "--repo-server-plaintext"),
            *("--metrics-addr", f"127.0.0.1:{others[1]}"),
            *("--probe-addr", f"127.0.0.1:{others[2]}"),
            *("--webhook-addr", f"127.0.0.1:{others[3]}"),
        ),
    }
    redis_server = shutil.which("redis-server")
    assert redis_server, "redis-server is needed on PATH"
    arguments = ("--bind", "127.0.0.1", "--port", str(redis), "--save", "", "--appendonly", "no")
    with ExitStack() as running:
        running.enter_context(_running([redis_server, *arguments], folder, "redis", environment))
        for name, words in commands.items():
            variables = {**environment, "ARGOCD_BINARY_NAME": f"argocd-{name}"}
            running.enter_context(_running([str(program), *words], folder, name, variables))
        time.sleep(6)
        yield ArgoCd(plane, admin)


@contextmanager
def _running(
    command: list[str], folder: Path, name: str, environment: dict[str, str]
) -> Iterator[None]:
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, tied.__file__, str(os.getpid()), *command],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _serves_kinds(admin: Path) -> bool:
    served = kubectl(admin, "api-resources", "--api-group=argoproj.io", "-o", "name")
    return len(served.split()) == len(KINDS)


def _install(admin: Path) -> None:
    """Create the CRDs, the settings and the project that argocd-server would create."""
    manifests = ARGO_CD.data / "manifests"
    kubectl(admin, "create", "namespace", HOME)
    kubectl(admin, "apply", "--server-side", "-k", str(manifests / "crds"))
    assert wait_until(lambda: _serves_kinds(admin), seconds=30)
    settings = manifests / "base" / "config"
    for name in (
        "cm",
        "cmd-params-cm",
        "rbac-cm",
        "gpg-keys-cm",
        "ssh-known-hosts-cm",
        "tls-certs-cm",
    ):
        kubectl(admin, "apply", "-n", HOME, "-f", str(settings / f"argocd-{name}.yaml"))
    labels: Json = {"app.kubernetes.io/part-of": "argocd"}
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "argocd-secret", "namespace": HOME, "labels": labels},
        "stringData": {"server.secretkey": secrets.token_hex(16)},
    }
    for body in (secret, PROJECT):
        kubectl(admin, "apply", "-f", "-", text=json.dumps(body))
