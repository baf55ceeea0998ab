"""Validation of a body, and the form in which a server stores it.

A body is decoded, cleared of unknown fields, completed and checked. Servers decode objects into
Go types and encode them again. This removes empty maps, empty lists and nulls, and adds fields
that are always present and a few defaults: those that merging needs, that managed fields name,
or that health checks of rollouts read. All other defaults are left out on purpose.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.kinds import CRD
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.sandbox.ownership.compare import SCALARS
from tidegate.sandbox.ownership.layout import Layout, get_layout
from tidegate.sandbox.ownership.rules import build_blank
from tidegate.sandbox.server.kind_registry import KindEntry, StatusError, invalid_error
from tidegate.sandbox.server.store import get_metadata
from tidegate.schema.builtin import object_meta_shape
from tidegate.schema.crd_validation import find_crd_problems
from tidegate.schema.defaulting import (
    drop_nulls,
    fill_defaults,
    list_unknown_fields,
    prune,
    reuse_if_unchanged,
)
from tidegate.schema.shape import Shape, Type
from tidegate.schema.types import find_decode_problem
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.schema.validation.names import find_name_problems
from tidegate.schema.validation.requirements import find_requirement_problems
from tidegate.world.messages import Cause, Invalid

UNCONSTRAINED_FIELDS = frozenset({"metadata", "status"})
"""Fields that a kind can change without a check of its requirements."""


def normalize_body(body: JsonObject, entry: KindEntry) -> JsonObject:
    """Return the stored form of a body."""
    if entry.is_custom:
        return {**body, "metadata": normalize_field(body.get("metadata"), "metadata", entry)}
    normalized = _normalize(body, get_layout(entry.shape))
    if not isinstance(normalized, dict):
        raise TypeError(normalized)
    set_defaults = DEFAULT_SETTERS.get(entry.resource)
    return set_defaults(normalized) if set_defaults else normalized


def normalize_field(value: Json, name: str, entry: KindEntry) -> Json:
    """Return the stored form of one top-level field of a body."""
    return _normalize(value, get_layout(entry.shape).children[name])


def _normalize(value: Json, layout: Layout) -> Json:
    match value:
        case dict():
            return _normalize_object(value, layout)
        case list():
            items = layout.items
            return reuse_if_unchanged(value, [_normalize(item, items) for item in value])
        case _:
            return value


def _normalize_object(value: JsonObject, layout: Layout) -> Json:
    shape = layout.shape
    if shape.values is not None and shape.values().type is Type.STRING:
        if None not in value.values():
            return value
        return {name: "" if inner is None else inner for name, inner in value.items()}
    normalized: JsonObject = {}
    is_same = True
    for name, inner in value.items():
        if type(inner) in SCALARS:
            normalized[name] = inner
            continue
        child_layout = layout.children[name]
        normalized_child = _normalize(inner, child_layout)
        if _is_omitted(normalized_child, child_layout.shape):
            is_same = False
        else:
            is_same = is_same and normalized_child is inner
            normalized[name] = normalized_child
    for name, blank in build_blank(shape).items():
        normalized.setdefault(name, blank)
    return value if is_same and len(normalized) == len(value) else normalized


def _is_omitted(value: Json, shape: Shape) -> bool:
    """Return whether a value is omitted: null, or an empty map or list; never a struct."""
    if value is None or value == []:
        return True
    return value == {} and shape.values is not None


def _default_service(body: JsonObject) -> JsonObject:
    spec = get_mapping(body, "spec")
    ports = spec.get("ports")
    completed: JsonObject = {"internalTrafficPolicy": "Cluster", **spec}
    if isinstance(ports, list):
        completed["ports"] = [
            {"protocol": "TCP", "targetPort": get_mapping(port).get("port"), **get_mapping(port)}
            for port in ports
        ]
    return {**body, "spec": completed}


def _default_deployment(body: JsonObject) -> JsonObject:
    spec = get_mapping(body, "spec")
    explicit = {
        name: value for name, value in spec.items() if (name, value) != ("minReadySeconds", 0)
    }
    completed: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **explicit,
    }
    template = get_mapping(spec.get("template"))
    completed["template"] = {
        **template,
        "spec": _default_pod_spec(get_mapping(template.get("spec"))),
    }
    return {**body, "spec": completed}


def _default_stateful_set(body: JsonObject) -> JsonObject:
    """Set the update strategy, which health checks of rollouts read.

    Like `SetDefaults_StatefulSet` in `pkg/apis/apps/v1/defaults.go` of Kubernetes 1.36.4.
    """
    spec: JsonObject = {"replicas": 1, **get_mapping(body, "spec")}
    strategy: JsonObject = {"type": "RollingUpdate", **get_mapping(spec.get("updateStrategy"))}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **get_mapping(strategy.get("rollingUpdate"))}
    return {**body, "spec": {**spec, "updateStrategy": strategy}}


def _default_pod_spec(spec: JsonObject) -> JsonObject:
    containers = spec.get("containers")
    completed: JsonObject = {"terminationGracePeriodSeconds": 30, **spec}
    if isinstance(containers, list):
        completed["containers"] = [
            _default_container(get_mapping(container)) for container in containers
        ]
    return completed


def _default_container(container: JsonObject) -> JsonObject:
    completed: JsonObject = {"imagePullPolicy": "IfNotPresent", **container}
    ports = container.get("ports")
    if isinstance(ports, list):
        completed["ports"] = [{"protocol": "TCP", **get_mapping(port)} for port in ports]
    return completed


def _default_secret(body: JsonObject) -> JsonObject:
    """Encode `stringData` into `data`.

    Like `Convert_v1_Secret_To_core_Secret` in `pkg/apis/core/v1/conversion.go` of Kubernetes
    1.36.4.
    """
    texts = get_mapping(body, "stringData")
    fields = {name: value for name, value in body.items() if name != "stringData"}
    if texts:
        encoded: JsonObject = {
            name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()
        }
        fields["data"] = {**get_mapping(body, "data"), **encoded}
    return {"type": "Opaque", **fields}


DEFAULT_SETTERS: dict[tuple[str, str], Callable[[JsonObject], JsonObject]] = {
    ("", "secrets"): _default_secret,
    ("", "services"): _default_service,
    ("apps", "deployments"): _default_deployment,
    ("apps", "replicasets"): lambda body: {
        **body,
        "spec": {"replicas": 1, **get_mapping(body, "spec")},
    },
    ("apps", "statefulsets"): _default_stateful_set,
}


def validate(
    body: JsonObject,
    entry: KindEntry,
    *,
    strict: bool,
    keep_nulls: bool = False,
    subresource: str = "",
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the stored form of an object, and the warnings for the client. Raises StatusError.

    A null that a CRD does not allow is dropped in creates and updates, and rejected in applies
    (`keep_nulls`). The status of a custom resource is checked only if it is written with the
    subresource `status`; otherwise it is not stored.
    """
    pruned, warnings = _prune_unknown(body, entry, strict=strict)
    completed: Json = pruned
    if entry.is_custom:
        completed = pruned if keep_nulls else drop_nulls(pruned, entry.shape)
        completed = fill_defaults(completed, entry.shape)
    if not isinstance(completed, dict):
        raise TypeError(completed)
    normalized = normalize_body(completed, entry)
    ignores_status = entry.is_custom and entry.has_status and subresource != "status"
    checked = (
        {name: value for name, value in normalized.items() if name != "status"}
        if ignores_status
        else normalized
    )
    check_body(checked, entry)
    return normalized, warnings


