"""A plan as a document: JSON out and in, with what is secret left out.

An object with a secret in it is replaced by a digest with a key of the user's own, and where there
is one, every digest that covers it is veiled with that key: nobody else can try out short values.
Whoever runs a saved plan renders again and hands the bodies in; a difference is refused.
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
    digest_step,
    is_confidential,
    items_of,
    public_digest,
)
from tidegate.plan.items import digest_text

KIND = "TidegatePlan"
NOTHING = b"null"
UNSEALED = "unsealed"


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
    """`digest` is what may be shown; `veiled` is the plan's own, behind a veil with a `nonce`."""

    kind: str
    version: int
    digest: str
    units: tuple[PlannedUnit, ...]
    steps: tuple[_Step, ...]
    edges: tuple[Edge, ...]
    slots: tuple[Slots, ...] = ()
    veiled: str = ""
    nonce: str = ""


class _Veil:
    """Makes digests unreadable without the key, and readable again with it."""

    def __init__(self, key: bytes | None, nonce: str) -> None:
        self._key = key
        self.nonce = nonce

    @classmethod
    def over(cls, plan: Plan, key: bytes | None) -> _Veil:
        """No two plans are veiled alike; one without secrets is not veiled."""
        items = (item for step in plan.steps for item in items_of(step))
        if not any(map(is_confidential, items)):
            return cls(key, "")
        return cls(key, _keyed(plan.digest.encode(), key, b"plan") if key else UNSEALED)

    def turn(self, digest: str, what: str) -> str:
        """Veils what is not, and unveils what is."""
        if not self.nonce or not digest:
            return digest
        if self._key is None:
            return ""
        pad = _keyed(what.encode(), self._key, self.nonce.encode())
        return f"{int(digest, 16) ^ int(pad, 16):0{len(digest)}x}"

    def seal(self, body: bytes) -> str:
        return _keyed(body, self._key, self.nonce.encode()) if self._key else UNSEALED


def _keyed(text: bytes, key: bytes, salt: bytes) -> str:
    inner = hashlib.blake2b(salt, digest_size=32, key=key).digest()
    return hashlib.blake2b(text, digest_size=16, key=inner).hexdigest()


def to_json(plan: Plan, key: bytes | None) -> bytes:
    """The plan without a secret in it. `key`: what only its user has.

    Who has none gets a document to look at: one with secrets cannot be run.
    """
    veil = _Veil.over(plan, key)
    document = _Document(
        KIND,
        VERSION,
        public_digest(plan),
        tuple(_turn(unit, veil, f"unit {unit.id.mark}") for unit in plan.units),
        tuple(_write_step(step, veil) for step in plan.steps),
        plan.edges,
        plan.slots,
        veil.turn(plan.digest, "plan") if veil.nonce else "",
        veil.nonce,
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def from_json(text: bytes, *, name: str, bodies: dict[Ref, bytes], key: bytes) -> Plan:
    """Read a plan. `bodies` are those rendered now, for the objects that a plan does not hold."""
    where = Place(name)
    document = _read_document(text, where)
    veil = _Veil(key, document.nonce)
    fragment = Fragment(
        units=tuple(_turn(unit, veil, f"unit {unit.id.mark}") for unit in document.units),
        steps=tuple(_read_step(step, veil, bodies, where) for step in document.steps),
        edges=document.edges,
        slots=document.slots,
    )
    plan = Plan.of(fragment)
    if veil.turn(document.veiled, "plan") not in ("", plan.digest) or (
        public_digest(plan) != document.digest
    ):
        problem = "the plan was changed after it was made"
        raise PlanError("plan.changed", problem, where=where, hint="make the plan again")
    return plan


def read_items(text: bytes, *, name: str) -> dict[Ref, Item]:
    """The objects of a plan as they are written down; those with a secret have no digest."""
    steps = _read_document(text, Place(name)).steps
    return {one.item.ref: one.item for step in steps for batch in step.batches for one in batch}


def _turn(unit: PlannedUnit, veil: _Veil, what: str) -> PlannedUnit:
    return msgspec.structs.replace(unit, digest=veil.turn(unit.digest, what))


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


def _write_step(step: Step, veil: _Veil) -> _Step:
    digest = veil.turn(step.digest, f"step {step.id}")
    bare = msgspec.structs.replace(step, batches=(), digest=digest)
    return _Step(bare, tuple(tuple(_write(item, veil) for item in one) for one in step.batches))


def _write(item: Item, veil: _Veil) -> _Item:
    bare = msgspec.structs.replace(item, body=b"")
    if not is_confidential(item):
        return _Item(bare, msgspec.Raw(item.body or NOTHING))
    return _Item(msgspec.structs.replace(bare, digest=""), sealed=veil.seal(item.body))


def _read_step(stored: _Step, veil: _Veil, bodies: dict[Ref, bytes], where: Place) -> Step:
    event = stored.step.event
    batches = tuple(
        tuple(_digested(_read(item, veil, bodies, where), event) for item in batch)
        for batch in stored.batches
    )
    digest = digest_step(batches, stored.step.expands)
    return msgspec.structs.replace(stored.step, batches=batches, digest=digest)


def _digested(item: Item, event: str) -> Item:
    """The item with the digest that its text has, whatever is stored."""
    digest = digest_text(item.body, item.hook, event) if item.body else ""
    return msgspec.structs.replace(item, digest=digest)


def _read(stored: _Item, veil: _Veil, bodies: dict[Ref, bytes], where: Place) -> Item:
    if not stored.sealed:
        text = bytes(stored.object)
        body = b"" if text == NOTHING else msgspec.json.format(text, indent=-1)
        return msgspec.structs.replace(stored.item, body=body)
    rendered = bodies.get(stored.item.ref, b"")
    if stored.sealed in (UNSEALED, "") or veil.seal(rendered) != stored.sealed:
        problem = f"{stored.item.ref} is not what it was when the plan was made"
        hint = "make the plan again, or run it with the revision and the key it was made with"
        raise PlanError("plan.secret", problem, where=where, hint=hint)
    return msgspec.structs.replace(stored.item, body=rendered)
