"""A plan as a document: JSON out and in, with what is secret left out.

The text of a Secret is replaced by a digest that is salted with the plan's own. Whoever runs a
saved plan renders again and hands the bodies in; a difference is refused.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.errors import Place, PlanError, foreign
from tidegate.model.objects import Ref
from tidegate.model.plan import (
    VERSION,
    Edge,
    Fragment,
    Item,
    Plan,
    PlannedUnit,
    Slots,
    Step,
    digest_plan,
    digest_step,
)
from tidegate.plan.items import digest_text

KIND = "TidegatePlan"
SECRET = ("", "Secret")
NOTHING = b"null"


class _Item(msgspec.Struct, omit_defaults=True):
    item: Item
    object: msgspec.Raw = msgspec.Raw(NOTHING)
    sealed: str = ""


class _Step(msgspec.Struct):
    step: Step
    batches: tuple[tuple[_Item, ...], ...]


class _PlanHead(msgspec.Struct):
    kind: str = ""
    version: int = 0


class _Document(msgspec.Struct):
    kind: str
    version: int
    digest: str
    units: tuple[PlannedUnit, ...]
    steps: tuple[_Step, ...]
    edges: tuple[Edge, ...]
    slots: tuple[Slots, ...] = ()


def to_json(plan: Plan) -> bytes:
    """The plan without a secret in it."""
    steps = tuple(
        _Step(
            msgspec.structs.replace(step, batches=()),
            tuple(tuple(_write(item, plan.digest) for item in batch) for batch in step.batches),
        )
        for step in plan.steps
    )
    document = _Document(KIND, VERSION, plan.digest, plan.units, steps, plan.edges, plan.slots)
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def from_json(text: bytes, *, name: str, bodies: dict[Ref, bytes]) -> Plan:
    """Read a plan. `bodies` are those rendered now, for the objects that a plan does not hold."""
    where = Place(name)
    document = _read_document(text, where)
    steps = tuple(_read_step(step, document.digest, bodies, where) for step in document.steps)
    fragment = Fragment(
        units=document.units, steps=steps, edges=document.edges, slots=document.slots
    )
    if digest_plan(fragment) != document.digest:
        problem = "the plan was changed after it was made"
        raise PlanError("plan.changed", problem, where=where, hint="make the plan again")
    return Plan.of(fragment)


def _read_document(text: bytes, where: Place) -> _Document:
    """The document before anything in it is believed."""
    try:
        head = msgspec.json.decode(text, type=_PlanHead)
        if head.kind == KIND and head.version != VERSION:
            problem = f"this plan has version {head.version}, and {VERSION} is read here"
            raise PlanError("plan.version", problem, where=where, hint="make the plan again")
        if head.kind == KIND:
            return msgspec.json.decode(text, type=_Document)
        why = f"its kind is `{foreign(head.kind)}`"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = foreign(str(error))
    raise PlanError("plan.document", f"this is not a saved plan: {why}", where=where)


def _write(item: Item, salt: str) -> _Item:
    bare = msgspec.structs.replace(item, body=b"")
    if not item.body or (item.ref.kind.group, item.ref.kind.name) != SECRET:
        return _Item(bare, msgspec.Raw(item.body or NOTHING))
    hidden = msgspec.structs.replace(bare, digest="")
    return _Item(hidden, sealed=_seal(item.body, salt))


def _seal(body: bytes, salt: str) -> str:
    return hashlib.blake2b(body, digest_size=16, key=salt.encode()[:64]).hexdigest()


def _read_step(stored: _Step, salt: str, bodies: dict[Ref, bytes], where: Place) -> Step:
    phase = stored.step.phase
    batches = tuple(
        tuple(_digested(_read(item, salt, bodies, where), phase) for item in batch)
        for batch in stored.batches
    )
    digest = digest_step(batches, stored.step.expands)
    return msgspec.structs.replace(stored.step, batches=batches, digest=digest)


def _digested(item: Item, phase: str) -> Item:
    """The item with the digest that its text has, whatever is stored."""
    digest = digest_text(item.body, item.hook, phase) if item.body else ""
    return msgspec.structs.replace(item, digest=digest)


def _read(stored: _Item, salt: str, bodies: dict[Ref, bytes], where: Place) -> Item:
    if not stored.sealed:
        text = bytes(stored.object)
        body = b"" if text == NOTHING else msgspec.json.format(text, indent=-1)
        return msgspec.structs.replace(stored.item, body=body)
    rendered = bodies.get(stored.item.ref, b"")
    if _seal(rendered, salt) != stored.sealed:
        problem = f"{stored.item.ref} is not what it was when the plan was made"
        hint = "make the plan again, or run it from the revision it was made from"
        raise PlanError("plan.secret", problem, where=where, hint=hint)
    return msgspec.structs.replace(stored.item, body=rendered)
