"""The smallest store around the ownership of fields: one object, nothing watched.

It knows of Kubernetes what the write sequences touch: a few defaults, and what must be there. It
stands in for an API server only where sequences are compared with a real one.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tests.fakes.sequence_answers import (
    gate_shape,
    narrowed,
    owners_of,
    shape_for,
    spoken_of,
)
from tests.fakes.write_sequences import GATE, Answer, Body, Deed, Ended, Sequence, Step
from tests.promises.objects import CONFIG_MAP, DEPLOYMENT, SERVICE
from tidegate.model.objects import Json, Kind
from tidegate.sandbox.api.builtin import object_meta
from tidegate.sandbox.api.checks import find_problems
from tidegate.sandbox.api.compare import same
from tidegate.sandbox.api.defaults import drop_nulls, fill_defaults
from tidegate.sandbox.api.elements import FIELD
from tidegate.sandbox.api.owners import Owners, keep_times, owners_for_update, write_owners
from tidegate.sandbox.api.ownership import Applied, Author, Conflicts, Unfit, apply, update
from tidegate.sandbox.api.shape import DEDUCED, Shape, Type, child
from tidegate.sandbox.api.terms import Terms, blank_of, resets_of

BLANKS: dict[Kind, Body] = {
    CONFIG_MAP: {"metadata": {}},
    SERVICE: {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}},
    DEPLOYMENT: {
        "metadata": {},
        "spec": {"strategy": {}, "template": {"metadata": {}, "spec": {"containers": None}}},
        "status": {},
    },
}


@cache
def terms_for(kind: Kind, subresource: str = "") -> Terms:
    is_custom = kind == GATE
    resets = resets_of(
        kind, subresource=subresource, has_status=kind != CONFIG_MAP, is_custom=is_custom
    )
    return Terms(
        shape=shape_for(kind),
        version=kind.api_version,
        subresource=subresource,
        resets=resets,
        blank={} if is_custom else (blank_of(shape_for(kind)) or BLANKS[kind]),
    )


class Held(NamedTuple):
    body: Body
    owners: Owners
    stored: Body
    """As it lies in the store: custom objects keep empty labels there until the next write."""


class OwnershipStore:
    """One object of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.held: Held | None = None
        self._clock = 0

    def run(self, step: Step) -> Answer:
        """The answer to a step; the body and owners are the whole ones."""
        self._clock += 1
        match step.deed:
            case Deed.APPLY:
                return self._apply(step)
            case Deed.CREATE:
                return self._create(step)
            case Deed.DELETE:
                ended = Ended.MISSING if self.held is None else Ended.DONE
                self.held = None
                return Answer(ended)
            case Deed.REPLACE | Deed.MERGE | Deed.JSON:
                return self._change(step)

    def _apply(self, step: Step) -> Answer:
        live = self.held.body if self.held else None
        if live is None and step.subresource:
            return Answer(Ended.MISSING)
        terms = terms_for(self.kind, step.subresource)
        owners = self.held.owners if self.held else ()
        by = self._author(step)
        result = apply(live, owners, self._named(step), by=by, terms=terms, force=step.force)
        match result:
            case Conflicts():
                return Answer(
                    Ended.CONFLICT, [f"{owned.manager} {owned.field}" for owned in result.owned]
                )
            case Unfit():
                return Answer(
                    Ended.INVALID, [problem.field.lstrip(".") for problem in result.problems]
                )
            case Applied():
                body = result.body
                if self.kind == GATE:
                    body = _as_body(fill_defaults(body, terms.shape))
                return self._store(body, result.owners, terms)

    def _create(self, step: Step) -> Answer:
        terms = terms_for(self.kind)
        body = self._decoded(self._named(step), terms)
        if self.held is not None and not problems_in(self.kind, body):
            return Answer(Ended.EXISTS)
        owners = update(terms.blank, body, (), by=self._author(step), terms=terms)
        return self._store(body, owners, terms)

    def _change(self, step: Step) -> Answer:
        if self.held is None:
            return Answer(Ended.MISSING)
        terms = terms_for(self.kind, step.subresource)
        live, owners, _ = self.held
        sent: Body = {
            **live,
            "metadata": {**_as_body(live["metadata"]), "managedFields": write_owners(owners)},
        }
        if isinstance(step.body, list):
            patched = json_patched(sent, step.body)
            if patched is None:
                return Answer(Ended.INVALID)
        else:
            patched = merge_patched(sent, step.body)
        metadata = dict(_as_body(_as_body(patched)["metadata"]))
        claimed = metadata.pop("managedFields", None)
        start = owners_for_update(owners, claimed, subresource=step.subresource)
        after = self._decoded({**_as_body(patched), "metadata": metadata}, terms)
        return self._store(
            after, update(live, after, start, by=self._author(step), terms=terms), terms
        )

    def _decoded(self, body: Body, terms: Terms) -> Body:
        if self.kind == GATE:
            body = _as_body(fill_defaults(drop_nulls(body, terms.shape), terms.shape))
        return defaulted(self.kind, body)

    def _store(self, sent: Body, owners: Owners, terms: Terms) -> Answer:
        live = self.held.body if self.held else {}
        body = _with_resets(defaulted(self.kind, sent), live, terms)
        if problems := problems_in(self.kind, body):
            return Answer(Ended.INVALID, problems)
        body = _with_uid(body)
        stored = _with_uid(_with_resets(sent, live, terms)) if self.kind == GATE else body
        is_new = True
        if self.held is not None and same(stored, self.held.stored):
            owners = keep_times(self.held.owners, owners)
            is_new = owners != self.held.owners
        self.held = Held(body, owners, stored)
        return Answer(
            Ended.DONE, is_new_version=is_new, body=body, owners=owners_of(write_owners(owners))
        )

    def _named(self, step: Step) -> Body:
        return named(self.kind, step, name="thing", namespace="default")

    def _author(self, step: Step) -> Author:
        return Author(step.by, f"2026-01-01T00:00:{self._clock:02}Z")


