"""Whether a body is an object of its kind, and how its server keeps it.

It is read, cleared of what is unknown, completed and checked. Servers read objects into Go's types
and write them out again. On the way empty maps and lists and nulls are left out, what is always
there appears, and a few defaults are filled in: those that merging needs, that owners come to name
or that verdicts about rollouts read. All other defaults are left out on purpose.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping
from tidegate.sandbox.kinds import DEFINITIONS
from tidegate.sandbox.ownership.compare import SCALARS
from tidegate.sandbox.ownership.layout import Layout, layout_of
from tidegate.sandbox.ownership.rules import blank_of
from tidegate.sandbox.server.register import KindEntry, RefusedCall, invalid
from tidegate.sandbox.server.store import Body, metadata_of
from tidegate.schema.builtin import object_meta
from tidegate.schema.checks import find_problems
from tidegate.schema.decoding import find_decode_problem
from tidegate.schema.mending import drop_nulls, fill_defaults, prune, unknown_fields, unless_same
from tidegate.schema.shape import Shape, Type
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.schema.validation.names import find_name_problems
from tidegate.schema.validation.requirements import find_unmet
from tidegate.world.facts import Cause, Invalid

Part = dict[str, Json]
ASIDE = frozenset({"metadata", "status"})
"""What can change without anything that a kind requires."""


def keep(body: Body, entry: KindEntry) -> Body:
    """What is stored of a body."""
    if entry.is_custom:
        return {**body, "metadata": keep_part(body.get("metadata"), "metadata", entry)}
    kept = _kept(body, layout_of(entry.shape))
    if not isinstance(kept, dict):
        raise TypeError(kept)
    complete = DEFAULTS.get(entry.resource)
    return complete(kept) if complete else kept


def keep_part(value: Json, name: str, entry: KindEntry) -> Json:
    """What is stored of one part of a body."""
    return _kept(value, layout_of(entry.shape).children[name])


def _kept(value: Json, layout: Layout) -> Json:
    match value:
        case dict():
            return _kept_object(value, layout)
        case list():
            items = layout.items
            return unless_same(value, [_kept(item, items) for item in value])
        case _:
            return value


def _kept_object(value: Part, layout: Layout) -> Json:
    shape = layout.shape
    if shape.values is not None and shape.values().type is Type.STRING:
        if None not in value.values():
            return value
        return {name: "" if inner is None else inner for name, inner in value.items()}
    kept: Part = {}
    is_same = True
    for name, inner in value.items():
        if type(inner) in SCALARS:
            kept[name] = inner
            continue
        place = layout.children[name]
        told = _kept(inner, place)
        if _is_left_out(told, place.shape):
            is_same = False
        else:
            is_same = is_same and told is inner
            kept[name] = told
    for name, part in blank_of(shape).items():
        kept.setdefault(name, part)
    return value if is_same and len(kept) == len(value) else kept


def _is_left_out(value: Json, shape: Shape) -> bool:
    """Maps and lists that hold nothing; a struct that holds nothing may mean something."""
    if value is None or value == []:
        return True
    return value == {} and shape.values is not None


def _service(body: Body) -> Body:
    spec = mapping(body, "spec")
    ports = spec.get("ports")
    completed: Part = {"internalTrafficPolicy": "Cluster", **spec}
    if isinstance(ports, list):
        completed["ports"] = [
            {"protocol": "TCP", "targetPort": mapping(port).get("port"), **mapping(port)}
            for port in ports
        ]
    return {**body, "spec": completed}


def _deployment(body: Body) -> Body:
    spec = mapping(body, "spec")
    kept = {name: part for name, part in spec.items() if (name, part) != ("minReadySeconds", 0)}
    completed: Part = {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **kept,
    }
    template = mapping(spec.get("template"))
    completed["template"] = {**template, "spec": _pod(mapping(template.get("spec")))}
    return {**body, "spec": completed}


def _stateful_set(body: Body) -> Body:
    """Without a strategy of its own it rolls, all of it: whoever judges a rollout reads that."""
    spec: Part = {"replicas": 1, **mapping(body, "spec")}
    strategy: Part = {"type": "RollingUpdate", **mapping(spec.get("updateStrategy"))}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **mapping(strategy.get("rollingUpdate"))}
    return {**body, "spec": {**spec, "updateStrategy": strategy}}


def _pod(spec: Part) -> Part:
    containers = spec.get("containers")
    completed: Part = {"terminationGracePeriodSeconds": 30, **spec}
    if isinstance(containers, list):
        completed["containers"] = [_container(mapping(one)) for one in containers]
    return completed


def _container(container: Part) -> Part:
    completed: Part = {"imagePullPolicy": "IfNotPresent", **container}
    ports = container.get("ports")
    if isinstance(ports, list):
        completed["ports"] = [{"protocol": "TCP", **mapping(port)} for port in ports]
    return completed


def _secret(body: Body) -> Body:
    """What is written as text is kept encoded, beside what was encoded already."""
    texts = mapping(body, "stringData")
    kept = {name: part for name, part in body.items() if name != "stringData"}
    if texts:
        encoded: Part = {
            name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()
        }
        kept["data"] = {**mapping(body, "data"), **encoded}
    return {"type": "Opaque", **kept}


DEFAULTS: dict[tuple[str, str], Callable[[Body], Body]] = {
    ("", "secrets"): _secret,
    ("", "services"): _service,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): lambda body: {
        **body,
        "spec": {"replicas": 1, **mapping(body, "spec")},
    },
    ("apps", "statefulsets"): _stateful_set,
}


def inspect(
    body: Body, entry: KindEntry, *, strict: bool, keeps_nulls: bool = False, through: str = ""
) -> tuple[Body, tuple[str, ...]]:
    """The object as it can be stored, and what the caller is warned of; or raise why not.

    A null that a CRD does not allow is dropped by those who create or replace, and refused to those
    who apply. A status that is not written `through` its subresource is not looked at: it is not
    kept.
    """
    known, warnings = _read(body, entry, strict=strict)
    whole: Json = known
    if entry.is_custom:
        whole = known if keeps_nulls else drop_nulls(known, entry.shape)
        whole = fill_defaults(whole, entry.shape)
    if not isinstance(whole, dict):
        raise TypeError(whole)
    kept = keep(whole, entry)
    is_aside = entry.is_custom and entry.has_status and through != "status"
    judged = {name: part for name, part in kept.items() if name != "status"} if is_aside else kept
    check(judged, entry)
    return kept, warnings


def inspect_change(
    before: Body, body: Body, entry: KindEntry, *, strict: bool
) -> tuple[Body, tuple[str, ...]]:
    """The same for an object that changed. What it shares with the one before was inspected then:
    a controller that writes a status does not pay for the spec."""
    parts = {name: part for name, part in body.items() if before.get(name) is not part}
    if entry.is_custom or not parts.keys() <= ASIDE:
        return inspect(body, entry, strict=strict, through="status")
    known, warnings = _read(parts, entry, strict=strict)
    kept = {name: keep_part(part, name, entry) for name, part in known.items()}
    if "metadata" in kept:
        check(kept, entry, asks=find_name_problems(entry.kind, metadata_of(kept)))
    return {**body, **kept}, warnings


def _read(body: Body, entry: KindEntry, *, strict: bool) -> tuple[Body, tuple[str, ...]]:
    """The body without what its kind does not know."""
    if problem := _decode_problem(body, entry):
        raise RefusedCall(Invalid(problem))
    unknown = unknown_fields(body, entry.shape)
    if entry.is_custom:
        unknown = tuple(sorted(unknown))
    if unknown and strict:
        told = ", ".join(f'unknown field "{field}"' for field in unknown)
        causes = (Cause(field, "unknown", "unknown field") for field in unknown)
        raise RefusedCall(Invalid(f"strict decoding error: {told}", tuple(sorted(causes))))
    warnings = tuple(f'unknown field "{field}"' for field in unknown)
    known = prune(body, entry.shape) if unknown else body
    if not isinstance(known, dict):
        raise TypeError(known)
    return known, warnings


def _decode_problem(body: Body, entry: KindEntry) -> str:
    """Of a custom object only the metadata is made a type of; the rest is checked by its schema."""
    if entry.is_custom:
        return find_decode_problem(body.get("metadata"), object_meta())
    return find_decode_problem(body, entry.shape)


def check(body: Body, entry: KindEntry, asks: Iterable[Cause] | None = None) -> None:
    """Raise what is wrong with an object, or with what is asked of it here."""
    problems = list(find_unmet(entry.kind, body) if asks is None else asks)
    if entry.is_custom:
        problems += find_problems(body, entry.shape)
    if entry.kind == DEFINITIONS and asks is None:
        problems += find_definition_problems(body)
    if problems:
        raise invalid(entry, str(metadata_of(body).get("name", "")), problems)


def unfit(problems: tuple[Cause, ...], entry: KindEntry, ref: Ref) -> RefusedCall:
    """An intent that cannot be merged, in the words of the server."""
    told = "; ".join(f".{cause.field}: {_in_typed_words(cause)}" for cause in problems)
    group = f"{entry.kind.group}/{entry.kind.version}"
    where = f"{ref.namespace}/{ref.name}; {group}, Kind={entry.kind.name}"
    message = f"failed to create typed patch object ({where}): {told}"
    return RefusedCall(Invalid(message, tuple(sorted(problems))))


def _in_typed_words(cause: Cause) -> str:
    return "field not declared in schema" if cause.reason == "unknown" else cause.message
