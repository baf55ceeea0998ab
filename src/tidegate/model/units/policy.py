"""Policy of a unit: how it is rolled out, independent of a single rollout.

A dialect reads the policy from a custom resource, the command line from options. The engine reads
the values only and does not know their origin.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Propagation, Ref
from tidegate.model.times import Ms
from tidegate.model.units.expressions import HealthExpressions
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.project import ProjectScope
from tidegate.model.units.release_history import DriftMode, ReleaseSpec
from tidegate.model.units.semantics import TIDEGATE, Retry, Semantics
from tidegate.model.units.sync_window import SyncWindow


class Permission(StrEnum):
    """Whether an operation on an object is allowed."""

    YES = "yes"
    NO = "no"
    ASK = "ask"


class ObjectOptions(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Sync options of an object: writing, pruning and deletion."""

    replace: bool = False
    """Whether the object is replaced instead of merged."""
    force: bool = False
    """Whether the object is deleted and created again if it cannot be updated."""
    validate: bool = True
    """Whether the object is validated before it is written."""
    skip_missing_kind: bool = False
    """Whether its kind may be registered later in the rollout."""
    prune: Permission = Permission.YES
    delete: Permission = Permission.YES
    prune_last: bool = False
    """Whether it is pruned after everything else."""
    propagation: Propagation = Propagation.FOREGROUND
    """The deletion propagation for pruning and deleting it."""
    keep_other_fields: bool = False
    """Whether fields that other writers have added stay with them."""


class Order(StrEnum):
    """How the objects of a unit are ordered."""

    WAVES = "waves"
    """Argo CD's phases and waves."""
    STAGES = "stages"
    """Flux's stages: definitions, classes, everything else."""
    HELM = "helm"
    """Helm's order: hooks by weight, everything else at once."""
    NONE = "none"
    """Argo CD's phases, with all objects of a phase at once."""


class GateScope(StrEnum):
    """Which objects of a unit gate the steps after them."""

    ALL = "all"
    LISTED = "listed"
    """The objects that the unit lists, of any owner, and hooks."""
    NONE = "none"
    """Hooks only."""


class Tracking(StrEnum):
    """How an object refers to the unit that owns it."""

    TIDEGATE = "tidegate"
    """By an annotation of Tidegate."""
    ARGO = "argocd"
    """By Argo CD's tracking annotation."""
    FLUX = "flux"
    """By the labels of Flux's controllers."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a unit is rolled out."""

    semantics: Semantics = TIDEGATE
    rules: str = "argo"
    """The name of the health rules for its objects."""
    order: Order = Order.WAVES
    gates: GateScope = GateScope.ALL
    gating_refs: tuple[Ref, ...] = ()
    """The objects that gate, if not all do."""
    prune: bool = False
    confirmed: bool = False
    """Whether pruning and deletion of objects that require it were confirmed."""
    continue_on_failure: bool = False
    """Whether the steps after a failed step start anyway."""
    runs_hooks: bool = False
    """Whether hooks run even if nothing has changed."""
    tracking: Tracking = Tracking.TIDEGATE
    manager: str = "tidegate"
    """The field manager of applied fields."""
    object_options: ObjectOptions = ObjectOptions()
    """The default sync options of its objects."""
    create_namespace: bool = False
    apply_out_of_sync_only: bool = False
    """Whether objects that are in sync are not waited for."""
    fail_on_shared_resource: bool = False
    """Whether objects of another unit are rejected instead of adopted."""
    delete_contents: bool = False
    """Whether deleting a namespace or CRD may delete objects of other owners."""
    allow_empty: bool = False
    """Whether it prunes even if it renders no objects."""
    adopt_name: bool = False
    """Whether it takes over a unit name that another source had."""
    keep_other_appliers: bool = False
    """Whether the fields of earlier appliers stay with them."""
    respect_ignore_differences: bool = False
    """Whether ignored differences are written with their live values."""
    ignore_differences: tuple[IgnoreDifference, ...] = ()
    identity: ImpersonatedUser | None = None
    """The user to impersonate."""
    auto_sync: bool = True
    """Whether its controller syncs it automatically."""
    cascades: bool = False
    """Whether its objects are deleted with the unit resource."""
    self_heal: bool = False
    """Whether drift is corrected."""
    timeout: Ms = Ms(0)
    """Replaces the deadline of the semantics, unless 0."""
    retry: Retry | None = None
    """Replaces the retry policy of the semantics, unless None."""
    requires_ready_dependencies: bool = False
    """Whether dependencies must be ready even if they have a readiness expression."""
    expressions: tuple[HealthExpressions, ...] = ()
    """Health expressions of the unit for some kinds."""
    first_kinds: tuple[tuple[str, str], ...] = ()
    """Groups and kinds that are applied first among the objects that no other object depends on."""
    namespace_labels: tuple[tuple[str, str], ...] = ()
    """Labels of the namespace that it creates."""
    namespace_annotations: tuple[tuple[str, str], ...] = ()
    """Annotations of the namespace that it creates."""
    windows: tuple[SyncWindow, ...] = ()
    """When it may be synced."""
    is_manual: bool = False
    """Whether a person requested the sync, which some windows allow."""
    project_scope: ProjectScope | None = None
    """The project of the unit, with its permissions."""
    instance_label: str = ""
    """A label with the name of the unit on its objects, in addition to the tracking."""
    release: ReleaseSpec | None = None
    """The Helm release of the unit."""
    regenerates_during_rollout: bool = False
    """Whether its objects depend on live state and are generated again during the rollout.

    This happens when the unit starts, and before the rollout ends.
    """
    uses_lookup: bool = False
    """Whether its objects depend on live state and are generated again before its first step."""
    labels_only: bool = False
    """Whether only the instance label identifies the owner of its objects."""
    deletion_propagation: Propagation | None = None
    """The propagation for deleting the whole unit. None if it is the same as for pruning."""
    drift: DriftMode | None = None
    """How to handle drift if nothing else changed. None rolls out as usual."""
    remediation_timeout: Ms = Ms(0)
    """The time limit of a remediation."""
    test_timeout: Ms = Ms(0)
    """The time limit of its tests."""
    ignore_test_failures: bool = False
    """Whether a failed test is only reported, and the remaining tests are skipped."""
    remediate_test_failures: bool = False
    """Whether a failed test is remediated like any other failure."""
    delete_created_on_rejection: bool = False
    """Whether objects that a remediation created are deleted if one of its writes is rejected."""

    @property
    def owner_label(self) -> str:
        """The label that identifies the owner of an object. Empty if an annotation does."""
        return self.instance_label if self.labels_only else ""


def with_force(policy: Policy, forces: bool) -> Policy:  # noqa: FBT001 - the only argument
    """Return the policy, with forced recreation of objects if `forces` is set."""
    options = policy.object_options
    if not forces or options.force:
        return policy
    forced_options = msgspec.structs.replace(options, force=True)
    return msgspec.structs.replace(policy, object_options=forced_options)


class PreflightMode(StrEnum):
    """Which objects are sent to the server as dry runs before the first write."""

    LOCAL = "local"
    """Objects that only the server can check, because of admission rules or CRD rules."""
    AUTO = "auto"
    """These, and objects of which the local rules leave something open."""
    SERVER = "server"
    """All objects that would be written."""
