"""What of a built-in object only a server can judge: all that is not certainly right by itself.

Rules here know what is wrong with most objects, and not with all. So a body is taken apart: what is
right wherever it stands (a plain name where a name is asked for, any text where any will do) is
left out, and the rest is open. Of a ConfigMap or a Secret nothing is open as a rule. Bodies of a
kind with the same open part get the same answer from a server, apart from whoever else has a word.

What is marked here is compared with a real server by a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.validation.cross_fields import POD_SPEC_PATHS
from tidegate.schema.validation.requirements import MAX_DATA_BYTES

Reduce = Callable[[Json], Json]
"""What is left of a value."""
VALID = "\0"
"""Stands for what is right; no document can hold it."""
MAX_NAME_LENGTH = 50
"""As long as this, a name is right for every kind; some append to it."""
MAX_ANNOTATION_BYTES = 200 * 1024
"""Bytes of annotations that are few enough; a server takes 256 KiB."""
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
_THEIRS = ("kubernetes.io", "k8s.io")
"""Annotations of these domains may mean something to a server."""


class _OpenRules(msgspec.Struct):
    """What is asked of a value, and of what stands in it."""

    settle: Reduce | None = None
    fields: dict[str, _OpenRules] = msgspec.field(default_factory=dict)

    def enter(self, path: str, settle: Reduce) -> None:
        rules = self
        for name in path.replace("[]", ".[]").split("."):
            rules = rules.fields.setdefault(name, _OpenRules())
        rules.settle = settle


NO_RULES = _OpenRules()


def server_checked_part(kind: Kind, body: JsonObject) -> JsonObject:
    """What only a server can judge of an object of a built-in kind; empty: nothing."""
    rules = RULES.get((kind.group, kind.name), DEFAULT_RULES)
    if body.get("type") in REGISTRY_SECRET_TYPES:
        rules = DEFAULT_RULES
    whole = {"metadata": {}, **body}
    left = {name: _left(name, value, rules) for name, value in whole.items() if name not in _HEAD}
    return {} if all(value == VALID for value in left.values()) else left


REGISTRY_SECRET_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
"""What Secrets of these types hold, servers read."""
_HEAD = frozenset({"apiVersion", "kind", "status"})
_SERVERS = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"})
"""What a server itself writes into an object's head."""


def server_checked_digest(kind: Kind, body: JsonObject, live: JsonObject | None) -> bytes:
    """A word for what is open of an object, given what lives of it; empty: nothing is.

    What a server says of a change depends on both. Of kinds that Kubernetes does not bring, their
    CRD tells.
    """
    if find_shape(kind) is None:
        return b""
    left: list[Json] = [server_checked_part(kind, body)]
    if live is not None and (left[0] or not _fits_beside(body, live)):
        head = get_mapping(live, "metadata")
        own: JsonObject = {name: value for name, value in head.items() if name not in _SERVERS}
        left.append(server_checked_part(kind, {**live, "metadata": own}))
    if not any(left):
        return b""
    return blake2b(msgspec.json.encode(left, order="sorted"), digest_size=16).digest()


def _fits_beside(body: JsonObject, live: JsonObject) -> bool:
    """Whether what others have put into it leaves room for ours."""
    parts = (get_mapping(one, name) for one in (live, body) for name in ("data", "stringData"))
    return _fit({key: text for part in parts for key, text in part.items()}, MAX_DATA_BYTES)


def _left(name: str, value: Json, around: _OpenRules) -> Json:
    rules = around.fields.get(name, NO_RULES)
    if rules.settle is not None:
        value = rules.settle(value)
    match value:
        case dict() if name == "matchLabels":
            return _labels(value)
        case dict():
            return {key: _left(key, inner, rules) for key, inner in value.items()}
        case list():
            return [_left("[]", inner, rules) for inner in value]
        case _:
            return value


def _where(holds: Callable[[Json], bool]) -> Reduce:
    return lambda value: VALID if holds(value) else value


def _name(value: Json) -> Json:
    is_right = isinstance(value, str) and len(value) <= MAX_NAME_LENGTH and _is_plain(value)
    return VALID if is_right else value


def _host(value: Json) -> Json:
    is_right = isinstance(value, str) and len(value) <= 2 * MAX_NAME_LENGTH and _is_host(value)
    return VALID if is_right else value


def _text(value: Json) -> Json:
    return VALID if isinstance(value, str) else value


def _texts(value: Json) -> Json:
    is_right = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return VALID if is_right else value


def _image(value: Json) -> Json:
    return VALID if isinstance(value, str) and _is_image(value) else value


def _count(value: Json) -> Json:
    is_right = type(value) is int and 0 <= value <= MAX_REPLICAS
    return VALID if is_right else value


def _labels(value: Json) -> Json:
    """Labels, and selectors that are written like them: keys are looked at, values are settled."""
    if not isinstance(value, dict):
        return value
    return {key: VALID if _is_right_label(inner) else inner for key, inner in value.items()}


def _is_right_label(value: Json) -> bool:
    return isinstance(value, str) and _is_label(value) is not None


