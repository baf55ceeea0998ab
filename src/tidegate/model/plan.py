"""A plan: steps with their objects, and the edges between them.

A plan says what Git says, for one revision. It is immutable and holds bytes, so that ten thousand
objects cost what their text costs. What lives in the cluster is not in it.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from tidegate.model.ignoring import Ignored
from tidegate.model.moment import Ms
from tidegate.model.objects import Propagation, Ref

VERSION = 1
FINALIZER = "argocd.argoproj.io/hook-finalizer"
"""Keeps a hook until it is judged, though its time to live is over. The name is Argo CD's."""


class Deed(StrEnum):
    """What a step does to an object."""

    APPLY = "apply"
    CREATE = "create"
    """It is made where it is not there, and left alone where it is."""
    DELETE = "delete"


class HookPolicy(StrEnum):
    """When a hook is deleted."""

    BEFORE_CREATION = "BeforeHookCreation"
    SUCCEEDED = "HookSucceeded"
    FAILED = "HookFailed"


class Consent(StrEnum):
    """Whether something may be done to an object."""

    YES = "yes"
    NO = "no"
    ASK = "ask"


class Handling(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How an object wants to be written, pruned and deleted.

    `replaces`: put in place of what is there, not merged into it. `forces`: deleted and made again
    where it cannot be changed. `checks`: validated before. `waits_for_kind`: its kind may come
    later. `last`: pruned after everything else. `propagation`: what becomes of what it owns when it
    is pruned or deleted.
    """

    replaces: bool = False
    forces: bool = False
    checks: bool = True
    waits_for_kind: bool = False
    prune: Consent = Consent.YES
    delete: Consent = Consent.YES
    last: bool = False
    propagation: Propagation = Propagation.FOREGROUND


class Item(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One object of a step, and what its own text says about waiting for it.

    `budget`: how long it may take by its own word. `expires`: it removes itself when it is
    finished. `suspends`: Git itself asks for the pause. `recreates`: where an immutable field
    differs, it is deleted and made again. `hook`: it is run, not kept; when it is deleted.
    `generates`: its name is completed when the rollout begins. `asks`: it is deleted only if
    somebody agrees.
    """

    ref: Ref
    body: bytes = b""
    digest: str = ""
    deed: Deed = Deed.APPLY
    origin: str = ""
    budget: Ms = Ms(0)
    expires: bool = False
    suspends: bool = False
    recreates: bool = False
    hook: tuple[HookPolicy, ...] | None = None
    generates: bool = False
    asks: bool = False
    handling: Handling = Handling()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one unit that start together, as batches: one after another, each at once.

    `last`: nothing of its unit comes behind it, and whoever does not wait for the last one need not
    wait for more than its hooks. A step that `rescues` has its turn when another of
    its unit failed and all of them are at rest. A step that `expands` has no objects: it yields
    further steps when its turn comes, and passes when they have.
    """

    id: str
    unit: str
    digest: str
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    batches: tuple[tuple[Item, ...], ...] = ()
    last: bool = False
    rescues: bool = False
    expands: str = ""


def items_of(step: Step) -> list[Item]:
    """All objects of a step, in its order."""
    return [item for batch in step.batches for item in batch]


class Because(StrEnum):
    """Why one step comes after another."""

    WAVE = "wave"
    PHASE = "phase"
    STAGE = "stage"
    DEPENDS_ON = "dependsOn"
    PARENT = "parent"
    ROLLOUT_STEP = "rollout step"
    REFERENCE = "reference"


class Strength(StrEnum):
    HARD = "hard"
    """Somebody declared it."""
    SOFT = "soft"
    """It was inferred."""


class Edge(msgspec.Struct, frozen=True, order=True, gc=False):
    """`after` starts when the gate of `before` has opened."""

    before: str
    after: str
    because: Because = Because.WAVE
    strength: Strength = Strength.HARD


class PlannedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps of one unit share.

    `digest` covers what Git says of it. `manager` owns the fields it applies. `rules` names how
    its objects are judged. `options` are its sync options, in Argo CD's words. `ignores`: fields
    of its objects that are no difference.
    """

    name: str
    digest: str = ""
    cluster: str = ""
    manager: str = "tidegate"
    rules: str = "argo"
    options: tuple[str, ...] = ()
    ignores: tuple[Ignored, ...] = ()


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """What a step expands to."""

    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one revision in an order that respects the edges."""

    digest: str
    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    version: int = VERSION

    @classmethod
    def of(cls, fragment: Fragment) -> Plan:
        units, steps, edges = fragment.units, fragment.steps, fragment.edges
        return cls(digest=digest_plan(fragment), units=units, steps=steps, edges=edges)


def digest_bytes(*parts: bytes) -> str:
    """A short name for exactly these bytes in this order."""
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()


def digest_step(batches: tuple[tuple[Item, ...], ...], expands: str = "") -> str:
    """Covers what is done to which objects, how, and in which batches; not where they stand."""
    told = [expands.encode()]
    for batch in batches:
        heads = (msgspec.structs.replace(item, body=b"", origin="") for item in batch)
        told += map(msgspec.json.encode, heads)
        told.append(b"")
    return digest_bytes(*told)


def digest_plan(fragment: Fragment) -> str:
    """Covers units, steps and edges."""
    heads = [msgspec.structs.replace(step, batches=()) for step in fragment.steps]
    return digest_bytes(
        msgspec.json.encode(fragment.units),
        msgspec.json.encode(heads),
        msgspec.json.encode(sorted(fragment.edges)),
    )
