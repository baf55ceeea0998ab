"""Validation of built-in objects beyond their schema.

The common mistakes: rows of (path, check), and checks over several fields (`cross_fields`). In a
path `[]` matches every item; a missing field before `?` ends the path.

    every kind      name, labels, annotation keys, finalizers (`names`)
    Pods, and the templates of Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and CronJob
                    containers; their name, image, ports, env, mounts, pull policy; volumes;
                    restart and DNS policy; duplicate names
    the same        a selector that matches the template; counts that are not negative;
                    `rollingUpdate` with `Recreate`; a schedule of five fields
    Service         ports, their names and numbers, type, external name, selector
    PVC             access modes, size
    Ingress         a rule or a default backend; path, path type, backend
    RoleBinding     its role
    ConfigMap, Secret   keys, size; the keys of a typed Secret
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.causes import forbidden, invalid, required, too_long, unsupported
from tidegate.schema.validation import cross_fields, names
from tidegate.world.messages import Cause

FieldCheck = Callable[[str, Json], Iterator[Cause]]
"""A check that yields the errors of a field with a value."""
Row = tuple[str, FieldCheck]
PROTOCOLS = ("SCTP", "TCP", "UDP")
MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
MAX_DATA_BYTES = 1024 * 1024
"""The limit of the data of a ConfigMap or Secret.

