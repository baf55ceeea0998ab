"""A plan: steps with their objects, and the edges between them.

A plan says what Git says, for one revision. It is immutable and holds bytes, so that ten thousand
objects cost what their text costs. What lives in the cluster is not in it.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.model.depends_on import AwaitedState
from tidegate.model.moment import Ms
from tidegate.model.objects import FieldPath, Ref, Spot
from tidegate.model.policy import Handling, Policy
from tidegate.model.secret import is_secret_kind
from tidegate.model.unit import Strength, UnitId

VERSION = 1
FINALIZER = "argocd.argoproj.io/hook-finalizer"
"""Keeps a hook until it is judged, though its time to live is over. The name is Argo CD's."""

TESTING = "test"
"""The phase in which what a unit has brought is tried out."""


class Deed(StrEnum):
    """What a step does to an object."""

    APPLY = "apply"
    CREATE = "create"
    """It is made where it is not there, and left alone where it is."""
    DELETE = "delete"
    LEAVE = "leave"
    """It is the unit's, and its text asks for being left alone."""
    AWAIT = "await"
    """It is somebody else's: it is waited for, and never written."""
    AWAIT_PRESENT = "await present"
    """The same, and it is enough that it is there."""
    AWAIT_ABSENT = "await absent"
    """The same, until it is gone."""
    SKIP = "skip"
    """Nobody serves its kind, and it only says what a unit is: it is passed over."""


AWAITED = frozenset({Deed.AWAIT, Deed.AWAIT_PRESENT, Deed.AWAIT_ABSENT})


class HookPolicy(StrEnum):
    """When a hook is deleted."""

    BEFORE_CREATION = "BeforeHookCreation"
    SUCCEEDED = "HookSucceeded"
    FAILED = "HookFailed"


