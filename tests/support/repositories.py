"""Repositories of Applications and Kustomizations that a test writes down, and changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import Json, JsonObject

URL = "https://git.example.com/shop/platform.git"
WAVE, HOOK = "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/hook"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
AUTOMATED: Json = {"automated": {"prune": True}}
NAMESPACES = ("shop", "argocd", "flux-system")
ORDER = (
    ("namespaces/shop", "configmaps/start"),
    ("configmaps/start", "jobs/base-prepare"),
    ("jobs/base-prepare", "deployments/base-web"),
    ("deployments/base-web", "configmaps/base-late"),
    ("configmaps/base-late", "jobs/base-after"),
    ("jobs/base-after", "deployments/red-web"),
    ("deployments/red-web", "configmaps/red-late"),
    ("configmaps/red-late", "configmaps/blue-early"),
    ("configmaps/blue-early", "deployments/blue-web"),
    ("deployments/blue-web", "configmaps/end"),
)
"""Three levels: each was written before the next."""
OBJECTS = {name for pair in ORDER for name in pair}
OF_CHILDREN: JsonObject = {
    "resource.customizations.health.argoproj.io_Application": (
        "hs = {status = 'Progressing'}\n"
        "if obj.status ~= nil and obj.status.health ~= nil then\n"
        "  hs.status = obj.status.health.status\n"
        "end\n"
        "return hs\n"
    )
}
"""What people write so that a parent waits for its children."""


def named(name: str, namespace: str = "", *, wave: int = 0, hook: str = "") -> JsonObject:
    notes: JsonObject = {**({WAVE: str(wave)} if wave else {}), **({HOOK: hook} if hook else {})}
    place: JsonObject = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, **({"annotations": notes} if notes else {})}


def namespace(name: str, *, wave: int = 0) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": named(name, wave=wave)}


def setting(
    name: str, place: str = "", *, wave: int = 0, hook: str = "", to: str = "1"
) -> JsonObject:
    metadata = named(name, place, wave=wave, hook=hook)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"to": to}}


def argo_settings(data: JsonObject) -> JsonObject:
    """An `argocd-cm` with these keys."""
    kind: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**kind, "metadata": named("argocd-cm", "argocd"), "data": {**data}}


def job(name: str, *, hook: str = "", wave: int = 0) -> JsonObject:
    containers: Json = [{"name": "main", "image": "busybox"}]
    template: Json = {"spec": {"restartPolicy": "Never", "containers": containers}}
    spec: Json = {"backoffLimit": 0, "template": template}
    metadata = named(name, wave=wave, hook=hook)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def deployment(name: str, *, wave: int = 0, outcome: str = "", to: str = "1") -> JsonObject:
    """`outcome`: what becomes of its pods where a control plane of ours runs them."""
    notes: Json = {"test.tidegate.dev/outcome": outcome} if outcome else {}
    labels: Json = {"app": name}
    pod: Json = {"containers": [{"name": "main", "image": f"main:{to}"}]}
    template: Json = {"metadata": {"labels": labels, "annotations": notes}, "spec": pod}
    spec: Json = {"selector": {"matchLabels": labels}, "template": template}
    metadata = named(name, wave=wave)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def application(
    name: str,
    path: str,
    *,
    wave: int = 0,
    into: str = "shop",
    cluster: str = "in-cluster",
    sync: Json = AUTOMATED,
    finalizer: bool = False,
) -> JsonObject:
    metadata = named(name, "argocd", wave=wave)
    if finalizer:
        metadata["finalizers"] = [FINALIZER]
    spec: JsonObject = {
        "project": "default",
        "source": {"repoURL": URL, "path": path, "targetRevision": "HEAD"},
        "destination": {"name": cluster, "namespace": into},
        "syncPolicy": sync,
    }
    kind: JsonObject = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return {**kind, "metadata": metadata, "spec": spec}


def kustomization(
    name: str, path: str, *, after: tuple[str, ...] = (), into: str = "shop", **more: Json
) -> JsonObject:
    spec: JsonObject = {
        "interval": "10m",
        "retryInterval": "1m",
        "prune": True,
        "wait": True,
        "path": path,
        "sourceRef": {"kind": "GitRepository", "name": "platform"},
        "dependsOn": [{"name": item} for item in after],
        **({"targetNamespace": into} if into else {}),
        **more,
    }
    kind: JsonObject = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
    return {**kind, "metadata": named(name, "flux-system"), "spec": spec}


def git_repository() -> JsonObject:
    spec: Json = {"interval": "10m", "url": URL, "ref": {"branch": "main"}}
    kind: JsonObject = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository"}
    return {**kind, "metadata": named("platform", "flux-system"), "spec": spec}


@dataclass(frozen=True, slots=True)
class Repository:
    """A directory of files, each with some objects. `suffix` makes its namespaces unique."""

    root: Path
    suffix: str = ""

    def put(self, path: str, *bodies: JsonObject) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = b"\n".join(map(msgspec.json.encode, bodies)).decode()
        for name in NAMESPACES:
            text = text.replace(f'"{name}"', f'"{name}{self.suffix}"')
        written = map(to_yaml, map(msgspec.json.decode, text.splitlines()))
        file.write_text("---\n".join(written))

    def drop(self, path: str) -> None:
        (self.root / path).unlink()


def three_levels(root: Path, *, suffix: str = "", finalizer: bool = False) -> Repository:
    """A root, what all need, and teams with a unit each; hooks and waves on every level."""
    made = Repository(root, suffix)
    root_unit = application("root", "clusters/main", into="argocd", finalizer=finalizer)
    teams = application("teams", "teams", wave=1, into="argocd", finalizer=finalizer)
    made.put("bootstrap/root.yaml", root_unit)
    made.put(
        "clusters/main/ground.yaml", namespace("shop", wave=-2), setting("start", "shop", wave=-1)
    )
    made.put("clusters/main/base.yaml", application("base", "base", finalizer=finalizer))
    made.put("clusters/main/teams.yaml", teams)
    made.put("clusters/main/end.yaml", setting("end", "shop", wave=2))
    made.put(
        "base/all.yaml",
        job("base-prepare", hook="PreSync"),
        deployment("base-web"),
        setting("base-late", wave=1),
        job("base-after", hook="PostSync"),
    )
    made.put("teams/red.yaml", application("red", "red", finalizer=finalizer))
    made.put("teams/blue.yaml", application("blue", "blue", wave=1, finalizer=finalizer))
    made.put("red/all.yaml", deployment("red-web"), setting("red-late", wave=1))
    made.put("blue/all.yaml", setting("blue-early"), deployment("blue-web", wave=1))
    return made
