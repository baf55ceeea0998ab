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
    backoff: Ms
    factor: int
    backoff_limit: Ms
    restarts_unit: bool = False
    """Whether the whole unit starts again, not only the failed step."""
    retries_gates: bool = False
    """Whether a failed gate is retried too. If not, only rejected writes are retried."""
    uses_current_revision: bool = False
    """Whether a retry uses the current revision of the source."""
    remediates_before_retry: bool = False
    """Whether the remediation runs before each retry."""
    remediates_last: bool = True
    """Whether the remediation also runs after the last attempt."""
    backs_off_after_remediation: bool = False
    """Whether the delay of a retry begins when the remediation has ended, whatever its result."""
    keeps_count: bool = False
    """Whether the count continues when the desired state changes."""

    def delay(self, attempt: int) -> Ms:
        """Return the delay before an attempt. The first retry is number 1."""
        return Ms(min(self.backoff_limit, self.backoff * self.factor ** (attempt - 1)))


class Semantics(msgspec.Struct, frozen=True, kw_only=True):
    """The values that `decide` reads."""

    name: str
    version: str = ""
    """The minor version of the engine that the values imitate; empty for Tidegate."""
    fenced: bool
    """Whether a verdict counts only if it refers to the applied version of the object."""
    pause: Ms
    """The minimum time between the last write of a step and the next step of its unit."""
    gates_last: bool
    """Whether the last step of a unit is gated too."""
    gate_check_delay: Ms
    """The time between a change and the evaluation of gates."""
    gate_check_interval: Ms
    """The interval at which gates are evaluated."""
    dependency_interval: Ms
    """The interval at which a unit checks its dependencies."""
    uses_generic_health: bool
    """Whether the generic rule applies to kinds without a health rule."""
    settle_time: Ms
    """How long Degraded must last until it counts."""
    status_wait: Ms
    """How long to wait for a status of kinds that cannot prove which version it refers to."""
    deadline: Ms
    """The time limit of a gate, unless its objects request more; 0 is unlimited."""
    is_deadline_exact: bool
    """Whether objects cannot extend `deadline`."""
    prerequisite_deadline: Ms
    """Replaces `deadline` for prerequisites of the rest of a unit, unless 0."""
    prerequisite_interval: Ms
    """Replaces `gate_check_interval` for prerequisites of the rest of a unit, unless 0."""
    suspended_timeout: Ms
    """How long an object may be Suspended."""
    passes_paused: bool
    """Whether an object that Git itself pauses does not block a gate."""
    idle_timeout: Ms
    """How long a gate may wait without any change; 0 is unlimited."""
    on_disappear: OnDisappear
    stops_on_rejection: bool
    """Whether a rejected write keeps later batches of its step from starting."""
    settles_before_failing: bool
    """Whether a failed object fails a gate only after the others have settled."""
    waits_for_confirmation: bool
    """Whether a step waits for the confirmation of deletions.

    If not, unconfirmed objects are skipped.
    """
    rejects_shared: bool
    """Whether a unit with an object that another unit also writes is rejected before it starts."""
    child_gates: ChildGates
    """Whether a unit waits for its child units."""
    dry_runs_on_server: bool
    """Whether the API server tries all objects before the first write.

    If not, objects that only the server rejects are rejected when they are written.
    """
    recreates_jobs: bool
    """Whether a Job whose immutable fields differ is deleted and created again.

    If not, the write is rejected, unless the Job or its unit forces it.
    """
    reverses_prunes_anew: bool
    """Whether each deletion reverses the waves of those that remain. If not, only the first."""
    retry: Retry
    tolerates_last_degraded: bool = False
    """Whether a Degraded object of the last step, except a hook, may still become healthy."""
    max_concurrent_units: int = 0
    """The number of units of one controller that run at once; 0 is unlimited."""
    self_heals: bool = False
    """Whether drift is corrected in units that request it."""
    heal_initial_delay: Ms = Ms(0)
    """The delay of the first attempt after the last sync."""
    heal_backoff: Ms = Ms(0)
    """The delay of the second attempt, multiplied by the factor each time up to the limit."""
    heal_backoff_factor: int = 1
    heal_backoff_limit: Ms = Ms(0)
    refresh_interval: Ms = Ms(0)
    """The interval at which a unit checks for a new revision after its rollout; 0 is never."""
    refresh_jitter: Ms = Ms(0)
    """The maximum jitter of the refresh interval."""

    @property
    def engine(self) -> str:
        """The shortest value of `--engine` that selects these semantics."""
        is_default = SEMANTICS_BY_NAME[self.name].version == self.version
        return self.name if is_default else f"{self.name}={self.version}"

    def at_version(self, other: Semantics) -> Semantics:
        """Return these semantics, as changed by the settings of a unit, at the version of others.

        Both imitate the same engine.
        """
        return msgspec.structs.replace(
            self, version=other.version, gate_check_delay=other.gate_check_delay
        )

    def heal_delay(self, attempt: int) -> Ms:
        """Return the delay between the last sync and an attempt to heal.

        The first attempt is number 0.
        """
        if not attempt:
            return self.heal_initial_delay
        return Ms(
            min(
                self.heal_backoff_limit,
                self.heal_backoff * self.heal_backoff_factor ** (attempt - 1),
            )
        )


