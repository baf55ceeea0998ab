"""A plan as a document: JSON out and in, with what is secret left out.

The text of a Secret is replaced by a digest that is salted with the plan's own. Whoever runs a
saved plan renders again and hands the bodies in; a difference is refused.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.errors import Place, PlanError
from tidegate.model.objects import Ref
from tidegate.model.plan import (
    VERSION,
    Edge,
    Fragment,
    Item,
    Plan,
    PlannedUnit,
    Step,
    digest_bytes,
    digest_plan,
    digest_step,
)

SECRET = ("", "Secret")


class _Item(msgspec.Struct, omit_defaults=True):
    item: Item
    object: msgspec.Raw = msgspec.Raw(b"null")
    sealed: str = ""


class _Step(msgspec.Struct):
    step: Step
    batches: tuple[tuple[_Item, ...], ...]


class _Document(msgspec.Struct):
    kind: str
    version: int
    digest: str
    units: tuple[PlannedUnit, ...]
    steps: tuple[_Step, ...]
    edges: tuple[Edge, ...]


def to_json(plan: Plan) -> bytes:
    """The plan without a secret in it."""
    steps = tuple(
        _Step(
            msgspec.structs.replace(step, batches=()),
            tuple(tuple(_write(item, plan.digest) for item in batch) for batch in step.batches),
        )
        for step in plan.steps
    )
    document = _Document("TidegatePlan", VERSION, plan.digest, plan.units, steps, plan.edges)
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def from_json(text: bytes, *, name: str, bodies: dict[Ref, bytes]) -> Plan:
    """Read a plan. `bodies` are those rendered now, for the objects that a plan does not hold."""
    where = Place(name)
    try:
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.DecodeError as error:
        raise PlanError(
            "plan.document", f"this is not a saved plan: {error}", where=where
        ) from None
    if document.version != VERSION:
        problem = f"this plan has version {document.version}, and {VERSION} is read here"
        raise PlanError("plan.version", problem, where=where, hint="make the plan again")
    steps = tuple(_read_step(step, document.digest, bodies, where) for step in document.steps)
    fragment = Fragment(units=document.units, steps=steps, edges=document.edges)
    if digest_plan(fragment) != document.digest:
        problem = "the plan was changed after it was made"
        raise PlanError("plan.changed", problem, where=where, hint="make the plan again")
    return Plan.of(fragment)


def _write(item: Item, salt: str) -> _Item:
    bare = msgspec.structs.replace(item, body=b"")
    if (item.ref.kind.group, item.ref.kind.name) != SECRET:
        return _Item(bare, msgspec.Raw(item.body or b"null"))
    hidden = msgspec.structs.replace(bare, digest="")
    return _Item(hidden, sealed=_seal(item.body, salt))


def _seal(body: bytes, salt: str) -> str:
    return hashlib.blake2b(body, digest_size=16, key=salt.encode()[:64]).hexdigest()


def _read_step(stored: _Step, salt: str, bodies: dict[Ref, bytes], where: Place) -> Step:
    batches = tuple(
        tuple(_read(item, salt, bodies, where) for item in batch) for batch in stored.batches
    )
    digest = digest_step(batches, stored.step.expands)
    return msgspec.structs.replace(stored.step, batches=batches, digest=digest)


def _read(stored: _Item, salt: str, bodies: dict[Ref, bytes], where: Place) -> Item:
    if not stored.sealed:
        body = bytes(stored.object)
        if body == b"null":
            return stored.item
        compact = msgspec.json.format(body, indent=-1)
        return msgspec.structs.replace(stored.item, body=compact, digest=digest_bytes(compact))
    rendered = bodies.get(stored.item.ref, b"")
    if _seal(rendered, salt) != stored.sealed:
        problem = f"{stored.item.ref} is not what it was when the plan was made"
        hint = "make the plan again, or run it from the revision it was made from"
        raise PlanError("plan.secret", problem, where=where, hint=hint)
    return msgspec.structs.replace(stored.item, body=rendered, digest=digest_bytes(rendered))