Like `MaxSecretSize` in `core/v1/types.go` of k8s.io/api 0.36.4.
"""
_SECRET_KEYS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_BASIC_AUTH = "kubernetes.io/basic-auth"
_SSH_AUTH = "kubernetes.io/ssh-auth"
_SERVICE_ACCOUNT_TOKEN, _SERVICE_ACCOUNT_NAME = (
    "kubernetes.io/service-account-token",
    "kubernetes.io/service-account.name",
)


def find_requirement_problems(kind: Kind, body: Json) -> tuple[Cause, ...]:
    """Return the problems of a built-in object, or of the metadata of a custom one, sorted.

    Like `pkg/apis/core/validation/validation.go`, `pkg/apis/apps/validation/validation.go`,
    `pkg/apis/batch/validation/validation.go`, `pkg/apis/networking/validation/validation.go` and
    `pkg/apis/rbac/validation/validation.go` of Kubernetes 1.36.4.
    """
    if not isinstance(body, dict):
        return ()
    causes = [*names.find_name_problems(kind, get_mapping(body, "metadata"))]
    causes += _check_rows(ROWS.get((kind.group, kind.name), ()), body, "")
    if (kind.group, kind.name) in cross_fields.POD_SPEC_FIELDS:
        causes += cross_fields.workload_problems(kind, body)
        for path, pod in cross_fields.list_pod_specs(kind, body):
            causes += _check_rows(POD_ROWS, pod, f"{path}.")
            causes += cross_fields.pod_problems(pod, path)
    if check := KIND_CHECKS.get((kind.group, kind.name)):
        causes += check(body)
    return tuple(sorted(set(causes)))


def _check_rows(rows: Iterable[Row], body: JsonObject, prefix: str) -> Iterator[Cause]:
    for path, check in rows:
        for field, value in cross_fields.list_fields(body, path):
            yield from check(prefix + field, value)


def require_value(detail: str = "") -> FieldCheck:
    """Return a check that a field is not empty."""

    def ask(field: str, value: Json) -> Iterator[Cause]:
        if cross_fields.is_empty(value):
            yield required(field, detail)

    return ask


def require_one_of(*allowed: str) -> FieldCheck:
    """Return a check that a field has one of the allowed values, or none."""

    def ask(field: str, value: Json) -> Iterator[Cause]:
        if not cross_fields.is_empty(value) and value not in allowed:
            yield unsupported(field, value, allowed)

    return ask


def _not_negative(field: str, value: Json) -> Iterator[Cause]:
    if isinstance(value, int) and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def _port(field: str, value: Json) -> Iterator[Cause]:
    if isinstance(value, int) and value and not 0 < value <= cross_fields.MAX_PORT:
        yield invalid(field, value, f"must be between 1 and {cross_fields.MAX_PORT}, inclusive")


def _config_map_problems(body: JsonObject) -> Iterator[Cause]:
    text, binary = get_mapping(body, "data"), get_mapping(body, "binaryData")
    yield from names.key_problems(text, "data")
    yield from names.key_problems(binary, "binaryData")
    for key in (key for key in text if key in binary):
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    values = [*map(_to_bytes, text.values()), *map(_decode_base64, binary.values())]
    if sum(map(len, values)) > MAX_DATA_BYTES:
        yield too_long("[]", MAX_DATA_BYTES)


def _secret_problems(body: JsonObject) -> Iterator[Cause]:
    data, text = get_mapping(body, "data"), get_mapping(body, "stringData")
    yield from names.key_problems({**data, **text}, "data")
    values = {key: _decode_base64(value) for key, value in data.items()}
    values |= {key: _to_bytes(value) for key, value in text.items()}
    if sum(map(len, values.values())) > MAX_DATA_BYTES:
        yield too_long("data", MAX_DATA_BYTES)
    yield from _typed_problems(str(body.get("type")), values)
    if body.get("type") == _SERVICE_ACCOUNT_TOKEN and not get_mapping(
        body, "metadata", "annotations"
    ).get(_SERVICE_ACCOUNT_NAME):
        yield required(f"metadata.annotations[{_SERVICE_ACCOUNT_NAME}]")


def _typed_problems(type_: str, values: dict[str, bytes]) -> Iterator[Cause]:
    """Yield the missing keys of a typed Secret.

    Like `ValidateSecret` in `pkg/apis/core/validation/validation.go` of Kubernetes 1.36.4.
    """
    keys = _SECRET_KEYS.get(type_, ())
    yield from (required(f"data[{key}]") for key in keys if key not in values)
    if type_ == _BASIC_AUTH and not {"username", "password"} & values.keys():
        yield from (required(f"data[{key}]") for key in ("username", "password"))
    if type_ == _SSH_AUTH and not values.get("ssh-privatekey"):
        yield required("data[ssh-privatekey]")


def _to_bytes(value: Json) -> bytes:
    return str(value or "").encode()


def _decode_base64(value: Json) -> bytes:
    """Return decoded base64. Invalid base64 is reported elsewhere."""
    try:
        return base64.b64decode(str(value or ""))
    except ValueError:
        return b""


_PROBE_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def _probe_problems(field: str, probe: Json) -> Iterator[Cause]:
    if isinstance(probe, dict) and not any(kind in probe for kind in _PROBE_HANDLERS):
        yield required(field, "must specify a handler type")


_CONTAINER: tuple[Row, ...] = (
    ("name", require_value()),
    ("name", names.dns_label),
    ("image", require_value()),
    ("imagePullPolicy", require_one_of("Always", "IfNotPresent", "Never")),
    ("env[].name", require_value()),
    ("env[].valueFrom?.secretKeyRef?.key", require_value()),
    ("env[].valueFrom?.configMapKeyRef?.key", require_value()),
    ("ports[].containerPort", require_value()),
    ("ports[].containerPort", _port),
    ("ports[].protocol", require_one_of(*PROTOCOLS)),
    ("volumeMounts[].name", require_value()),
    ("volumeMounts[].mountPath", require_value()),
    ("livenessProbe?", _probe_problems),
    ("readinessProbe?", _probe_problems),
    ("startupProbe?", _probe_problems),
)
POD_ROWS: tuple[Row, ...] = (
    *((f"containers[].{path}", ask) for path, ask in _CONTAINER),
    *((f"initContainers[].{path}", ask) for path, ask in _CONTAINER),
    ("containers", require_value()),
    ("volumes[].name", require_value()),
    ("volumes[].name", names.dns_label),
    ("volumes[].secret?.secretName", require_value()),
    ("volumes[].configMap?.name", require_value()),
    ("volumes[].persistentVolumeClaim?.claimName", require_value()),
    ("restartPolicy", require_one_of("Always", "OnFailure", "Never")),
    ("dnsPolicy", require_one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
)
_CLAIM: tuple[Row, ...] = (
    ("accessModes", require_value("at least 1 access mode is required")),
    ("volumeMode", require_one_of("Block", "Filesystem")),
)
_REPLICAS: tuple[Row, ...] = (
    ("spec.replicas", _not_negative),
    ("spec.minReadySeconds", _not_negative),
)
_COUNTS = (
    "activeDeadlineSeconds",
    "backoffLimit",
    "completions",
    "parallelism",
    "ttlSecondsAfterFinished",
)


def _size_problems(field: str, spec: Json) -> Iterator[Cause]:
    modes = cross_fields.get_field(spec, "accessModes")
    for mode in modes if isinstance(modes, list) else ():
        if mode not in MODES:
            # Go decodes a null in a list of texts as an empty one.
            yield unsupported(f"{field}.accessModes", "" if mode is None else mode, MODES)
    size = cross_fields.get_field(spec, "resources.requests.storage")
    if size is None:
        yield required(f"{field}.resources[storage]")
    elif str(size) == "0":
        yield invalid(f"{field}.resources[storage]", "0", "must be greater than zero")


def _strategy_problems(field: str, strategy: Json) -> Iterator[Cause]:
    if (
        cross_fields.get_field(strategy, "type") == "Recreate"
        and cross_fields.get_field(strategy, "rollingUpdate") is not None
    ):
        detail = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden(f"{field}.rollingUpdate", detail)


def _role_problems(field: str, kind: Json) -> Iterator[Cause]:
    if kind not in {"Role", "ClusterRole"}:
        yield unsupported(field, kind or "", ("Role", "ClusterRole"))


ROWS: dict[tuple[str, str], tuple[Row, ...]] = {
    ("apps", "Deployment"): (*_REPLICAS, ("spec.strategy", _strategy_problems)),
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "StatefulSet"): (
        *_REPLICAS,
        *((f"spec.volumeClaimTemplates[].spec.{path}", ask) for path, ask in _CLAIM),
        ("spec.volumeClaimTemplates[].spec", _size_problems),
    ),
    ("batch", "Job"): tuple((f"spec.{count}", _not_negative) for count in _COUNTS),
    ("batch", "CronJob"): (
        ("spec.schedule", require_value()),
        ("spec.concurrencyPolicy", require_one_of("Allow", "Forbid", "Replace")),
    ),
    ("", "Service"): (
        ("spec.type", require_one_of("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")),
        ("spec.ports[].protocol", require_one_of(*PROTOCOLS)),
        ("spec.ports[].name", names.dns_label),
        ("spec.selector", names.label_problems),
    ),
    ("", "PersistentVolumeClaim"): (
        *((f"spec.{path}", ask) for path, ask in _CLAIM),
        ("spec", _size_problems),
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): (
        ("roleRef.kind", _role_problems),
        ("roleRef.name", require_value()),
    ),
    ("networking.k8s.io", "Ingress"): (
        ("spec.rules[].http?.paths", require_value()),
        ("spec.rules[].host", names.dns_subdomain),
        ("spec.rules[].http?.paths[].pathType", require_value("pathType must be specified")),
        (
            "spec.rules[].http?.paths[].pathType",
            require_one_of("Exact", "ImplementationSpecific", "Prefix"),
        ),
    ),
}
KIND_CHECKS: dict[tuple[str, str], Callable[[JsonObject], Iterator[Cause]]] = {
    ("", "ConfigMap"): _config_map_problems,
    ("", "Secret"): _secret_problems,
    ("", "Service"): cross_fields.service_problems,
    ("networking.k8s.io", "Ingress"): cross_fields.ingress_problems,
}
