"""Whose rules a plan runs by, as a table of values.

The engine reads the values and never the names. `docs/concepts/semantics.md` tells what differs.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.moment import MINUTE, SECOND, Ms


class Vanishing(StrEnum):
    """What to do when an object that a gate waits for is gone, or is another one."""

    FAIL = "fail"
    REAPPLY = "reapply"


class ChildGates(StrEnum):
    """Whether a unit waits for the units that it brings."""

    ALWAYS = "always"
    """What comes behind their wave does."""
    GATES = "gates"
    """It is done when those are that its gates name."""
    NEVER = "never"


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed step is tried again, and after which pauses.

    `whole`: everything starts over, not only the step that failed. `gates`: a gate that failed is
    waited for again, too; else only what the cluster refused is tried again. `refreshes`: it is
    tried with what its source has by then. `rescues`: what there is for its failure is done before
    each further try, and where it `rescues_last`, behind the last one. `counts_on`: a newer text
    does not begin the count anew.
    """

    limit: int
    first: Ms
    factor: int
    cap: Ms
    whole: bool = False
    gates: bool = False
    refreshes: bool = False
    rescues: bool = False
    rescues_last: bool = True
    counts_on: bool = False

    def pause(self, attempt: int) -> Ms:
        """The pause before the given attempt; the first one again is number 1."""
        return Ms(min(self.cap, self.first * self.factor ** (attempt - 1)))


class Semantics(msgspec.Struct, frozen=True, kw_only=True):
    """The values that `decide` reads.

    `fenced`: a verdict counts only when it speaks of what was applied. `pause`: the least time
    between the last write of a step and the start of the next one of its unit. `gates_last`: the
    last step of a unit is gated too. `look_after`: how long after a change gates are looked at.
    `look_every`: gates are looked at only so often. `dependency_every`: a unit looks at the units
    it depends on only so often. `falls_back`: kinds without a rule are judged by the generic one.
    `settle`: how long Degraded must hold. `proof`: how long a status is awaited from kinds that
    cannot prove what it speaks of. `deadline`: how long a gate may take where its objects do not
    ask for more; 0 is for ever. `exact`: they cannot ask for more. `ground_deadline` and
    `ground_every` take the place of `deadline` and `look_every` for what the rest of a unit stands
    on; 0 leaves these. `suspended`: how long Suspended may last. `passes_paused`: what Git itself
    pauses holds no gate. `quiet`: how long nothing may change while a gate waits; 0 is for ever.
    `batch_stops`: a refused write keeps later batches of its step from starting. `patient`: an
    object that fails ends a gate only when the others have settled. `awaits_consent`: where
    somebody must agree to a deletion, its step is held until then; else what asks is left alone.
    `children`: whether a unit waits for those that it brings. `forbears`: what is Degraded in the
    last step of a unit, and no hook, may become well yet. `workers`: so many units of one
    controller are under way at once; 0 is any number. `heals`: what others change of a unit that
    asks for it is put back, as soon as `heal_start` has passed since its last sync; further
    attempts come after `heal_first`, which grows by `heal_factor` up to `heal_cap`.
    `refresh_every`: so often a unit looks for a newer revision behind its rollout, and later by its
    own part of `refresh_jitter`; 0 is never.
    """

    name: str
    fenced: bool
    pause: Ms
    gates_last: bool
    look_after: Ms
    look_every: Ms
    dependency_every: Ms
    falls_back: bool
    settle: Ms
    proof: Ms
    deadline: Ms
    exact: bool
    ground_deadline: Ms
    ground_every: Ms
    suspended: Ms
    passes_paused: bool
    quiet: Ms
    vanishing: Vanishing
    batch_stops: bool
    patient: bool
    awaits_consent: bool
    children: ChildGates
    retry: Retry
    forbears: bool = False
    workers: int = 0
    heals: bool = False
    heal_start: Ms = Ms(0)
    heal_first: Ms = Ms(0)
    heal_factor: int = 1
    heal_cap: Ms = Ms(0)
    refresh_every: Ms = Ms(0)
    refresh_jitter: Ms = Ms(0)

    def heal_pause(self, attempt: int) -> Ms:
        """How long after the end of its last sync a unit is healed; the first time is number 0."""
        if not attempt:
            return self.heal_start
        return Ms(min(self.heal_cap, self.heal_first * self.heal_factor ** (attempt - 1)))


NOTHING = Ms(0)
ENDLESS = 1_000_000_000
"""As many tries as anybody will see."""

TIDEGATE = Semantics(
    name="tidegate",
    fenced=True,
    pause=NOTHING,
    gates_last=True,
    look_after=NOTHING,
    look_every=NOTHING,
    dependency_every=NOTHING,
    falls_back=True,
    settle=Ms(30 * SECOND),
    proof=Ms(5 * SECOND),
    deadline=Ms(10 * MINUTE),
    exact=False,
    ground_deadline=NOTHING,
    ground_every=NOTHING,
    suspended=Ms(10 * MINUTE),
    passes_paused=True,
    quiet=NOTHING,
    vanishing=Vanishing.REAPPLY,
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
    look_every=NOTHING,
    dependency_every=NOTHING,
    falls_back=False,
    settle=NOTHING,
    proof=NOTHING,
    deadline=NOTHING,
    exact=False,
    ground_deadline=NOTHING,
    ground_every=NOTHING,
    suspended=NOTHING,
    passes_paused=False,
    quiet=NOTHING,
    vanishing=Vanishing.FAIL,
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
    pause=NOTHING,
    gates_last=True,
    look_after=NOTHING,
    look_every=Ms(5 * SECOND),
    dependency_every=Ms(30 * SECOND),
    falls_back=True,
    settle=NOTHING,
    proof=NOTHING,
    deadline=Ms(5 * MINUTE),
    exact=True,
    ground_deadline=Ms(60 * SECOND),
    ground_every=Ms(2 * SECOND),
    suspended=NOTHING,
    passes_paused=True,
    quiet=NOTHING,
    vanishing=Vanishing.FAIL,
    batch_stops=True,
    patient=False,
    awaits_consent=False,
    children=ChildGates.GATES,
    workers=4,
    retry=Retry(
        limit=ENDLESS, first=Ms(60 * SECOND), factor=1, cap=Ms(60 * SECOND), whole=True, gates=True
    ),
)

BY_NAME = {rules.name: rules for rules in (TIDEGATE, ARGOCD, FLUX)}
