"""Valid objects, and ways to corrupt them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from tidegate.model.k8s.objects import Json, JsonObject, Kind

Path = tuple[str | int, ...]

GROUP = "schemas.example.org"
EVERYTHING = Kind(GROUP, "v1", "Everything")
_TEXT: JsonObject = {"type": "string"}


def an_object(kind: Kind, name: str = "x", **parts: Json) -> JsonObject:
    head: JsonObject = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name},
    }
    return {**head, **parts}


def a_definition(*versions: JsonObject, plural: str = "samples", **spec: Json) -> JsonObject:
    names: JsonObject = {"kind": "Everything", "plural": plural}
    parts: JsonObject = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": names,
        "versions": [*versions],
    }
    kind = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    return an_object(kind, f"{plural}.{GROUP}", spec={**parts, **spec})


def a_version(schema: JsonObject | None, name: str = "v1", *, storage: bool = True) -> JsonObject:
    result: JsonObject = {} if schema is None else {"schema": {"openAPIV3Schema": schema}}
    return {"name": name, "served": True, "storage": storage, **result}


def a_schema(**fields: Json) -> JsonObject:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {**fields}}}}


def a_keyed_list(*keys: str, **fields: Json) -> JsonObject:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [*keys],
        "items": {"type": "object", "required": ["name"], "properties": {**fields}},
    }


_SPEC: JsonObject = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "atomic": {"type": "array", "items": {"type": "object", "properties": {"a": _TEXT}}},
        "atomicMap": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "additionalProperties": _TEXT,
        },
        "color": _TEXT,
        "date": {"type": "string", "format": "date-time"},
        "deep": {
            "type": "object",
            "default": {"a": "d"},
            "properties": {"a": _TEXT, "b": {"type": "string", "default": "bb"}},
        },
        "either": {"x-kubernetes-int-or-string": True},
        "eitherSpelledOut": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        },
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "empty": {"type": "object"},
        "enum": {"type": "string", "enum": ["a", "b"]},
        "flag": {"type": "boolean"},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": _TEXT}}},
        },
        "int32": {"type": "integer", "format": "int32"},
        "int64": {"type": "integer", "format": "int64"},
        "intEnum": {"type": "integer", "enum": [1, 2]},
        "labels": {
            "type": "object",
            "additionalProperties": _TEXT,
            "minProperties": 1,
            "maxProperties": 2,
        },
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": _TEXT},
        "loose": {"type": "object", "additionalProperties": True},
        "map": a_keyed_list("name", name=_TEXT, port={"type": "integer", "default": 80}),
        "mapByTwo": a_keyed_list(
            "name", "protocol", name=_TEXT, protocol={"type": "string", "default": "TCP"}, x=_TEXT
        ),
        "nullable": {"type": "string", "nullable": True},
        "nullableDefault": {"type": "string", "nullable": True, "default": "x"},
        "number": {"type": "number", "minimum": 0.5, "maximum": 2000000},
        "pattern": {"type": "string", "pattern": "^a+$"},
        "range": {"type": "integer", "minimum": 2, "maximum": 9, "exclusiveMaximum": True},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "size": {"type": "integer", "default": 1},
        "text": {"type": "string", "minLength": 2, "maxLength": 3},
    },
}

DEFINITION = a_definition(a_version({"type": "object", "properties": {"spec": _SPEC}}))

EVERYTHING_BODY = an_object(
    EVERYTHING,
    spec={
        "any": [1, {"a": 1}],
        "atomic": [{"a": "b"}, {}],
        "atomicMap": {"a": "b"},
        "color": "red",
        "date": "2026-01-01T00:00:00Z",
        "deep": {"a": "x"},
        "either": 5,
        "eitherSpelledOut": "80%",
        "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "more": 1},
        "empty": {},
        "enum": "a",
        "flag": True,
        "free": {"known": {"a": "b"}, "more": {"b": 1}},
        "int32": 7,
        "int64": 7,
        "intEnum": 1,
        "labels": {"a": "b"},
        "list": ["a"],
        "loose": {"a": 1},
        "map": [{"name": "a"}, {"name": "b", "port": 7}],
        "mapByTwo": [{"name": "a"}, {"name": "a", "protocol": "UDP", "x": "y"}],
        "nullable": None,
        "number": 1.5,
        "pattern": "aa",
        "range": 3,
        "set": ["a", "b"],
        "size": 2,
        "text": "abc",
    },
)

_LABELS: JsonObject = {"app": "web"}
_POD: JsonObject = {
    "restartPolicy": "Always",
    "initContainers": [{"name": "init", "image": "i:1", "command": ["a", "b"]}],
    "containers": [
        {
            "name": "app",
            "image": "i:1",
            "imagePullPolicy": "Always",
            "args": ["x"],
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
            "resources": {"requests": {"cpu": "100m", "memory": 128}, "limits": {"cpu": "1"}},
            "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "securityContext": {"runAsUser": 7, "readOnlyRootFilesystem": True},
        }
    ],
    "nodeSelector": {"a": "b"},
    "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}}],
}
TEMPLATE: JsonObject = {"metadata": {"labels": _LABELS}, "spec": _POD}
SELECTOR: JsonObject = {"matchLabels": _LABELS}

CONFIG_MAP = Kind("", "v1", "ConfigMap")
SECRET = Kind("", "v1", "Secret")
SERVICE = Kind("", "v1", "Service")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
POD = Kind("", "v1", "Pod")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
DAEMON_SET = Kind("apps", "v1", "DaemonSet")
JOB = Kind("batch", "v1", "Job")
CRON_JOB = Kind("batch", "v1", "CronJob")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding")

BUILT_IN_BODIES: tuple[JsonObject, ...] = (
    an_object(CONFIG_MAP, data={"a": "b", "c": "d"}, binaryData={"e": "AAAA"}, immutable=False),
    an_object(
        SERVICE,
        spec={
            "type": "ClusterIP",
            "selector": _LABELS,
            "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 81}],
            "sessionAffinity": "None",
        },
    ),
    an_object(
        DEPLOYMENT,
        spec={
            "replicas": 2,
            "paused": False,
            "selector": SELECTOR,
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": TEMPLATE,
        },
    ),
    an_object(
        STATEFUL_SET,
        spec={
            "serviceName": "s",
            "selector": SELECTOR,
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "d"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
    ),
    an_object(
        JOB,
        spec={
            "backoffLimit": 2,
            "completions": 1,
            "template": {"spec": {**_POD, "restartPolicy": "Never"}},
        },
    ),
)


class BodyMutation(NamedTuple):
    """One thing done to a body: at the place of this number, counted round."""

    mutation: str
    place: int
    value: Json


DEEDS = ("replace", "drop", "add", "repeat")
SCALARS: list[Json] = [None, True, 0, -1, 5, 70000, 3000000000, 1.5, "", "x", "A_b", "2026"]
LISTS: list[Json] = [[], ["x"], [None], [{"zzz": 1}], [{"name": "a"}]]
MAPS: list[Json] = [{}, {"zzz": 1}, {"name": "a"}]
VALUES = (*SCALARS, *LISTS, *MAPS)
SPOILINGS = st.lists(
    st.builds(BodyMutation, st.sampled_from(DEEDS), st.integers(0, 9999), st.sampled_from(VALUES)),
    min_size=1,
    max_size=3,
)


def spoiled(body: JsonObject, spoilings: list[BodyMutation]) -> JsonObject:
    """The body with these done to its spec or its data; the body itself stays as it is."""
    parts: Json = {name: part for name, part in body.items() if name not in _head()}
    for spoiling in spoilings:
        paths = [path for path in _paths(parts) if path and not _is_inner_head(path)]
        if paths:
            parts = _done(parts, paths[spoiling.place % len(paths)], spoiling)
    assert isinstance(parts, dict)
    return {**{name: body[name] for name in _head()}, **parts}


def _is_inner_head(path: Path) -> bool:
    """Whether this is the head of an embedded object, which is read in ways of its own."""
    return path[1:2] == ("embedded",) and path[2:3] in {(name,) for name in _head()}


def _head() -> tuple[str, ...]:
    return ("apiVersion", "kind", "metadata")


def _paths(value: Json, start: Path = ()) -> Iterator[Path]:
    yield start
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _paths(part, (*start, name))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _paths(item, (*start, place))


def _done(value: Json, path: Path, spoiling: BodyMutation) -> Json:
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str):
        parts = dict(value)
        if rest:
            parts[step] = _done(value[step], rest, spoiling)
        elif spoiling.mutation == "drop":
            del parts[step]
        else:
            parts["zzz" if spoiling.mutation == "add" else step] = spoiling.value
        return parts
    assert isinstance(value, list)
    assert isinstance(step, int)
    items = list(value)
    if rest:
        items[step] = _done(value[step], rest, spoiling)
    elif spoiling.mutation == "drop":
        del items[step]
    elif spoiling.mutation == "repeat":
        items.append(items[step])
    else:
        items[step] = spoiling.value
    return items
