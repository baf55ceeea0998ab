"""Flux's kustomize-controller next to Tidegate, with a source whose artifacts a test serves.

    async with artifacts() as store, controller(plane) as peer:
        await store.offer(plane, root, commit)
        await peer.reconcile("one")

Its writes are read from the audit log, where it is a separate user.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tarfile
from asyncio.subprocess import STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from plane import ControlPlane
from plane.audit import read_audit
from plane.identity.users import MASTERS
from tests.conformance.peers.build import KUSTOMIZE_CONTROLLER
from tests.support.kubectl import kubectl
from tests.support.rollout_audit import WRITES
from tests.support.web_server import listening
from tidegate.model.k8s.json_fields import get_mappings
from tidegate.model.k8s.objects import Json

USER = "kustomize-controller"
HOME = "flux-system"
AS_FLUX = "--field-manager=flux-client-side-apply"
"""What kubectl itself has set, the controller takes away again."""
OWN = ("events", "leases")


@dataclass(slots=True)
class Artifacts:
    """Archives of a repository, as a source-controller would offer them."""

    plane: ControlPlane
    url: str = ""
    kept: dict[str, bytes] = field(default_factory=dict)

    def offer(self, root: Path, commit: str) -> str:
        """Make the repository the artifact of its source, and return the revision."""
        name, packed = f"{commit}.tar.gz", _pack(root)
        self.kept[name] = packed
        revision = f"main@sha1:{commit}"
        artifact: Json = {
            "digest": f"sha256:{hashlib.sha256(packed).hexdigest()}",
            "lastUpdateTime": "2026-11-01T00:00:00Z",
            "path": name,
            "revision": revision,
            "size": len(packed),
            "url": f"{self.url}/{name}",
        }
        patch = json.dumps({"status": {"artifact": artifact}})
        how = ("--subresource=status", "--type=merge", "-p", patch)
        admin = self.plane.kubeconfig("admin")
        kubectl(admin, "patch", "gitrepository", "platform", "-n", HOME, *how)
        return revision


@asynccontextmanager
async def artifacts(plane: ControlPlane) -> AsyncIterator[Artifacts]:
    store = Artifacts(plane)

    async def hand_out(request: web.Request) -> web.Response:
        return web.Response(body=store.kept[request.match_info["name"]])

    app = web.Application()
    app.router.add_get("/{name}", hand_out)
    async with listening(app) as url:
        store.url = str(url).rstrip("/")
        yield store


@dataclass(frozen=True, slots=True)
class Peer:
    """A running controller."""

    plane: ControlPlane
    process: Process
    log: Path

    async def reconcile(self, stamp: str, revision: str) -> None:
        """Ask for all Kustomizations, and wait until each was looked at and is ready."""
        admin = self.plane.kubeconfig("admin")
        note = f"reconcile.fluxcd.io/requestedAt={stamp}"
        kubectl(
            admin, "annotate", "kustomizations", "--all", "-n", HOME, "--overwrite", note, AS_FLUX
        )
        done = ("--for", f"jsonpath={{.status.lastHandledReconcileAt}}={stamp}")
        applied = ("--for", f"jsonpath={{.status.lastAppliedRevision}}={revision}")
        ready = ("--for", "condition=Ready")
        for what in (done, applied, ready):
            words = ("wait", "kustomizations", "--all", "-n", HOME, "--timeout=90s", *what)
            await asyncio.to_thread(kubectl, admin, *words)

    def writes(self) -> list[str]:
        """Verb and object of all that it wrote, but statuses, finalizers, events and leases."""
        return [
            f"{item.verb} {item.object_ref.resource}/{item.object_ref.name}"
            for item in read_audit(self.plane.audit_log)
            if item.user.username == USER
            and item.verb in WRITES
            and "dryRun=All" not in item.request_uri
            and f"fieldManager=gotk-{USER}" not in item.request_uri
            and item.object_ref.resource not in OWN
        ]


@asynccontextmanager
async def controller(plane: ControlPlane, folder: Path) -> AsyncIterator[Peer]:
    """The controller runs until the block ends, by its own user."""
    pair = plane.client_certificate(USER, groups=(MASTERS,))
    login = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    log = folder / "kustomize-controller.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            str(KUSTOMIZE_CONTROLLER.built()),
            *("--metrics-addr=0", "--health-addr=127.0.0.1:0", "--requeue-dependency=1s"),
            env={
                "HOME": str(folder),
                "KUBECONFIG": str(plane.kubeconfig(USER, credentials=login)),
                "PATH": os.environ["PATH"],
                "RUNTIME_NAMESPACE": HOME,
            },
            stdout=output,
            stderr=STDOUT,
        )
    try:
        yield Peer(plane, process, log)
    finally:
        process.kill()
        await process.wait()


def kustomizations(plane: ControlPlane) -> list[dict[str, Json]]:
    listed = kubectl(plane.kubeconfig("admin"), "get", "kustomizations", "-n", HOME, "-o", "json")
    return get_mappings(json.loads(listed), "items")


def _pack(root: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path in _files(root):
            archive.add(path, arcname=str(path.relative_to(root)), recursive=False)
    return packed.getvalue()


def _files(root: Path) -> Iterator[Path]:
    paths = sorted(path for path in root.rglob("*") if ".git" not in path.parts)
    return (path for path in paths if path.is_file())