def validate_update(
    before: JsonObject, body: JsonObject, entry: KindEntry, *, strict: bool
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the stored form of an updated object, and the warnings. Raises StatusError.

    Parts that are shared with the previous body are not checked again: a write of the status does
    not pay for the spec.
    """
    changed = {name: value for name, value in body.items() if before.get(name) is not value}
    if entry.is_custom or not changed.keys() <= UNCONSTRAINED_FIELDS:
        return validate(body, entry, strict=strict, subresource="status")
    pruned, warnings = _prune_unknown(changed, entry, strict=strict)
    normalized = {name: normalize_field(value, name, entry) for name, value in pruned.items()}
    if "metadata" in normalized:
        check_body(
            normalized, entry, causes=find_name_problems(entry.kind, get_metadata(normalized))
        )
    return {**body, **normalized}, warnings


def _prune_unknown(
    body: JsonObject, entry: KindEntry, *, strict: bool
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the body without unknown fields, and warnings. Raises StatusError if strict.

    Like `PruneWithOptions` in `pkg/apiserver/schema/pruning/algorithm.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    if problem := _find_decode_problem(body, entry):
        raise StatusError(Invalid(problem))
    unknown = list_unknown_fields(body, entry.shape)
    if entry.is_custom:
        unknown = tuple(sorted(unknown))
    if unknown and strict:
        details = ", ".join(f'unknown field "{field}"' for field in unknown)
        causes = (Cause(field, "unknown", "unknown field") for field in unknown)
        raise StatusError(Invalid(f"strict decoding error: {details}", tuple(sorted(causes))))
    warnings = tuple(f'unknown field "{field}"' for field in unknown)
    pruned = prune(body, entry.shape) if unknown else body
    if not isinstance(pruned, dict):
        raise TypeError(pruned)
    return pruned, warnings


def _find_decode_problem(body: JsonObject, entry: KindEntry) -> str:
    """Return why a body cannot be decoded; of a custom resource only the metadata is decoded."""
    if entry.is_custom:
        return find_decode_problem(body.get("metadata"), object_meta_shape())
    return find_decode_problem(body, entry.shape)


def check_body(body: JsonObject, entry: KindEntry, causes: Iterable[Cause] | None = None) -> None:
    """Raise StatusError for the problems of an object, or for the given `causes` only."""
    problems = list(find_requirement_problems(entry.kind, body) if causes is None else causes)
    if entry.is_custom:
        problems += find_crd_problems(body, entry.shape)
    if entry.kind == CRD and causes is None:
        problems += find_definition_problems(body)
    if problems:
        raise invalid_error(entry, str(get_metadata(body).get("name", "")), problems)


def invalid_intent_error(problems: tuple[Cause, ...], entry: KindEntry, ref: Ref) -> StatusError:
    """Return the error for an intent that cannot be merged, in the server's words."""
    details = "; ".join(f".{cause.field}: {_typed_message(cause)}" for cause in problems)
    group = f"{entry.kind.group}/{entry.kind.version}"
    subject = f"{ref.namespace}/{ref.name}; {group}, Kind={entry.kind.name}"
    message = f"failed to create typed patch object ({subject}): {details}"
    return StatusError(Invalid(message, tuple(sorted(problems))))


def _typed_message(cause: Cause) -> str:
    return "field not declared in schema" if cause.reason == "unknown" else cause.message