def _annotations(value: Json) -> Json:
    """Those that a server may ask about."""
    if not isinstance(value, dict) or not _fit(value, MAX_ANNOTATION_BYTES):
        return value
    return {key: inner for key, inner in value.items() if not _is_free(key) or inner is None}


def _is_free(key: str) -> bool:
    return _is_key(key) is not None and not key.partition("/")[0].endswith(_THEIRS)


def _fit(texts: Mapping[str, Json], limit: int) -> bool:
    """Whether all of them are texts, and together not too long."""
    is_text = all(isinstance(text, str) for text in texts.values())
    return is_text and sum(len(f"{key}{text}".encode()) for key, text in texts.items()) < limit


def _is_plain_head(metadata: Json) -> bool:
    """Whether an object is called something, and bears nothing but labels and annotations."""
    if not isinstance(metadata, dict):
        return False
    labels, notes = metadata.get("labels", {}), metadata.get("annotations", {})
    return (
        metadata.keys() <= {"name", "namespace", "labels", "annotations"}
        and isinstance(metadata.get("name"), str)
        and isinstance(labels, dict)
        and all(_is_key(key) and _is_right_label(value) for key, value in labels.items())
        and isinstance(notes, dict)
        and all(map(_is_key, notes))
        and _fit(notes, MAX_ANNOTATION_BYTES)
    )


def _is_data(value: Json) -> bool:
    """Whether keys are right, and all is text; rules ask how much and what it is."""
    return (
        isinstance(value, dict)
        and all(map(_is_data_key, value))
        and _fit(value, 2 * MAX_DATA_BYTES)
    )


def _references(*paths: str) -> Iterable[tuple[str, Reduce]]:
    return ((path, _name) for path in paths)


_METADATA: tuple[tuple[str, Reduce], ...] = (
    ("metadata.name", _name),
    ("metadata.namespace", _text),
    ("metadata.labels", _labels),
    ("metadata.annotations", _annotations),
)
_CONTAINER: tuple[tuple[str, Reduce], ...] = (
    *_references(
        "name",
        "env[].valueFrom.secretKeyRef.name",
        "env[].valueFrom.configMapKeyRef.name",
        "envFrom[].secretRef.name",
        "envFrom[].configMapRef.name",
    ),
    ("image", _image),
    ("env[].value", _text),
    ("command", _texts),
    ("args", _texts),
)
_POD: tuple[tuple[str, Reduce], ...] = (
    *((f"containers[].{path}", settle) for path, settle in _CONTAINER),
    *((f"initContainers[].{path}", settle) for path, settle in _CONTAINER),
    *_references(
        "serviceAccountName",
        "serviceAccount",
        "imagePullSecrets[].name",
        "volumes[].secret.secretName",
        "volumes[].configMap.name",
        "volumes[].persistentVolumeClaim.claimName",
    ),
)
_BINDING = (*_METADATA, *_references("roleRef.name", "subjects[].name", "subjects[].namespace"))
_WHOLE: tuple[tuple[str, Reduce], ...] = (("metadata", _where(_is_plain_head)),)
_IS_FLAG = _where(lambda value: isinstance(value, bool))
_KINDS: dict[tuple[str, str], tuple[tuple[str, Reduce], ...]] = {
    ("", "ConfigMap"): (
        *_WHOLE,
        ("data", _where(_is_data)),
        ("immutable", _IS_FLAG),
    ),
    ("", "Secret"): (
        *_WHOLE,
        ("data", _where(_is_data)),
        ("stringData", _where(_is_data)),
        ("type", _text),
        ("immutable", _IS_FLAG),
    ),
    ("", "ServiceAccount"): (
        *_WHOLE,
        ("automountServiceAccountToken", _IS_FLAG),
        *_references("secrets[].name"),
    ),
    ("", "Namespace"): _WHOLE,
    ("", "Service"): (*_METADATA, ("spec.selector", _labels)),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        *_METADATA,
        *_references("spec.scaleTargetRef.name"),
    ),
    ("networking.k8s.io", "Ingress"): (
        *_METADATA,
        ("spec.rules[].host", _host),
        ("spec.tls[].hosts[]", _host),
        *_references(
            "spec.tls[].secretName",
            "spec.defaultBackend.service.name",
            "spec.rules[].http.paths[].backend.service.name",
        ),
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
}


def _rules_of(rows: Iterable[tuple[str, Reduce]]) -> _OpenRules:
    rules = _OpenRules()
    for path, settle in rows:
        rules.enter(path, settle)
    return rules


def _workload(path: str) -> _OpenRules:
    """`path`: where it has the spec of its Pods; what they are called stands beside that."""
    pods = [(f"{path}.{inner}", settle) for inner, settle in _POD]
    template = path.removesuffix("spec")
    if template:
        pods += [(f"{template}{inner}", settle) for inner, settle in _METADATA[2:]]
    return _rules_of((*_METADATA, ("spec.replicas", _count), *pods))


DEFAULT_RULES = _rules_of(_METADATA)
RULES = {kind: _rules_of(rows) for kind, rows in _KINDS.items()} | {
    kind: _workload(path) for kind, path in POD_SPEC_PATHS.items()
}
