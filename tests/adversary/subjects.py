"""What is rolled out: a plain unit, an app of apps, a HelmRelease.

All contents have the revision in them, so the audit log shows which revision was ready when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.adversary.history import Order
from tests.support.releases import ChartRepository
from tests.support.repositories import (
    Repository,
    application,
    deployment,
    job,
    setting,
)
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import Json, JsonObject

READY_AFTER: JsonObject = {"test.tidegate.dev/ready-after": "1s"}
"""Pods take a moment, so that a gate can be attacked while it waits."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A repository, and what must hold for its objects."""

    path: Path
    namespaces: tuple[str, ...]
    """Namespaces that must exist before the first rollout."""
    write: Callable[[int], None]
    """Write a revision of the repository."""
    order: Order
    hooks: tuple[str, ...]
    options: tuple[str, ...] = ()
    has_single_unit: bool = True
    namespace: str = ""
    """The namespace of the objects."""


def revised_workload(kind: str, name: str, revision: int) -> JsonObject:
    """Return a workload whose pods run the image of a revision, without other fields."""
    labels: JsonObject = {"app": name}
    pod: JsonObject = {"containers": [{"name": "main", "image": f"main:{revision}"}]}
    metadata: JsonObject = {"labels": labels, "annotations": READY_AFTER}
    spec: JsonObject = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata, "spec": pod},
        **({"serviceName": name} if kind == "StatefulSet" else {}),
    }
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def revised_job(name: str, revision: int, *, hook: str = "") -> JsonObject:
    """Return a Job of a revision."""
    body = job(name, hook=hook)
    containers: Json = [{"name": "main", "image": f"main:{revision}"}]
    template: Json = {
        "metadata": {"annotations": {"test.tidegate.dev/run-for": "1s"}},
        "spec": {"restartPolicy": "Never", "containers": containers},
    }
    return {**body, "spec": {"backoffLimit": 0, "template": template}}


def plain_unit(directory: Path, name: str) -> Subject:
    """Return a directory with waves and hooks."""
    path = directory / name

    def write(revision: int) -> None:
        to = str(revision)
        Repository(path).put(
            "all.yaml",
            revised_job("prepare", revision, hook="PreSync"),
            setting("early", to=to),
            {**deployment("web", wave=1, to=to)},
            setting("middle", wave=2, to=to),
            revised_job("after", revision, hook="PostSync"),
        )

    return Subject(
        path,
        (name,),
        write,
        (
            ("jobs/prepare", "configmaps/early"),
            ("configmaps/early", "deployments/web"),
            ("deployments/web", "configmaps/middle"),
            ("configmaps/middle", "jobs/after"),
        ),
        ("jobs/prepare", "jobs/after"),
        ("--namespace", name),
        namespace=name,
    )


def gated_workload(directory: Path, name: str, kind: str) -> Subject:
    """Return a directory with a workload, and a ConfigMap in the wave after it."""
    path = directory / name

    def write(revision: int) -> None:
        is_job = kind == "Job"
        workload = (
            revised_job("web", revision) if is_job else revised_workload(kind, "web", revision)
        )
        Repository(path).put("all.yaml", workload, setting("next", wave=1, to=str(revision)))

    order = ((f"{kind.lower()}s/web", "configmaps/next"),)
    return Subject(path, (name,), write, order, (), ("--namespace", name), namespace=name)


def app_of_apps(directory: Path, name: str) -> Subject:
    """Return Applications on three levels, with hooks and waves."""
    path = directory / name
    made = Repository(path, f"-{name}")

    def write(revision: int) -> None:
        to = str(revision)
        made.put("bootstrap/root.yaml", application("root", "clusters/main", into="argocd"))
        made.put("clusters/main/base.yaml", application("base", "base"))
        made.put("clusters/main/teams.yaml", application("teams", "teams", wave=1, into="argocd"))
        made.put("clusters/main/end.yaml", setting("end", "shop", wave=2, to=to))
        made.put(
            "base/all.yaml",
            revised_job("prepare", revision, hook="PreSync"),
            deployment("base", to=to),
            setting("base", wave=1, to=to),
        )
        made.put("teams/red.yaml", application("red", "red"))
        made.put("red/all.yaml", deployment("red", to=to), setting("red", wave=1, to=to))

    return Subject(
        path,
        (f"shop-{name}", f"argocd-{name}"),
        write,
        (
            ("jobs/prepare", "deployments/base"),
            ("deployments/base", "configmaps/base"),
            ("configmaps/base", "deployments/red"),
            ("deployments/red", "configmaps/red"),
            ("configmaps/red", "configmaps/end"),
        ),
        ("jobs/prepare",),
        has_single_unit=False,
        namespace=f"shop-{name}",
    )


def _chart_hook(name: str, events: str) -> str:
    body = revised_job(name, 0)
    metadata: JsonObject = {"name": name, "annotations": {"helm.sh/hook": events}}
    return to_yaml({**body, "metadata": metadata}).replace("main:0", "main:{{ .Values.to }}")


@dataclass(slots=True)
class _Chart:
    repository: ChartRepository
    templates: dict[str, str] = field(default_factory=dict)

    def write(self, revision: int) -> None:
        self.repository.release(values={"to": str(revision)}, maxHistory=0)
        for name, text in self.templates.items():
            self.repository.put(f"templates/{name}.yaml", text)


def helm_release(directory: Path, name: str) -> Subject:
    """Return a HelmRelease whose chart has hooks and a Deployment."""
    path = directory / name
    web = to_yaml(deployment("web", to="0")).replace("main:0", "main:{{ .Values.to }}")
    chart = _Chart(
        ChartRepository(path, name),
        {
            "before": _chart_hook("before", "pre-install,pre-upgrade"),
            "web": web,
            "behind": _chart_hook("behind", "post-install,post-upgrade"),
        },
    )
    return Subject(
        path,
        (name,),
        chart.write,
        (("jobs/before", "deployments/web"), ("deployments/web", "jobs/behind")),
        ("jobs/before", "jobs/behind"),
        namespace=name,
    )


SUBJECTS: Mapping[str, Callable[[Path, str], Subject]] = {
    "plain unit": plain_unit,
    "app of apps": app_of_apps,
    "HelmRelease": helm_release,
}
