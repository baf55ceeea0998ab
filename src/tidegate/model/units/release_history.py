"""Helm releases of units: their options, contents and revisions.

The engine reads the history before a rollout, adds the pending revision and records its outcome.
The contents of a revision are opaque to the engine.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import Ms
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.semantics import Retry


class ReleaseStorage(msgspec.Struct, frozen=True, gc=False):
    """Storage of release records: objects of a kind, in a namespace, with these labels."""

    kind: Kind
    namespace: str
    labels: str


class ReleaseAction(StrEnum):
    """The action of a rollout on a Helm release. Hooks depend on it."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    UNCHANGED = "keep"
    """The last revision matches Git: no revision is added, and no hook runs."""
    UNINSTALL = "uninstall"
    TEST = "test"
    """The last revision matches Git, and its tests have not run yet."""
    ROLLBACK = "rollback"
    """An earlier revision is applied again, because the last one failed."""


class PendingRevision(msgspec.Struct, frozen=True):
    """The revision that is about to be added to a release history."""

    action: ReleaseAction
    number: int = 0
    is_resumed: bool = False
    """Whether the revision exists already, from a process that did not finish it."""
    previous_objects: tuple[Ref, ...] = ()
    """Objects of the last revision. They belong to the unit, even if its journal lacks them."""
    problem: str = ""
    """Why no revision can be added."""

    @property
    def is_due(self) -> bool:
        return self.action is not ReleaseAction.UNCHANGED


class HookRun(msgspec.Struct, frozen=True, gc=False):
    """A run of a hook."""

    ref: Ref
    started_at: Ms
    finished_at: Ms
    passed: bool | None = None
    """Whether the hook passed. None while it runs."""
    is_test: bool = False
    """Whether the hook ran as a test."""


class RevisionOutcome(msgspec.Struct, frozen=True):
    """The outcome of a release revision, with a message if it failed."""

    passed: bool
    message: str = ""
    hooks: tuple[HookRun, ...] = ()


class ReleaseHook(msgspec.Struct, frozen=True, gc=False):
    """A hook in a release record; `path` is the path of its template."""

    name: str
    kind: str
    path: str
    manifest: str
    events: tuple[str, ...]
    weight: int = 0
    policies: tuple[str, ...] = ()


class ReleaseContents(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a Helm release record, except for its outcome."""

    key: str
    """Digest of all inputs: releases with the same key are equal."""

    chart: dict[str, Json]
    """The chart as Helm stores it."""
    config: dict[str, Json] = {}
    """The values of the user."""
    manifest: str = ""
    hooks: tuple[ReleaseHook, ...] = ()
    notes: str = ""

    def __repr__(self) -> str:
        # Values may be secret, and printed text ends up in logs.
        return "ReleaseSheet()"


class KnownRelease(msgspec.Struct, frozen=True, gc=False):
    """The last revision of a release in a cluster."""

    number: int
    is_deployed_or_pending: bool = False
    """Whether it is deployed, or an operation on it is pending."""
    is_deployed: bool = False
    is_uninstalled: bool = False
    """Whether it was uninstalled."""
    action: ReleaseAction | None = None
    """The action that made it, if Tidegate did."""
    key: str = ""
    """The key of its contents, if Tidegate made it."""
    rendered_revision: int = 0
    """The revision number that its templates have seen."""
    has_failed_tests: bool = False
    """Whether its tests have failed."""
    chart_name: str = ""
    """The name of its chart, if it belongs to a HelmRelease."""


class ReleaseRevision(msgspec.Struct, frozen=True, gc=False):
    """One revision, as in `helm history`."""

    number: int
    status: str
    description: str = ""


class ReleaseHistory(msgspec.Struct, frozen=True):
    """The revisions of a release, with its unit, namespace and name."""

    unit: str
    namespace: str
    name: str
    revisions: tuple[ReleaseRevision, ...] = ()


class CrdPolicy(StrEnum):
    """How to handle the CRDs in a chart's `crds` directory."""

    SKIP = "Skip"
    CREATE = "Create"
    """Create missing CRDs."""
    REPLACE = "CreateReplace"
    """Create missing CRDs and update existing ones."""


class DriftMode(StrEnum):
    """How to handle changes of other writers to a release, as in Flux's `driftDetection.mode`."""

    ENABLED = "enabled"
    """Correct the drift."""
    WARN = "warn"
    """Report the drift only."""
    DISABLED = "disabled"
    """Do not detect drift."""


class ReleaseActionSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Options of an install, upgrade, rollback or uninstall."""

    hooks: bool = True
    waits: bool = True
    """Whether to wait for the objects of the release."""
    waits_for_jobs: bool = True
    """Whether to wait until Jobs are complete."""
    crds: CrdPolicy = CrdPolicy.CREATE
    timeout: Ms = Ms(0)
    retry: Retry | None = None
    replaces: bool = False
    """Whether to replace existing objects."""
    checks: bool = True
    """Whether to validate objects before they are written."""
    checks_values: bool = True
    """Whether to validate values against the schema of the chart."""
    fail_on_other_owner: bool = False
    """Whether to reject existing objects that do not belong to the release."""
    remediation: ReleaseAction | None = None
    """The remediation of a failure. None leaves the failed revision."""
    ignore_test_failures: bool = False
    """Whether failed tests are reported, but ignored."""
    cleanup_on_fail: bool = False
    """Whether to delete the objects that a failed action created."""


class ReleaseTestSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Options of `helm test` for a release."""

    runs: bool = False
    """Whether tests run."""
    timeout: Ms = Ms(0)
    ignores: bool = False
    """Whether failures of tests are ignored."""
    include: tuple[str, ...] = ()
    """Names of the tests to run. Empty for all."""
    exclude: tuple[str, ...] = ()
    """Names of tests to skip."""

    def selects(self, name: str) -> bool:
        return name not in self.exclude and (not self.include or name in self.include)


class ReleaseSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The Helm release of a unit, and its options."""

    name: str
    namespace: str
    storage: str
    """The namespace of its records."""
    max_history: int = 5
    """Maximum number of records; 0 is unlimited."""
    keeps_history: bool = False
    """Whether the records stay when the release is uninstalled."""
    action: ReleaseAction = ReleaseAction.INSTALL
    """The action that is about to run."""
    install: ReleaseActionSpec = ReleaseActionSpec()
    upgrade: ReleaseActionSpec = ReleaseActionSpec()
    rollback: ReleaseActionSpec = ReleaseActionSpec()
    uninstall: ReleaseActionSpec = ReleaseActionSpec()
    test: ReleaseTestSpec = ReleaseTestSpec()
    drift: DriftMode = DriftMode.DISABLED
    """How to handle drift between two revisions, except in the fields of `ignores`."""
    ignores: tuple[IgnoreDifference, ...] = ()
    chart: str = ""
    """The name of its chart."""
    reinstalls_on_chart_change: bool = True
    """Whether another chart name makes it another release."""
    former_chart: str = ""
    """The name of the deployed chart, if it is uninstalled because the chart name changed."""

    @property
    def action_spec(self) -> ReleaseActionSpec:
        specs = {ReleaseAction.UPGRADE: self.upgrade, ReleaseAction.ROLLBACK: self.rollback}
        return specs.get(self.action, self.install)

    def failed_its_tests(self, release: KnownRelease) -> bool:
        """Return whether failed tests of a revision require a new revision."""
        spec = self.upgrade if release.action is ReleaseAction.UPGRADE else self.install
        return release.has_failed_tests and self.test.runs and not spec.ignore_test_failures
