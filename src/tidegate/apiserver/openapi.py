"""A minimal OpenAPI document: the served kinds, and that the server validates fields.

kubectl checks whether the PATCH of a kind supports `fieldValidation`, and then leaves validation to
the server. Fields are not described: `kubectl explain` needs a real server.
"""

from __future__ import annotations

from tidegate.apiserver.discovery import ServedKinds
from tidegate.model.k8s.objects import Json, JsonObject, ServedKind

PATCH_PARAMETERS: Json = [
    {"name": name, "in": "query", "schema": {"type": "string"}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def build_index(served_kinds: ServedKinds) -> JsonObject:
    """Return the paths of the documents of all group versions."""
    names = [
        _group_version_path(group, version)
        for group, versions in served_kinds.groups().items()
        for version in versions
    ]
    return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in names}}


def build_document(served_kinds: ServedKinds, group_path: str) -> JsonObject | None:
    """Return the document of one group version, such as `apis/apps/v1`.

    Returns None if it is not served.
    """
    for group, versions in served_kinds.groups().items():
        for version, kinds in versions.items():
            if group_path == _group_version_path(group, version):
                return {
                    "openapi": "3.0.0",
                    "info": {"title": "Kubernetes", "version": version},
                    "paths": {
                        f"/{group_path}{_object_path(served)}": _operations(served)
                        for served in kinds
                    },
                    "components": {
                        "schemas": {_schema_name(served): _schema(served) for served in kinds}
                    },
                }
    return None


def _group_version_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _object_path(served: ServedKind) -> str:
    return f"{'/namespaces/{namespace}' if served.namespaced else ''}/{served.plural}/{{name}}"


def _group_version_kind(served: ServedKind) -> JsonObject:
    return {"group": served.kind.group, "version": served.kind.version, "kind": served.kind.name}


def _operations(served: ServedKind) -> Json:
    patch: JsonObject = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _group_version_kind(served),
    }
    return {"patch": {**patch, "parameters": PATCH_PARAMETERS, "responses": {}}}


def _schema_name(served: ServedKind) -> str:
    return ".".join(
        part for part in (served.kind.group, served.kind.version, served.kind.name) if part
    )


def _schema(served: ServedKind) -> Json:
    return {"type": "object", "x-kubernetes-group-version-kind": [_group_version_kind(served)]}
