"""Semantics of a rollout as a table of values.

The engine reads the values, never the names. `docs/concepts/semantics.md` explains the differences.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.times import MINUTE, SECOND, Ms


class OnDisappear(StrEnum):
    """Reaction when an object that a gate waits for disappears, or is replaced by another one."""

    FAIL = "fail"
    REAPPLY = "reapply"


class ChildGates(StrEnum):
    """Whether a unit waits for its child units."""

    ALWAYS = "always"
    """The steps after their wave wait for them."""
    GATES = "gates"
    """The unit waits for the children that its gates name."""
    NEVER = "never"


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed step is retried, and after which delays."""

    limit: int
    first: Ms
    factor: int
    cap: Ms
    whole: bool = False
    """Whether the whole unit starts again, not only the failed step."""
    gates: bool = False
    """Whether a failed gate is retried too. If not, only rejected writes are retried."""
    refreshes: bool = False
    """Whether a retry uses the current revision of the source."""
    rescues: bool = False
    """Whether the remediation runs before each retry."""
    rescues_last: bool = True
    """Whether the remediation also runs after the last attempt."""
    counts_on: bool = False
    """Whether the count continues when the desired state changes."""

    def delay(self, attempt: int) -> Ms:
        """Return the delay before an attempt. The first retry is number 1."""
        return Ms(min(self.cap, self.first * self.factor ** (attempt - 1)))


class Semantics(msgspec.Struct, frozen=True, kw_only=True):
    """The values that `decide` reads."""

    name: str
    fenced: bool
    """Whether a verdict counts only if it refers to the applied version of the object."""
    pause: Ms
    """The minimum time between the last write of a step and the next step of its unit."""
    gates_last: bool
    """Whether the last step of a unit is gated too."""
    look_after: Ms
    """The time between a change and the evaluation of gates."""
    look_every: Ms
    """The interval at which gates are evaluated."""
    dependency_every: Ms
    """The interval at which a unit checks its dependencies."""
    falls_back: bool
    """Whether kinds without a health rule are judged by the generic rule."""
    settle: Ms
    """How long Degraded must last until it counts."""
    proof: Ms
    """How long to wait for a status of kinds that cannot prove which version it refers to."""
    deadline: Ms
    """The time limit of a gate, unless its objects request more; 0 is unlimited."""
    exact: bool
    """Whether objects cannot extend `deadline`."""
    ground_deadline: Ms
    """Replaces `deadline` for prerequisites of the rest of a unit, unless 0."""
    ground_every: Ms
    """Replaces `look_every` for prerequisites of the rest of a unit, unless 0."""
    suspended: Ms
    """How long an object may be Suspended."""
    passes_paused: bool
    """Whether an object that Git itself pauses does not block a gate."""
    quiet: Ms
    """How long a gate may wait without any change; 0 is unlimited."""
    vanishing: OnDisappear
    batch_stops: bool
    """Whether a rejected write keeps later batches of its step from starting."""
    patient: bool
    """Whether a failed object fails a gate only after the others have settled."""
    awaits_consent: bool
    """Whether a step waits for the confirmation of deletions.

    If not, unconfirmed objects are skipped.
    """
    children: ChildGates
    """Whether a unit waits for its child units."""
    retry: Retry
    forbears: bool = False
    """Whether a Degraded object of the last step, except a hook, may still become healthy."""
    workers: int = 0
    """The number of units of one controller that run at once; 0 is unlimited."""
    heals: bool = False
    """Whether drift is corrected in units that request it."""
    heal_start: Ms = Ms(0)
    """The delay of the first attempt after the last sync."""
    heal_first: Ms = Ms(0)
    """The delay of the second attempt. It grows by `heal_factor` up to `heal_cap`."""
    heal_factor: int = 1
    heal_cap: Ms = Ms(0)
    refresh_every: Ms = Ms(0)
    """The interval at which a unit checks for a new revision after its rollout; 0 is never."""
    refresh_jitter: Ms = Ms(0)
    """The maximum jitter of the refresh interval."""

    def heal_delay(self, attempt: int) -> Ms:
        """Return the delay between the last sync and an attempt to heal.

        The first attempt is number 0.
        """
        if not attempt:
            return self.heal_start
        return Ms(min(self.heal_cap, self.heal_first * self.heal_factor ** (attempt - 1)))


ZERO = Ms(0)
UNLIMITED = 1_000_000_000
"""A number of retries that is never reached."""
TIDEGATE = Semantics(
    name="tidegate",
    fenced=True,
    pause=ZERO,
    gates_last=True,
    look_after=ZERO,
    look_every=ZERO,
    dependency_every=ZERO,
    falls_back=True,
    settle=Ms(30 * SECOND),
    proof=Ms(5 * SECOND),
    deadline=Ms(10 * MINUTE),
    exact=False,
    ground_deadline=ZERO,
    ground_every=ZERO,
    suspended=Ms(10 * MINUTE),
    passes_paused=True,
    quiet=ZERO,
    vanishing=OnDisappear.REAPPLY,
    batch_stops=True,
    patient=False,
    awaits_consent=False,
    children=ChildGates.ALWAYS,
    retry=Retry(limit=5, first=Ms(5 * SECOND), factor=2, cap=Ms(3 * MINUTE)),
)
ARGOCD = Semantics(
    name="argocd",
    fenced=False,
    pause=Ms(2 * SECOND),
    gates_last=False,
    look_after=Ms(5 * SECOND),
    look_every=ZERO,
    dependency_every=ZERO,
    falls_back=False,
    settle=ZERO,
    proof=ZERO,
    deadline=ZERO,
    exact=False,
    ground_deadline=ZERO,
    ground_every=ZERO,
    suspended=ZERO,
    passes_paused=False,
    quiet=ZERO,
    vanishing=OnDisappear.FAIL,
    batch_stops=False,
    patient=True,
    awaits_consent=True,
    children=ChildGates.NEVER,
    heals=True,
    heal_first=Ms(2 * SECOND),
    heal_factor=3,
    heal_cap=Ms(5 * MINUTE),
    refresh_every=Ms(2 * MINUTE),
    refresh_jitter=MINUTE,
    retry=Retry(
        limit=5, first=Ms(10 * SECOND), factor=2, cap=Ms(3 * MINUTE), whole=True, gates=True
    ),
)
FLUX = Semantics(
    name="flux",
    fenced=False,
    pause=ZERO,
    gates_last=True,
    look_after=ZERO,
    look_every=Ms(5 * SECOND),
    dependency_every=Ms(30 * SECOND),
    falls_back=True,
    settle=ZERO,
    proof=ZERO,
    deadline=Ms(5 * MINUTE),
    exact=True,
    ground_deadline=Ms(60 * SECOND),
    ground_every=Ms(2 * SECOND),
    suspended=ZERO,
    passes_paused=True,
    quiet=ZERO,
    vanishing=OnDisappear.FAIL,
    batch_stops=True,
    patient=False,
    awaits_consent=False,
    children=ChildGates.GATES,
    workers=4,
    retry=Retry(
        limit=UNLIMITED,
        first=Ms(60 * SECOND),
        factor=1,
        cap=Ms(60 * SECOND),
        whole=True,
        gates=True,
    ),
)
SEMANTICS_BY_NAME = {rules.name: rules for rules in (TIDEGATE, ARGOCD, FLUX)}
