"""A plan: steps with their objects, and the edges between them.

A plan describes the desired state of one revision. It is immutable and holds bytes, so that ten
thousand objects cost only the size of their manifests. It contains no live state.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.model.k8s.objects import ClusterRef, FieldPath, Ref
from tidegate.model.k8s.secret import is_secret_kind
from tidegate.model.times import Ms
from tidegate.model.units.depends_on import AwaitedState
from tidegate.model.units.policy import ObjectOptions, Policy
from tidegate.model.units.unit import Strength, UnitId

PLAN_VERSION = 2
HOOK_FINALIZER = "argocd.argoproj.io/hook-finalizer"
"""Argo CD's finalizer that keeps a hook until its health is known, even if its TTL has expired."""
TEST_PHASE = "test"
"""The phase in which the tests of a release run."""


class ItemAction(StrEnum):
    """The action of a step on an object."""

    APPLY = "apply"
    CREATE = "create"
    """Create the object if it is missing, and never change it."""
    DELETE = "delete"
    IGNORE = "leave"
    """The object belongs to the unit, but opts out of management."""
    AWAIT = "await"
    """The object belongs to another owner: wait until it is ready, and never write it."""
    AWAIT_PRESENT = "await present"
    """Wait until the object of another owner exists."""
    AWAIT_ABSENT = "await absent"
    """Wait until the object of another owner is deleted."""
    SKIP = "skip"
    """Skip the object: it only defines a unit, and the cluster does not serve its kind."""


AWAIT_ACTIONS = frozenset({ItemAction.AWAIT, ItemAction.AWAIT_PRESENT, ItemAction.AWAIT_ABSENT})


class HookPolicy(StrEnum):
    """When a hook is deleted."""

    BEFORE_CREATION = "BeforeHookCreation"
    SUCCEEDED = "HookSucceeded"
    FAILED = "HookFailed"