def _with_uid(body: Body) -> Body:
    return {**body, "metadata": {**_as_body(body["metadata"]), "uid": "1"}}


def imagined(sequence: Sequence) -> list[Answer]:
    """What this store answers to each step of a sequence."""
    store = OwnershipStore(sequence.kind)
    spoken, shape = spoken_of(sequence), shape_for(sequence.kind)
    return [narrowed(store.run(step), spoken, shape) for step in sequence.steps]


def named(kind: Kind, step: Step, *, name: str, namespace: str) -> Body:
    """The body of a step with what every object has."""
    body = _as_body(step.body)
    metadata = {**_as_body(body.get("metadata", {})), "name": name, "namespace": namespace}
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}


def _with_resets(body: Body, live: Body, terms: Terms) -> Body:
    """What a write through here cannot change is as it was."""
    for element, reset in terms.resets.below.items():
        name = element.removeprefix(FIELD)
        if reset.own:
            body = {part: value for part, value in body.items() if part != name}
            body |= {name: live[name]} if name in live else {}
    return body


def problems_in(kind: Kind, body: Body) -> list[str]:
    """Which fields are wrong."""
    if kind == GATE:
        return sorted({cause.field for cause in find_problems(body, gate_shape())})
    spec = _as_body(body.get("spec", {}))
    if kind == SERVICE and not spec.get("ports"):
        return ["spec.ports"]
    if kind == DEPLOYMENT:
        pod = _as_body(_as_body(spec["template"])["spec"])
        containers = pod["containers"]
        assert isinstance(containers, list)
        return [
            f"spec.template.spec.containers[{place}].image"
            for place, container in enumerate(containers)
            if "image" not in _as_body(container)
        ]
    return []


def defaulted(kind: Kind, body: Body) -> Body:
    """An object as its server keeps it, as far as sequences look at it."""
    if kind == GATE:
        return {**body, "metadata": _without_empty(body["metadata"], object_meta())}
    kept = _as_body(_without_empty(body, shape_for(kind)))
    match kind:
        case k if k == SERVICE:
            spec = {"internalTrafficPolicy": "Cluster", **_as_body(kept.get("spec", {}))}
            ports = spec.get("ports")
            spec |= (
                {"ports": [_service_port(port) for port in ports]}
                if isinstance(ports, list)
                else {}
            )
            return {**kept, "spec": spec, "status": {"loadBalancer": {}}}
        case k if k == DEPLOYMENT:
            return _deployment(kept)
        case _:
            return {**kept, "metadata": kept.get("metadata", {})}


def _service_port(port: Json) -> Json:
    known = _as_body(port)
    return {"protocol": "TCP", "targetPort": known.get("port"), **known}


def _deployment(body: Body) -> Body:
    spec = _as_body(body.get("spec", {}))
    template = _as_body(spec.get("template", {}))
    pod = _as_body(template.get("spec", {}))
    containers = pod.get("containers")
    pod = {"terminationGracePeriodSeconds": 30, **pod}
    if isinstance(containers, list):
        pod["containers"] = [_container(container) for container in containers]
    defaults: Body = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    spec = {name: part for name, part in spec.items() if (name, part) != ("minReadySeconds", 0)}
    spec = {
        **defaults,
        "strategy": {},
        **spec,
        "template": {"metadata": {}, **template, "spec": pod},
    }
    return {**body, "spec": spec, "status": body.get("status", {})}


def _container(container: Json) -> Json:
    known = {"imagePullPolicy": "IfNotPresent", "resources": {}, **_as_body(container)}
    ports = known.get("ports")
    if isinstance(ports, list):
        known["ports"] = [{"protocol": "TCP", **_as_body(port)} for port in ports]
    return known


def _without_empty(value: Json, shape: Shape) -> Json:
    """Go leaves out what is empty, and reads a null in a map of strings as an empty string."""
    match value:
        case dict():
            kept = {
                name: _without_empty(inner, child(shape, name) or DEDUCED)
                for name, inner in value.items()
            }
            if shape.values is not None and shape.values().type is Type.STRING:
                return {name: "" if inner is None else inner for name, inner in kept.items()}
            return {name: inner for name, inner in kept.items() if inner not in (None, {}, [])}
        case list():
            items = shape.items() if shape.items else DEDUCED
            return [_without_empty(item, items) for item in value]
        case _:
            return value


def merge_patched(value: Json, patch: Json) -> Json:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, inner in patch.items():
        if inner is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), inner)
    return result


def json_patched(value: Json, operations: list[Json]) -> Json:
    """RFC 6902 for fields of objects; None where a place is not there."""
    for operation in operations:
        known = _as_body(operation)
        *before, last = str(known["path"]).removeprefix("/").split("/")
        value = _operated(value, before, last, known)
        if value is None:
            return None
    return value


def _operated(value: Json, before: list[str], last: str, operation: Body) -> Json:
    if not isinstance(value, dict):
        return None
    if before:
        inner = _operated(value.get(before[0]), before[1:], last, operation)
        return None if inner is None else {**value, before[0]: inner}
    if operation["op"] == "remove":
        # Servers refuse to remove what is not there, but they replace it.
        if last not in value:
            return None
        return {name: inner for name, inner in value.items() if name != last}
    return {**value, last: operation["value"]}


def _as_body(value: Json) -> Body:
    assert isinstance(value, dict), value
    return value
