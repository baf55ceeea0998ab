"""The fields of an Application, with their types: what is not among them is told.

The API server drops fields that it does not know, and refuses an object in which one has the wrong
type. Values are never told: they may be secret.
"""

from __future__ import annotations

from typing import TypeAlias

from tidegate.dialect.argo.telling import Telling
from tidegate.documents.decoding import suggest
from tidegate.documents.document import FieldPath, path_text
from tidegate.errors import foreign
from tidegate.model.objects import Json

Shape: TypeAlias = "type[object] | tuple[type[object], ...] | list[Shape] | dict[str, Shape]"
"""One type or several, a list of a shape, or keys; `!` behind a key: it must be there."""
Shapes: TypeAlias = dict[str, Shape]
ANY_KEY = "*"
TEXTS: Shapes = {ANY_KEY: str}

HELM: Shapes = {
    "apiVersions": [str],
    "fileParameters": [{"name": str, "path": str}],
    "ignoreMissingValueFiles": bool,
    "kubeVersion": str,
    "namespace": str,
    "parameters": [{"name": str, "value": str, "forceString": bool}],
    "passCredentials": bool,
    "releaseName": str,
    "skipCrds": bool,
    "skipSchemaValidation": bool,
    "skipTests": bool,
    "valueFiles": [str],
    "values": str,
    "valuesObject": dict,
    "version": str,
}
SELECTOR = ("group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector")
PATCH: Shapes = {
    "path": str,
    "patch": str,
    "target": dict.fromkeys(SELECTOR, str),
    "options": {ANY_KEY: bool},
}
KUSTOMIZE: Shapes = {
    "apiVersions": [str],
    "commonAnnotations": TEXTS,
    "commonAnnotationsEnvsubst": bool,
    "commonLabels": TEXTS,
    "components": [str],
    "forceCommonAnnotations": bool,
    "forceCommonLabels": bool,
    "ignoreMissingComponents": bool,
    "images": [str],
    "kubeVersion": str,
    "labelIncludeTemplates": bool,
    "labelWithoutSelector": bool,
    "namePrefix": str,
    "nameSuffix": str,
    "namespace": str,
    "patches": [PATCH],
    "replicas": [{"name!": str, "count!": (int, str)}],
    "version": str,
}
VARIABLES: Shape = [{"name!": str, "value!": str, "code": bool}]
DIRECTORY: Shapes = {
    "exclude": str,
    "include": str,
    "jsonnet": {"extVars": VARIABLES, "libs": [str], "tlas": VARIABLES},
    "recurse": bool,
}
PLUGIN: Shapes = {
    "env": [{"name!": str, "value!": str}],
    "name": str,
    "parameters": [{"name": str, "string": str, "array": [str], "map": TEXTS}],
}
SOURCE: Shapes = {
    "chart": str,
    "directory": DIRECTORY,
    "helm": HELM,
    "kustomize": KUSTOMIZE,
    "name": str,
    "path": str,
    "plugin": PLUGIN,
    "ref": str,
    "repoURL": str,
    "tagPrefix": str,
    "targetRevision": str,
}
SPEC: Shapes = {
    "destination!": {"name": str, "namespace": str, "server": str},
    "ignoreDifferences": [
        {
            "group": str,
            "jqPathExpressions": [str],
            "jsonPointers": [str],
            "kind!": str,
            "managedFieldsManagers": [str],
            "name": str,
            "namespace": str,
        }
    ],
    "info": [{"name!": str, "value!": str}],
    "project!": str,
    "revisionHistoryLimit": int,
    "source": dict,
    "sourceHydrator": {
        "drySource!": dict,
        "hydrateTo": {"targetBranch!": str},
        "syncSource!": {"path!": str, "targetBranch!": str},
    },
    "sources": [dict],
    "syncPolicy": {
        "automated": {"allowEmpty": bool, "enabled": bool, "prune": bool, "selfHeal": bool},
        "managedNamespaceMetadata": {"annotations": TEXTS, "labels": TEXTS},
        "retry": {
            "backoff": {"duration": str, "factor": int, "maxDuration": str},
            "limit": int,
            "refresh": bool,
        },
        "syncOptions": [str],
    },
}
"""What stands below `spec`. Sources are looked at one by one, as a `SOURCE`."""
WORDS = {
    bool: "`true` or `false`",
    dict: "a mapping",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "text",
}


def check_fields(value: Json, shape: Shape, path: FieldPath, telling: Telling) -> None:
    """Tell what is wrong below a path: fields that nobody reads, wrong types, what is missing."""
    if value is None:
        return
    match shape:
        case dict() if isinstance(value, dict):
            _check_keys(value, shape, path, telling)
        case list() if isinstance(value, list):
            for place, one in enumerate(value):
                check_fields(one, shape[0], (*path, place), telling)
        case dict() | list():
            _tell_type((type(shape),), value, path, telling)
        case _:
            kinds = shape if isinstance(shape, tuple) else (shape,)
            if type(value) not in kinds:
                _tell_type(kinds, value, path, telling)


def spelled(value: Json, shape: Shape) -> Json:
    """The value with its keys in their own case: JSON is read by Go, which takes any."""
    if isinstance(shape, list) and isinstance(value, list):
        return [spelled(one, shape[0]) for one in value]
    if not isinstance(shape, dict) or not isinstance(value, dict) or ANY_KEY in shape:
        return value
    known = {key.rstrip("!").lower(): (key.rstrip("!"), inner) for key, inner in shape.items()}
    made: dict[str, Json] = {}
    for key, one in value.items():
        name, inner = known.get(key.lower(), (key, object))
        made[name] = spelled(one, inner)
    return made


def _check_keys(value: dict[str, Json], shape: Shapes, path: FieldPath, telling: Telling) -> None:
    known = {key.rstrip("!"): inner for key, inner in shape.items()}
    for key, one in value.items():
        if key in known or ANY_KEY in known:
            check_fields(one, known.get(key, known.get(ANY_KEY, object)), (*path, key), telling)
        else:
            sentence = f"there is no field `{foreign(key)}` in `{path_text(path)}`"
            why = "the API server drops a field that it does not know, without a word"
            telling.warn("argo.field", (*path, key), sentence, why, suggest(key, tuple(known)))
    for key in shape:
        if key.endswith("!") and value.get(key[:-1]) is None:
            name = path_text((*path, key[:-1]))
            why = "the API server refuses an Application without it"
            telling.error("argo.missing", path, f"`{name}` is missing", why, f"write `{name}`")


def _tell_type(
    kinds: tuple[type[object], ...], value: Json, path: FieldPath, telling: Telling
) -> None:
    wanted = " or ".join(WORDS[kind] for kind in kinds if kind in WORDS)
    sentence = f"`{foreign(path_text(path))}` must be {wanted}, not {WORDS[type(value)]}"
    fix = "put it in quotes" if str in kinds and type(value) in {int, float, bool} else ""
    why = "the API server refuses an Application with a field of another type"
    telling.error("argo.type", path, sentence, why, fix)
