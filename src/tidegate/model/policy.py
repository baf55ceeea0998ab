"""How one unit is run: of the unit, never of the rollout.

A dialect reads it from a custom resource, the command line from options. The engine reads the
values and never asks whose they are.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.expressions import HealthExpressions
from tidegate.model.identity import Identity
from tidegate.model.ignoring import Ignored
from tidegate.model.ledger import DriftMode, ReleaseTerms
from tidegate.model.moment import Ms
from tidegate.model.objects import Propagation, Ref
from tidegate.model.project import Reach
from tidegate.model.semantics import TIDEGATE, Retry, Semantics
from tidegate.model.sync_window import SyncWindow


class Consent(StrEnum):
    """Whether something may be done to an object."""

    YES = "yes"
    NO = "no"
    ASK = "ask"


class Handling(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How an object wants to be written, pruned and deleted.

    `replaces`: put in place of what is there, not merged into it. `forces`: deleted and made again
    where it cannot be changed. `merges`: fields that others have added stay theirs. `checks`:
    validated before. `waits_for_kind`: its kind may come
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
    merges: bool = False


class Order(StrEnum):
    """What puts the objects of a unit in order."""

    WAVES = "waves"
    """Argo CD's phases and waves."""
    STAGES = "stages"
    """Flux's: definitions, classes, everything else."""
    HELM = "helm"
    """Helm's: hooks by their weights, everything else at once."""
    NONE = "none"
    """Argo CD's phases, and everything of a phase at once."""


class Gates(StrEnum):
    """Which objects of a unit hold what comes behind them."""

    ALL = "all"
    LISTED = "listed"
    """Those that the unit names, whoever brings them, and hooks."""
    NONE = "none"
    """Hooks alone."""


class Tracking(StrEnum):
    """How an object says whose it is."""

    OWN = "tidegate"
    """By an annotation of ours."""
    ARGO = "argocd"
    """By Argo CD's tracking annotation."""
    FLUX = "flux"
    """By the labels of Flux's controllers."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a unit is run.

    `rules` names how its objects are judged. `listed`: what gates, where not everything does.
    `manager` owns the fields it applies. `handling` is what its objects ask for where they say
    nothing themselves. `carries_on`: what lies behind a failed step starts all the same.
    `consents`: somebody has agreed that what asks first is pruned and deleted. `runs_hooks`: also
    where nothing has changed. `changed_only`: what is as wanted is not waited for.
    `refuses_shared`: what another unit has is not taken over. `deletes_contents`: what is pruned or
    deleted may take objects of others along. `allows_empty`: it prunes though nothing is left of
    it. `adopts_name`: it takes over a name that another source had. `leaves_others`: fields of
    earlier appliers stay theirs. `keeps_ignored`: fields that are no difference are written as they
    live. `identity`: whose rights its calls use. `starts`: its controller begins by itself, without
    somebody who asks. `cascades`: what it has brought goes with its own object. `heals`: what
    others change is put back. `timeout` and `retry` take the place of what the semantics have.
    `asks_readiness`: what it depends on must be ready whatever an expression says of that.
    `expressions`: how objects of some kinds are judged, by the unit's own word.
    `first_kinds`: groups and kinds that come first among what nobody else stands on.
    `namespace_labels` and `namespace_notes` go onto the namespace that it creates. `windows`: when
    it may be synced; `asked`: a person wants it now, which some windows let pass. `reach`: what its
    project lets it touch. `instance_label`: the label that names it on its objects besides.
    `labels_only`: that label alone says whose they are. `farewell`: what becomes of what its
    objects own when all of it is deleted; None: the same as when they are pruned.
    `remedy_timeout` is for what is done about its failure, `test_timeout` for its tests;
    `forgives_tests`: one that fails is told, and what is left of them is not run.
    `remedies_tests`: what is done about a failure is done about theirs, too. `withdraws`: what was
    made by what is done about a failure goes again, where a write of that is refused.
    `release`: the Helm release that it is. `drift`: what becomes of what others have changed, where
    that is all there is to do; None: it is rolled out as any other. `asks_late`: what it brings
    hangs on what lives when its turn comes, and is asked again then, and before everything ends.
    `asks_first`: the same, before its first step alone.
    """

    semantics: Semantics = TIDEGATE
    rules: str = "argo"
    order: Order = Order.WAVES
    gates: Gates = Gates.ALL
    listed: tuple[Ref, ...] = ()
    prunes: bool = False
    consents: bool = False
    carries_on: bool = False
    runs_hooks: bool = False
    tracking: Tracking = Tracking.OWN
    manager: str = "tidegate"
    handling: Handling = Handling()
    creates_namespace: bool = False
    changed_only: bool = False
    refuses_shared: bool = False
    deletes_contents: bool = False
    allows_empty: bool = False
    adopts_name: bool = False
    leaves_others: bool = False
    keeps_ignored: bool = False
    ignores: tuple[Ignored, ...] = ()
    identity: Identity | None = None
    starts: bool = True
    cascades: bool = False
    heals: bool = False
    timeout: Ms = Ms(0)
    retry: Retry | None = None
    asks_readiness: bool = False
    expressions: tuple[HealthExpressions, ...] = ()
    first_kinds: tuple[tuple[str, str], ...] = ()
    namespace_labels: tuple[tuple[str, str], ...] = ()
    namespace_notes: tuple[tuple[str, str], ...] = ()
    windows: tuple[SyncWindow, ...] = ()
    asked: bool = False
    reach: Reach | None = None
    instance_label: str = ""
    release: ReleaseTerms | None = None
    asks_late: bool = False
    asks_first: bool = False
    labels_only: bool = False
    farewell: Propagation | None = None
    drift: DriftMode | None = None
    remedy_timeout: Ms = Ms(0)
    test_timeout: Ms = Ms(0)
    forgives_tests: bool = False
    remedies_tests: bool = False
    withdraws: bool = False

    @property
    def owner_label(self) -> str:
        """The label that says whose an object is; empty where an annotation does."""
        return self.instance_label if self.labels_only else ""


def forcing(policy: Policy, forces: bool) -> Policy:  # noqa: FBT001 - it is all that is said
    """The policy; if it `forces`, all objects are made again that cannot be changed."""
    handling = policy.handling
    if not forces or handling.forces:
        return policy
    forced = msgspec.structs.replace(handling, forces=True)
    return msgspec.structs.replace(policy, handling=forced)
