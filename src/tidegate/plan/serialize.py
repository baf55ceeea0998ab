"""Plans as JSON documents, without secret values.

An object with a secret is replaced by a MAC with a key of the user, and every digest that covers it
is encrypted with that key, so that short values cannot be guessed without the key. To run a saved
plan, the objects are rendered again and passed in; a difference is an error.
"""

from __future__ import annotations

import hashlib

import msgspec

from tidegate.errors import Location, PlanError, sanitize
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import (
    PLAN_VERSION,
    ConcurrencyLimit,
    Edge,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    digest_step,
    is_confidential,
    public_digest,
    step_items,
)
from tidegate.plan.build.items import digest_body

DOCUMENT_KIND = "TidegatePlan"
NULL = b"null"
NO_MAC = "unsealed"


class _ItemDocument(msgspec.Struct, omit_defaults=True):
    item: PlanItem
    object: msgspec.Raw = msgspec.Raw(NULL)
    sealed: str = ""


class _StepDocument(msgspec.Struct):
    step: Step
    batches: tuple[tuple[_ItemDocument, ...], ...]


class _PlanHead(msgspec.Struct):
    kind: str = ""
    version: int = 0


class _PlanDocument(msgspec.Struct):
    """A saved plan."""

    kind: str
    version: int
    digest: str
    """The digest that may be shown."""
    units: tuple[PlannedUnit, ...]
    steps: tuple[_StepDocument, ...]
    edges: tuple[Edge, ...]
    slots: tuple[ConcurrencyLimit, ...] = ()
    veiled: str = ""
    """The digest of the plan, encrypted with the key and the nonce; empty without secrets."""
    nonce: str = ""


class _DigestCipher:
    """Encryption of digests with a key. Encrypting twice decrypts."""

    def __init__(self, key: bytes | None, nonce: str) -> None:
        self._key = key
        self.nonce = nonce

    @classmethod
    def for_plan(cls, plan: Plan, key: bytes | None) -> _DigestCipher:
        """Return the cipher of a plan, with its own nonce. A plan without secrets is not
        encrypted.
        """
        items = (item for step in plan.steps for item in step_items(step))
        if not any(map(is_confidential, items)):
            return cls(key, "")
        return cls(key, _keyed_digest(plan.digest.encode(), key, b"plan") if key else NO_MAC)

    def apply(self, digest: str, label: str) -> str:
        """Encrypt or decrypt a digest. Returns "" without a key."""
        if not self.nonce or not digest:
            return digest
        if self._key is None:
            return ""
        pad = _keyed_digest(label.encode(), self._key, self.nonce.encode())
        return f"{int(digest, 16) ^ int(pad, 16):0{len(digest)}x}"

    def mac(self, body: bytes) -> str:
        return _keyed_digest(body, self._key, self.nonce.encode()) if self._key else NO_MAC


def _keyed_digest(text: bytes, key: bytes, salt: bytes) -> str:
    inner = hashlib.blake2b(salt, digest_size=32, key=key).digest()
    return hashlib.blake2b(text, digest_size=16, key=inner).hexdigest()


