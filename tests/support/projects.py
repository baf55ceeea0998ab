"""Repositories with AppProjects, and what came of a command on them."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

from tests.support.repositories import Repository, application, named, namespace, setting
from tidegate.model.k8s.objects import Json, JsonObject

Ran = CompletedProcess[str]
EVERYTHING: dict[str, Json] = {
    "sourceRepos": ["*"],
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
}
NIGHT: dict[str, Json] = {
    "kind": "deny",
    "schedule": "0 22 * * *",
    "duration": "8h",
    "timeZone": "Europe/Berlin",
    "applications": ["web"],
}


def project(name: str = "team", /, **spec: Json) -> JsonObject:
    kind: JsonObject = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    return {**kind, "metadata": named(name, "argocd"), "spec": {**EVERYTHING, **spec}}


def of_project(name: str, path: str, project_name: str = "team", **more: Json) -> JsonObject:
    made = application(name, path)
    spec = made["spec"]
    assert isinstance(spec, dict)
    return {**made, "spec": {**spec, "project": project_name, **more}}


def two_units(root: Path, suffix: str = "", /, **spec: Json) -> Repository:
    """`web` in a project of its own, and `free` in the default project."""
    made = Repository(root, suffix)
    made.put("bootstrap/root.yaml", application("root", "apps", into="argocd"))
    made.put("projects/team.yaml", project("team", **spec))
    made.put("apps/ground.yaml", namespace("shop", wave=-1))
    made.put("apps/web.yaml", of_project("web", "web"))
    made.put("apps/free.yaml", application("free", "free"))
    made.put("web/all.yaml", setting("web"), setting("web-late", wave=1))
    made.put("free/all.yaml", setting("free"))
    return made


def written(ran: Ran) -> set[str]:
    """The names of the written objects, from the events of a command."""
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return {event["name"] for event in events if event["event"] == "object.written"}
