"""The part of a built-in object that only a server can validate.

The rules here find most problems, not all. So an object is reduced: values that are certainly valid
(a plain name, a free text) are removed, and the rest is left to a server. Usually nothing is left
of a ConfigMap or Secret. Objects of a kind with the same rest get the same answer from a server,
apart from admission webhooks and policies.

A test compares these rules with a real server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.validation.cross_fields import POD_SPEC_FIELDS
from tidegate.schema.validation.requirements import MAX_DATA_BYTES

Reduce = Callable[[Json], Json]
"""A function that returns the part of a value that only a server can validate."""
VALID = "\0"
"""Replaces a valid value; no document can contain it."""
MAX_NAME_LENGTH = 50
"""A name of this length is valid for every kind; some controllers append to it."""
MAX_ANNOTATION_BYTES = 200 * 1024
"""A safe size of annotations; the limit of a server is 256 KiB.

Like `TotalAnnotationSizeLimitB` in `pkg/api/validation/objectmeta.go` of k8s.io/apimachinery
0.36.4.
"""
MAX_REPLICAS = 10_000
_is_plain = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch
_is_host = re.compile(
    r"[a-z]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z]([-a-z0-9]{0,60}[a-z0-9])?)+"
).fullmatch
_is_label = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?").fullmatch
_is_key = re.compile(
    r"([a-z]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z]([-a-z0-9]{0,60}[a-z0-9])?){0,2}/)?"
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
).fullmatch
_is_data_key = re.compile("[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}").fullmatch
_is_image = re.compile(r"[a-zA-Z0-9][-\w.:/@]*", re.ASCII).fullmatch
_KUBERNETES_DOMAINS = ("kubernetes.io", "k8s.io")
"""A server may interpret annotations of these domains."""


class _ReductionRules(msgspec.Struct):
    """Rules for a value and for the fields in it."""

    reduce: Reduce | None = None
    """How to reduce the value."""
    fields: dict[str, _ReductionRules] = msgspec.field(default_factory=dict)
    """The rules of the fields, by name."""

    def enter(self, path: str, reduce: Reduce) -> None:
        """Add a rule for a path, in which `[]` matches the items of a list."""
        rules = self
        for name in path.replace("[]", ".[]").split("."):
            rules = rules.fields.setdefault(name, _ReductionRules())
        rules.reduce = reduce


NO_RULES = _ReductionRules()


def server_checked_part(kind: Kind, body: JsonObject) -> JsonObject:
    """Return the part of a built-in object that only a server can validate. Returns {} if none."""
    rules = RULES.get((kind.group, kind.name), DEFAULT_RULES)
    if body.get("type") in REGISTRY_SECRET_TYPES:
        rules = DEFAULT_RULES
    complete = {"metadata": {}, **body}
    rest = {
        name: _reduce(name, value, rules)
        for name, value in complete.items()
        if name not in _IGNORED_FIELDS
    }
    return {} if all(value == VALID for value in rest.values()) else rest


REGISTRY_SECRET_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
"""Secret types whose content servers parse."""
_IGNORED_FIELDS = frozenset({"apiVersion", "kind", "status"})
_SERVER_FIELDS = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"}
)
"""Metadata fields that the server writes."""


def server_checked_digest(kind: Kind, body: JsonObject, live: JsonObject | None) -> bytes:
    """Return a digest of the part that only a server can validate, given the live object.

    The answer to a change depends on both. Returns b"" if there is no such part, and for custom
    kinds, which their CRD validates.
    """
    if find_shape(kind) is None:
        return b""
    parts: list[Json] = [server_checked_part(kind, body)]
    if live is not None and (parts[0] or not _fits_with_live_data(body, live)):
        metadata = get_mapping(live, "metadata")
        user_metadata: JsonObject = {
            name: value for name, value in metadata.items() if name not in _SERVER_FIELDS
        }
        parts.append(server_checked_part(kind, {**live, "metadata": user_metadata}))
    if not any(parts):
        return b""
    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).digest()


def _fits_with_live_data(body: JsonObject, live: JsonObject) -> bool:
    """Return whether the data still fits together with the live data."""
    parts = (get_mapping(obj, name) for obj in (live, body) for name in ("data", "stringData"))
    return _fits({key: text for part in parts for key, text in part.items()}, MAX_DATA_BYTES)


def _reduce(name: str, value: Json, parent: _ReductionRules) -> Json:
    rules = parent.fields.get(name, NO_RULES)
    if rules.reduce is not None:
        value = rules.reduce(value)
    match value:
        case dict() if name == "matchLabels":
            return _reduce_labels(value)
        case dict():
            return {key: _reduce(key, inner, rules) for key, inner in value.items()}
        case list():
            return [_reduce("[]", inner, rules) for inner in value]
        case _:
            return value


def _valid_if(is_valid: Callable[[Json], bool]) -> Reduce:
    return lambda value: VALID if is_valid(value) else value


def _reduce_name(value: Json) -> Json:
    is_valid = isinstance(value, str) and len(value) <= MAX_NAME_LENGTH and _is_plain(value)
    return VALID if is_valid else value


def _reduce_host(value: Json) -> Json:
    is_valid = isinstance(value, str) and len(value) <= 2 * MAX_NAME_LENGTH and _is_host(value)
    return VALID if is_valid else value


def _reduce_text(value: Json) -> Json:
    return VALID if isinstance(value, str) else value


def _reduce_texts(value: Json) -> Json:
    is_valid = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return VALID if is_valid else value


def _reduce_image(value: Json) -> Json:
    return VALID if isinstance(value, str) and _is_image(value) else value


def _reduce_count(value: Json) -> Json:
    is_valid = type(value) is int and 0 <= value <= MAX_REPLICAS
    return VALID if is_valid else value


def _reduce_labels(value: Json) -> Json:
    """Reduce labels, or a selector written like labels: keys stay, valid values are removed."""
    if not isinstance(value, dict):
        return value
    return {key: VALID if _is_valid_label_value(inner) else inner for key, inner in value.items()}


def _is_valid_label_value(value: Json) -> bool:
    return isinstance(value, str) and _is_label(value) is not None


def _reduce_annotations(value: Json) -> Json:
    """Return the annotations that a server may validate."""
    if not isinstance(value, dict) or not _fits(value, MAX_ANNOTATION_BYTES):
        return value
    return {
        key: inner for key, inner in value.items() if not _is_free_annotation(key) or inner is None
    }


def _is_free_annotation(key: str) -> bool:
    return _is_key(key) is not None and not key.partition("/")[0].endswith(_KUBERNETES_DOMAINS)


def _fits(texts: Mapping[str, Json], limit: int) -> bool:
    """Return whether all values are texts and fit into a limit."""
    is_text = all(isinstance(text, str) for text in texts.values())
    return is_text and sum(len(f"{key}{text}".encode()) for key, text in texts.items()) < limit


def _is_plain_metadata(metadata: Json) -> bool:
    """Return whether metadata has a name and otherwise only valid labels and annotations."""
    if not isinstance(metadata, dict):
        return False
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    return (
        metadata.keys() <= {"name", "namespace", "labels", "annotations"}
        and isinstance(metadata.get("name"), str)
        and isinstance(labels, dict)
        and all(_is_key(key) and _is_valid_label_value(value) for key, value in labels.items())
        and isinstance(annotations, dict)
        and all(map(_is_key, annotations))
        and _fits(annotations, MAX_ANNOTATION_BYTES)
    )


def _is_data(value: Json) -> bool:
    """Return whether all keys are valid and all values are texts; other rules check the content."""
    return (
        isinstance(value, dict)
        and all(map(_is_data_key, value))
        and _fits(value, 2 * MAX_DATA_BYTES)
    )


def _name_fields(*paths: str) -> Iterable[tuple[str, Reduce]]:
    return ((path, _reduce_name) for path in paths)


_METADATA: tuple[tuple[str, Reduce], ...] = (
    ("metadata.name", _reduce_name),
    ("metadata.namespace", _reduce_text),
    ("metadata.labels", _reduce_labels),
    ("metadata.annotations", _reduce_annotations),
)
_CONTAINER: tuple[tuple[str, Reduce], ...] = (
    *_name_fields(
        "name",
        "env[].valueFrom.secretKeyRef.name",
        "env[].valueFrom.configMapKeyRef.name",
        "envFrom[].secretRef.name",
        "envFrom[].configMapRef.name",
    ),
    ("image", _reduce_image),
    ("env[].value", _reduce_text),
    ("command", _reduce_texts),
    ("args", _reduce_texts),
)
_POD: tuple[tuple[str, Reduce], ...] = (
    *((f"containers[].{path}", reduce) for path, reduce in _CONTAINER),
    *((f"initContainers[].{path}", reduce) for path, reduce in _CONTAINER),
    *_name_fields(
        "serviceAccountName",
        "serviceAccount",
        "imagePullSecrets[].name",
        "volumes[].secret.secretName",
        "volumes[].configMap.name",
        "volumes[].persistentVolumeClaim.claimName",
    ),
)
_BINDING = (*_METADATA, *_name_fields("roleRef.name", "subjects[].name", "subjects[].namespace"))
_PLAIN_METADATA: tuple[tuple[str, Reduce], ...] = (("metadata", _valid_if(_is_plain_metadata)),)
_IS_FLAG = _valid_if(lambda value: isinstance(value, bool))
_KINDS: dict[tuple[str, str], tuple[tuple[str, Reduce], ...]] = {
    ("", "ConfigMap"): (
        *_PLAIN_METADATA,
        ("data", _valid_if(_is_data)),
        ("immutable", _IS_FLAG),
    ),
    ("", "Secret"): (
        *_PLAIN_METADATA,
        ("data", _valid_if(_is_data)),
        ("stringData", _valid_if(_is_data)),
        ("type", _reduce_text),
        ("immutable", _IS_FLAG),
    ),
    ("", "ServiceAccount"): (
        *_PLAIN_METADATA,
        ("automountServiceAccountToken", _IS_FLAG),
        *_name_fields("secrets[].name"),
    ),
    ("", "Namespace"): _PLAIN_METADATA,
    ("", "Service"): (*_METADATA, ("spec.selector", _reduce_labels)),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        *_METADATA,
        *_name_fields("spec.scaleTargetRef.name"),
    ),
    ("networking.k8s.io", "Ingress"): (
        *_METADATA,
        ("spec.rules[].host", _reduce_host),
        ("spec.tls[].hosts[]", _reduce_host),
        *_name_fields(
            "spec.tls[].secretName",
            "spec.defaultBackend.service.name",
            "spec.rules[].http.paths[].backend.service.name",
        ),
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
}


def _build_rules(rows: Iterable[tuple[str, Reduce]]) -> _ReductionRules:
    rules = _ReductionRules()
    for path, reduce in rows:
        rules.enter(path, reduce)
    return rules


def _workload_rules(path: str) -> _ReductionRules:
    """Return the rules for a workload with its pod spec at `path`."""
    pods = [(f"{path}.{inner}", reduce) for inner, reduce in _POD]
    template = path.removesuffix("spec")
    if template:
        pods += [(f"{template}{inner}", reduce) for inner, reduce in _METADATA[2:]]
    return _build_rules((*_METADATA, ("spec.replicas", _reduce_count), *pods))


DEFAULT_RULES = _build_rules(_METADATA)
RULES = {kind: _build_rules(rows) for kind, rows in _KINDS.items()} | {
    kind: _workload_rules(path) for kind, path in POD_SPEC_FIELDS.items()
}