def to_json(plan: Plan, key: bytes | None) -> bytes:
    """Return the plan as JSON, without secret values. `key` is known only to its user.

    Without a key, a document with secrets can be shown but not run.
    """
    cipher = _DigestCipher.for_plan(plan, key)
    document = _PlanDocument(
        DOCUMENT_KIND,
        PLAN_VERSION,
        public_digest(plan),
        tuple(_apply_to_unit(unit, cipher, f"unit {unit.id.tracking_id}") for unit in plan.units),
        tuple(_write_step(step, cipher) for step in plan.steps),
        plan.edges,
        plan.slots,
        cipher.apply(plan.digest, "plan") if cipher.nonce else "",
        cipher.nonce,
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def from_json(text: bytes, *, name: str, bodies: dict[Ref, bytes], key: bytes) -> Plan:
    """Parse a plan. `bodies` are freshly rendered, for the objects that the document does not
    contain.

    Raises PlanError if the plan was changed, or an object differs.
    """
    location = Location(name)
    document = _read_document(text, location)
    cipher = _DigestCipher(key, document.nonce)
    fragment = PlanFragment(
        units=tuple(
            _apply_to_unit(unit, cipher, f"unit {unit.id.tracking_id}") for unit in document.units
        ),
        steps=tuple(_read_step(step, cipher, bodies, location) for step in document.steps),
        edges=document.edges,
        slots=document.slots,
    )
    plan = Plan.from_fragment(fragment)
    if cipher.apply(document.veiled, "plan") not in ("", plan.digest) or (
        public_digest(plan) != document.digest
    ):
        problem = "the plan file was modified after it was saved"
        raise PlanError("plan.changed", problem, location=location, hint="save the plan again")
    return plan


def read_items(text: bytes, *, name: str) -> dict[Ref, PlanItem]:
    """Return the items of a saved plan. Items with a secret have no digest."""
    steps = _read_document(text, Location(name)).steps
    return {
        stored.item.ref: stored.item for step in steps for batch in step.batches for stored in batch
    }


def _apply_to_unit(unit: PlannedUnit, cipher: _DigestCipher, label: str) -> PlannedUnit:
    return msgspec.structs.replace(unit, digest=cipher.apply(unit.digest, label))


def _read_document(text: bytes, location: Location) -> _PlanDocument:
    """Parse the document without verifying it."""
    try:
        head = msgspec.json.decode(text, type=_PlanHead)
        if head.kind == DOCUMENT_KIND and head.version != PLAN_VERSION:
            problem = f"the plan has version {head.version}, but Tidegate reads {PLAN_VERSION}"
            raise PlanError("plan.version", problem, location=location, hint="save the plan again")
        if head.kind == DOCUMENT_KIND:
            return msgspec.json.decode(text, type=_PlanDocument)
        reason = f"its kind is `{sanitize(head.kind)}`"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = sanitize(str(error))
    raise PlanError("plan.document", f"not a saved plan: {reason}", location=location)


def _write_step(step: Step, cipher: _DigestCipher) -> _StepDocument:
    digest = cipher.apply(step.digest, f"step {step.id}")
    without_batches = msgspec.structs.replace(step, batches=(), digest=digest)
    return _StepDocument(
        without_batches,
        tuple(tuple(_write_item(item, cipher) for item in batch) for batch in step.batches),
    )


def _write_item(item: PlanItem, cipher: _DigestCipher) -> _ItemDocument:
    without_body = msgspec.structs.replace(item, body=b"")
    if not is_confidential(item):
        return _ItemDocument(without_body, msgspec.Raw(item.body or NULL))
    return _ItemDocument(
        msgspec.structs.replace(without_body, digest=""), sealed=cipher.mac(item.body)
    )


def _read_step(
    stored: _StepDocument, cipher: _DigestCipher, bodies: dict[Ref, bytes], location: Location
) -> Step:
    event = stored.step.hook_event
    batches = tuple(
        tuple(_with_digest(_read_item(item, cipher, bodies, location), event) for item in batch)
        for batch in stored.batches
    )
    digest = digest_step(batches, stored.step.expansion)
    return msgspec.structs.replace(stored.step, batches=batches, digest=digest)


def _with_digest(item: PlanItem, event: str) -> PlanItem:
    """Return the item with the digest of its body, whatever digest is stored."""
    digest = digest_body(item.body, item.hook, event) if item.body else ""
    return msgspec.structs.replace(item, digest=digest)


def _read_item(
    stored: _ItemDocument, cipher: _DigestCipher, bodies: dict[Ref, bytes], location: Location
) -> PlanItem:
    if not stored.sealed:
        text = bytes(stored.object)
        body = b"" if text == NULL else msgspec.json.format(text, indent=-1)
        return msgspec.structs.replace(stored.item, body=body)
    rendered = bodies.get(stored.item.ref, b"")
    if stored.sealed in (NO_MAC, "") or cipher.mac(rendered) != stored.sealed:
        problem = f"{stored.item.ref} changed after the plan was saved"
        hint = "save the plan again, or use the revision and the key that it was saved with"
        raise PlanError("plan.secret", problem, location=location, hint=hint)
    return msgspec.structs.replace(stored.item, body=rendered)