class Item(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One object of a step, and what its own text says about waiting for it.

    `budget`: how long it may take by its own word. `expires`: it removes itself when it is
    finished. `suspends`: Git itself asks for the pause. `recreates`: where an immutable field
    differs, it is deleted and made again. `hook`: it is run, not kept; when it is deleted.
    `generates`: its name is completed when the rollout begins. `asks`: it is deleted only if
    somebody agrees. `releases`: finalizers that are taken off before it is deleted, as what they
    guard is gone. `gates`: what comes behind its step waits for it. `hidden`: fields with values
    that must not be shown, though it is no Secret.
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
    releases: tuple[str, ...] = ()
    gates: bool = True
    handling: Handling = Handling()
    hidden: tuple[FieldPath, ...] = ()


class Barrier(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Holds a step for a reason: until a moment, or where that is 0 until somebody approves."""

    reason: str
    sentence: str
    until: Ms = Ms(0)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one unit that start together, as batches: one after another, each at once.

    `last`: nothing of its unit comes behind it, and whoever does not wait for the last one need not
    wait for more than its hooks. A step that `rescues` has its turn when another of
    its unit failed and all of them are at rest. A step that `expands` has no objects: it yields
    further steps when its turn comes, and passes when they have. `barrier`: what else holds it.
    `ground`: the rest of its unit stands on it, whatever the unit waits for at its end.
    `part`: its number, where objects of one wave or stage come one after another. A step without
    any objects is a joint: units that another one brings begin behind it, or end before it.
    """

    id: str
    unit: UnitId
    digest: str
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    batches: tuple[tuple[Item, ...], ...] = ()
    last: bool = False
    rescues: bool = False
    expands: str = ""
    barrier: Barrier | None = None
    ground: bool = False

    @property
    def is_joint(self) -> bool:
        return not (self.batches or self.expands or self.barrier)

    @property
    def tests(self) -> bool:
        """Whether it tries out what its unit has brought; that is entered as brought before."""
        return self.phase == TESTING

    @property
    def event(self) -> str:
        """What its hooks are run for: a phase, or an event of their own."""
        return self.stage.partition("/")[0] or self.phase

    @property
    def spot(self) -> tuple[str, int, str]:
        """The wave or the stage of its unit that it is a part of."""
        return self.phase, self.wave, self.stage


def is_confidential(item: Item) -> bool:
    """Whether it holds a value that must not be shown, nor be guessed from a digest."""
    return bool(item.body) and (bool(item.hidden) or is_secret_kind(item.ref.kind.name))


def items_of(step: Step) -> list[Item]:
    """All objects of a step, in its order."""
    return [item for batch in step.batches for item in batch]


def own_items_of(step: Step) -> list[Item]:
    """Those that are its unit's, and not only awaited."""
    return [item for item in items_of(step) if item.deed not in AWAITED]


class Because(StrEnum):
    """Why one step comes after another."""

    WAVE = "wave"
    PHASE = "phase"
    STAGE = "stage"
    DEPENDS_ON = "dependsOn"
    PARENT = "parent"
    ROLLOUT_STEP = "rollout step"
    REFERENCE = "reference"


class Edge(msgspec.Struct, frozen=True, order=True, gc=False):
    """`after` starts when the gate of `before` has opened; both are steps, by their ids.

    `where`: the place that says so, if one does.
    """

    before: str
    after: str
    because: Because = Because.WAVE
    strength: Strength = Strength.HARD
    where: str = ""


End: TypeAlias = UnitId | Spot | str
"""A unit, an object, or a step by its id."""


class Precedence(msgspec.Struct, frozen=True, kw_only=True):
    """`after` comes after `before`, whatever they are: edges are made of it.

    A unit begins with its first step and is done with its last one.
    """

    before: End
    after: End
    because: Because = Because.DEPENDS_ON
    strength: Strength = Strength.HARD
    where: str = ""


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """`after` comes when an object that nobody in the plan brings is as it is asked to be."""

    ref: Ref
    state: AwaitedState
    after: Spot


class PlannedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps of one unit share.

    `digest` covers what Git says of it. `source`: where that lies, without a revision. `cluster`:
    where its objects go. `group`: it takes one of the group's slots while it is under way.
    `parent`: who brings it.
    """

    id: UnitId
    digest: str = ""
    source: str = ""
    cluster: str = ""
    policy: Policy = Policy()
    group: str = ""
    parent: UnitId | None = None


class Slots(msgspec.Struct, frozen=True, gc=False):
    """So many units of a group may be under way at once; with none, somebody must approve each.

    `rests`: one that has failed, or waits for its next try or for others, is not under way.
    """

    group: str
    limit: int
    rests: bool = False


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """What a step expands to. Its edges may begin or end at steps of the plan around it."""

    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    slots: tuple[Slots, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one revision in an order that respects the edges."""

    digest: str
    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    slots: tuple[Slots, ...] = ()
    version: int = VERSION

    @classmethod
    def of(cls, fragment: Fragment) -> Plan:
        return cls(
            digest=digest_plan(fragment),
            units=fragment.units,
            steps=fragment.steps,
            edges=fragment.edges,
            slots=fragment.slots,
        )


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
    """Covers units, steps, edges and slots."""
    heads = [msgspec.structs.replace(step, batches=()) for step in fragment.steps]
    return digest_bytes(
        msgspec.json.encode(fragment.units),
        msgspec.json.encode(heads),
        msgspec.json.encode(sorted(fragment.edges)),
        msgspec.json.encode(fragment.slots),
    )


def public_digest(plan: Plan) -> str:
    """A name for a plan that may be shown: nobody can try out values of its secrets on it.

    It is the plan's own digest where there are none, and else covers all but their texts.
    """
    confidential = {step.id for step in plan.steps if any(map(is_confidential, items_of(step)))}
    if not confidential:
        return plan.digest
    steps = tuple(_without_secrets(one) if one.id in confidential else one for one in plan.steps)
    units = tuple(msgspec.structs.replace(unit, digest="") for unit in plan.units)
    return digest_plan(Fragment(units=units, steps=steps, edges=plan.edges, slots=plan.slots))


def _without_secrets(step: Step) -> Step:
    batches = tuple(
        tuple(
            msgspec.structs.replace(item, digest="") if is_confidential(item) else item
            for item in batch
        )
        for batch in step.batches
    )
    return msgspec.structs.replace(step, digest=digest_step(batches, step.expands))