ZERO = Ms(0)
UNLIMITED = 1_000_000_000
"""A number of retries that is never reached."""
TIDEGATE = Semantics(
    name="tidegate",
    fenced=True,
    pause=ZERO,
    gates_last=True,
    gate_check_delay=ZERO,
    gate_check_interval=ZERO,
    dependency_interval=ZERO,
    uses_generic_health=True,
    settle_time=Ms(30 * SECOND),
    status_wait=Ms(5 * SECOND),
    deadline=Ms(10 * MINUTE),
    is_deadline_exact=False,
    prerequisite_deadline=ZERO,
    prerequisite_interval=ZERO,
    suspended_timeout=Ms(10 * MINUTE),
    passes_paused=True,
    idle_timeout=ZERO,
    on_disappear=OnDisappear.REAPPLY,
    stops_on_rejection=True,
    settles_before_failing=False,
    waits_for_confirmation=False,
    rejects_shared=True,
    child_gates=ChildGates.ALWAYS,
    dry_runs_on_server=True,
    recreates_jobs=True,
    reverses_prunes_anew=False,
    retry=Retry(limit=5, backoff=Ms(5 * SECOND), factor=2, backoff_limit=Ms(3 * MINUTE)),
)
ARGOCD = Semantics(
    name="argocd",
    version="3.5",
    fenced=False,
    pause=Ms(2 * SECOND),
    gates_last=False,
    gate_check_delay=ZERO,
    gate_check_interval=ZERO,
    dependency_interval=ZERO,
    uses_generic_health=False,
    settle_time=ZERO,
    status_wait=ZERO,
    deadline=ZERO,
    is_deadline_exact=False,
    prerequisite_deadline=ZERO,
    prerequisite_interval=ZERO,
    suspended_timeout=ZERO,
    passes_paused=False,
    idle_timeout=ZERO,
    on_disappear=OnDisappear.FAIL,
    stops_on_rejection=False,
    settles_before_failing=True,
    waits_for_confirmation=True,
    rejects_shared=False,
    child_gates=ChildGates.NEVER,
    dry_runs_on_server=False,
    recreates_jobs=False,
    reverses_prunes_anew=True,
    self_heals=True,
    heal_backoff=Ms(2 * SECOND),
    heal_backoff_factor=3,
    heal_backoff_limit=Ms(5 * MINUTE),
    refresh_interval=Ms(2 * MINUTE),
    refresh_jitter=MINUTE,
    retry=Retry(
        limit=5,
        backoff=Ms(10 * SECOND),
        factor=2,
        backoff_limit=Ms(3 * MINUTE),
        restarts_unit=True,
        retries_gates=True,
        remediates_before_retry=True,
        backs_off_after_remediation=True,
    ),
)
# `appOperationRequeueDelay` of controller/appcontroller.go, new in 3.6.
ARGOCD_3_6 = msgspec.structs.replace(ARGOCD, version="3.6", gate_check_delay=Ms(5 * SECOND))
FLUX = Semantics(
    name="flux",
    version="2.9",
    fenced=False,
    pause=ZERO,
    gates_last=True,
    gate_check_delay=ZERO,
    gate_check_interval=Ms(5 * SECOND),
    dependency_interval=Ms(30 * SECOND),
    uses_generic_health=True,
    settle_time=ZERO,
    status_wait=ZERO,
    deadline=Ms(5 * MINUTE),
    is_deadline_exact=True,
    prerequisite_deadline=Ms(60 * SECOND),
    prerequisite_interval=Ms(2 * SECOND),
    suspended_timeout=ZERO,
    passes_paused=True,
    idle_timeout=ZERO,
    on_disappear=OnDisappear.FAIL,
    stops_on_rejection=True,
    settles_before_failing=False,
    waits_for_confirmation=False,
    rejects_shared=False,
    child_gates=ChildGates.GATES,
    dry_runs_on_server=True,
    recreates_jobs=False,
    reverses_prunes_anew=False,
    max_concurrent_units=4,
    retry=Retry(
        limit=UNLIMITED,
        backoff=Ms(60 * SECOND),
        factor=1,
        backoff_limit=Ms(60 * SECOND),
        restarts_unit=True,
        retries_gates=True,
    ),
)
SEMANTICS_BY_NAME = {
    "tidegate": TIDEGATE,
    "argocd": ARGOCD,
    "argocd=3.5": ARGOCD,
    "argocd=3.6": ARGOCD_3_6,
    "flux": FLUX,
}
"""Semantics by the values of `--engine`."""