class PlanItem(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One object of a step, with the settings of its manifest for gates."""

    ref: Ref
    body: bytes = b""
    digest: str = ""
    action: ItemAction = ItemAction.APPLY
    origin: str = ""
    readiness_timeout: Ms = Ms(0)
    """How long the object may take to become ready, by its own spec."""
    expires: bool = False
    """Whether it deletes itself when it is finished."""
    is_suspended: bool = False
    """Whether Git itself pauses the object."""
    hook: tuple[HookPolicy, ...] | None = None
    """When the hook is deleted. None if the object is not a hook."""
    generates_name: bool = False
    """Whether its name is generated when the rollout starts."""
    requires_confirmation: bool = False
    """Whether its deletion requires a confirmation."""
    removed_finalizers: tuple[str, ...] = ()
    """Finalizers to remove before its deletion, because the guarded resources are gone."""
    is_gating: bool = True
    """Whether the steps after its step wait for it."""
    options: ObjectOptions = ObjectOptions()
    hidden_fields: tuple[FieldPath, ...] = ()
    """Fields with values that must not be shown, although the object is not a Secret."""


class Barrier(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A reason to delay a step: until a time, or with 0 until it is approved."""

    reason: str
    message: str
    until: Ms = Ms(0)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one unit that start together, in batches that run one after another.

    A step without objects, expansion and barrier is a placeholder: child units start after it, or
    end before it.
    """

    id: str
    unit: UnitId
    digest: str
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    """Its number, if the objects of one wave or stage are split into several steps."""
    batches: tuple[tuple[PlanItem, ...], ...] = ()
    is_last: bool = False
    """Whether it is the last step of its unit.

    If the last step is not gated, only its hooks are awaited.
    """
    only_on_failure: bool = False
    """Whether it runs only after a step of its unit has failed and all of them are final."""
    expansion: str = ""
    """The expansion that yields further steps. The step passes when they have passed."""
    barrier: Barrier | None = None
    """A further condition to start."""
    is_prerequisite: bool = False
    """Whether the rest of its unit depends on it, whatever the gates of the unit are."""

    @property
    def is_placeholder(self) -> bool:
        """Whether the step has no objects, no expansion and no barrier."""
        return not (self.batches or self.expansion or self.barrier)

    @property
    def only_creates(self) -> bool:
        """Whether it only creates what is missing: the Namespace of `CreateNamespace=true`.

        Argo CD writes that ahead of the first wave: `Sync` of
        gitops-engine/pkg/sync/sync_context.go in 3.5.
        """
        actions = {item.action for batch in self.batches for item in batch}
        return actions == {ItemAction.CREATE}

    @property
    def is_test(self) -> bool:
        """Whether it runs the tests of a release. The revision is recorded as deployed before."""
        return self.phase == TEST_PHASE

    @property
    def hook_event(self) -> str:
        """The event that its hooks run for: a stage or a phase."""
        return self.stage.partition("/")[0] or self.phase

    @property
    def wave_key(self) -> tuple[str, int, str]:
        """The phase, wave and stage that it is a part of."""
        return self.phase, self.wave, self.stage


def is_confidential(item: PlanItem) -> bool:
    """Return whether an item holds a value that must not be shown, nor be guessed from a digest."""
    return bool(item.body) and (bool(item.hidden_fields) or is_secret_kind(item.ref.kind.name))


def step_items(step: Step) -> list[PlanItem]:
    """Return all items of a step in order."""
    return [item for batch in step.batches for item in batch]


def managed_items(step: Step) -> list[PlanItem]:
    """Return the items of a step that belong to its unit, without those that are only awaited."""
    return [item for item in step_items(step) if item.action not in AWAIT_ACTIONS]


class EdgeReason(StrEnum):
    """Why one step comes after another."""

    WAVE = "wave"
    PHASE = "phase"
    STAGE = "stage"
    DEPENDS_ON = "dependsOn"
    PARENT = "parent"
    ROLLOUT_STEP = "rollout step"
    REFERENCE = "reference"


class Edge(msgspec.Struct, frozen=True, order=True, gc=False):
    """An edge between two steps by id: `after` starts when the gate of `before` has opened."""

    before: str
    after: str
    reason: EdgeReason = EdgeReason.WAVE
    strength: Strength = Strength.HARD
    location: str = ""
    """The location that declares the edge, if any."""


PrecedenceEnd: TypeAlias = UnitId | ClusterRef | str
"""A unit, an object, or a step by its id."""


class Precedence(msgspec.Struct, frozen=True, kw_only=True):
    """An order of two units, objects or steps, from which edges are made.

    A unit starts with its first step and is done with its last one.
    """

    before: PrecedenceEnd
    after: PrecedenceEnd
    reason: EdgeReason = EdgeReason.DEPENDS_ON
    strength: Strength = Strength.HARD
    location: str = ""


class ExternalDependency(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency on an object outside the plan, which must reach a state before `dependent`."""

    ref: Ref
    state: AwaitedState
    dependent: ClusterRef


class PlannedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """The common properties of the steps of one unit."""

    id: UnitId
    digest: str = ""
    """Digest of its desired state in Git."""
    source: str = ""
    """The location of its source, without a revision."""
    cluster: str = ""
    """The cluster of its objects."""
    policy: Policy = Policy()
    group: str = ""
    """The group whose concurrency limit it counts against while it runs."""
    parent: UnitId | None = None
    """The unit that creates it."""


class ConcurrencyLimit(msgspec.Struct, frozen=True, gc=False):
    """The number of units of a group that may run at once. With 0, each unit needs an approval."""

    group: str
    limit: int
    frees_idle_slots: bool = False
    """Whether a unit that has failed, or waits for a retry or for others, does not count."""


class PlanFragment(msgspec.Struct, frozen=True, kw_only=True):
    """A partial plan that a step expands to. Its edges may refer to steps of the enclosing plan."""

    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    slots: tuple[ConcurrencyLimit, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one revision in an order that respects the edges."""

    digest: str
    units: tuple[PlannedUnit, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    slots: tuple[ConcurrencyLimit, ...] = ()
    version: int = PLAN_VERSION

    @classmethod
    def from_fragment(cls, fragment: PlanFragment) -> Plan:
        return cls(
            digest=digest_plan(fragment),
            units=fragment.units,
            steps=fragment.steps,
            edges=fragment.edges,
            slots=fragment.slots,
        )


def digest_bytes(*parts: bytes) -> str:
    """Return a digest of exactly these parts in this order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def digest_step(batches: tuple[tuple[PlanItem, ...], ...], expands: str = "") -> str:
    """Return a digest of the actions, objects, options and batches of a step.

    Origins in files are not covered.
    """
    parts = [expands.encode()]
    for batch in batches:
        heads = (msgspec.structs.replace(item, body=b"", origin="") for item in batch)
        parts += map(msgspec.json.encode, heads)
        parts.append(b"")
    return digest_bytes(*parts)


def digest_plan(fragment: PlanFragment) -> str:
    """Return a digest of units, steps, edges and concurrency limits."""
    heads = [msgspec.structs.replace(step, batches=()) for step in fragment.steps]
    return digest_bytes(
        msgspec.json.encode(fragment.units),
        msgspec.json.encode(heads),
        msgspec.json.encode(sorted(fragment.edges)),
        msgspec.json.encode(fragment.slots),
    )


def public_digest(plan: Plan) -> str:
    """Return a digest of a plan that may be shown: secret values cannot be guessed from it.

    Without secrets it is the digest of the plan, otherwise it covers all other manifests.
    """
    confidential = {step.id for step in plan.steps if any(map(is_confidential, step_items(step)))}
    if not confidential:
        return plan.digest
    steps = tuple(
        _without_secrets(step) if step.id in confidential else step for step in plan.steps
    )
    units = tuple(msgspec.structs.replace(unit, digest="") for unit in plan.units)
    return digest_plan(PlanFragment(units=units, steps=steps, edges=plan.edges, slots=plan.slots))


def _without_secrets(step: Step) -> Step:
    batches = tuple(
        tuple(
            msgspec.structs.replace(item, digest="") if is_confidential(item) else item
            for item in batch
        )
        for batch in step.batches
    )
    return msgspec.structs.replace(step, digest=digest_step(batches, step.expansion))
