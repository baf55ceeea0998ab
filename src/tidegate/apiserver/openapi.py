"""OpenAPI as far as clients ask for it: which kinds there are, and that fields are validated here.

kubectl looks whether a kind's PATCH takes `fieldValidation`, and then leaves checking to the
server. What fields mean is not told: `kubectl explain` wants a real server.
"""

from __future__ import annotations

from tidegate.apiserver.catalogue import Body, Serving
from tidegate.model.objects import Json, Served

VALIDATED: Json = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def index(serving: Serving) -> Body:
    """Where the document of each version of a group is."""
    names = [_place(group, one) for group, found in serving.groups().items() for one in found]
    return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}}


def document(serving: Serving, place: str) -> Body | None:
    """The document of one version of a group, such as `apis/apps/v1`."""
    for group, versions in serving.groups().items():
        for version, kinds in versions.items():
            if place == _place(group, version):
                return {
                    "openapi": "3.0.0",
                    "info": {"title": "Kubernetes", "version": version},
                    "paths": {f"/{place}{_path(one)}": _operations(one) for one in kinds},
                    "components": {"schemas": {_name(one): _schema(one) for one in kinds}},
                }
    return None


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _path(one: Served) -> str:
    return f"{'/namespaces/{namespace}' if one.namespaced else ''}/{one.plural}/{{name}}"


def _marks(one: Served) -> Body:
    return {"group": one.kind.group, "version": one.kind.version, "kind": one.kind.name}


def _operations(one: Served) -> Json:
    patch: Body = {"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": _marks(one)}
    return {"patch": {**patch, "parameters": VALIDATED, "responses": {}}}


def _name(one: Served) -> str:
    return ".".join(part for part in (one.kind.group, one.kind.version, one.kind.name) if part)


def _schema(one: Served) -> Json:
    return {"type": "object", "x-kubernetes-group-version-kind": [_marks(one)]}
