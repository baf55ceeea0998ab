"""A ledger: what a unit's own tool keeps of its rollouts in the cluster, numbered one by one.

Helm's releases have one. The engine reads it before a rollout, enters what begins and how it ended,
and knows nothing of what stands in it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.model.ignoring import Ignored
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.semantics import Retry


class LedgerPlace(msgspec.Struct, frozen=True, gc=False):
    """Where the entries of a unit lie: objects of a kind, in a namespace, with these labels."""

    kind: Kind
    namespace: str
    labels: str


class Action(StrEnum):
    """What a rollout is to a unit with a ledger; hooks differ with it."""

    INSTALL = "install"
    UPGRADE = "upgrade"
    KEEP = "keep"
    """The last entry says what Git says: nothing is entered, and no hook is run."""
    UNINSTALL = "uninstall"
    TEST = "test"
    """The last entry says what Git says, and nobody has tried it out yet."""
    ROLLBACK = "rollback"
    """An earlier entry is made again, since the last one failed."""


class Entering(msgspec.Struct, frozen=True):
    """What is about to be entered, by what stands in the ledger.

    `goes_on`: the entry is there, and whoever made it did not come to its end. `brought`: the
    objects of the last entry; they are the unit's, whatever its journal says. `problem`: why
    nothing can be entered.
    """

    action: Action
    number: int = 0
    goes_on: bool = False
    brought: tuple[Ref, ...] = ()
    problem: str = ""

    @property
    def is_due(self) -> bool:
        return self.action is not Action.KEEP


class HookRun(msgspec.Struct, frozen=True, gc=False):
    """How a hook ended; `passed` is None while it runs. `tests`: it ran as a test."""

    ref: Ref
    began: Ms
    ended: Ms
    passed: bool | None = None
    tests: bool = False


class EntryEnd(msgspec.Struct, frozen=True):
    """How what was entered came out, and why where it did not."""

    passed: bool
    sentence: str = ""
    hooks: tuple[HookRun, ...] = ()


class SheetHook(msgspec.Struct, frozen=True, gc=False):
    """A hook as a release keeps it; `path` is that of its template."""

    name: str
    kind: str
    path: str
    manifest: str
    events: tuple[str, ...]
    weight: int = 0
    policies: tuple[str, ...] = ()


class ReleaseSheet(msgspec.Struct, frozen=True, kw_only=True):
    """What a Helm release is to be: all that its record keeps but how it went.

    `chart` is the chart itself as Helm keeps it, `config` are the values of the user. `key` names
    all that it was made of: what has the same one is the same release.
    """

    key: str

    chart: dict[str, Json]
    config: dict[str, Json] = {}
    manifest: str = ""
    hooks: tuple[SheetHook, ...] = ()
    notes: str = ""

    def __repr__(self) -> str:
        # Values may be secret, and what is printed ends in logs.
        return "ReleaseSheet()"


class KnownRelease(msgspec.Struct, frozen=True, gc=False):
    """The last revision of a release, as a cluster has it.

    `stands`: it `is_deployed`, or somebody is at work on it. `is_gone`: it was uninstalled.
    `action` and `key` where we made it. `rendered`: the revision that its templates have seen.
    `is_unfit`: its tests have failed. `chart`: the name of its chart, where it is of a HelmRelease.
    """

    number: int
    stands: bool = False
    is_deployed: bool = False
    is_gone: bool = False
    action: Action | None = None
    key: str = ""
    rendered: int = 0
    is_unfit: bool = False
    chart: str = ""


class EnteredRevision(msgspec.Struct, frozen=True, gc=False):
    """One entry of a ledger, as Helm's history tells it."""

    number: int
    status: str
    description: str = ""


class ReleaseHistory(msgspec.Struct, frozen=True):
    """What became of a release: its unit by name, its namespace and name, and its revisions."""

    unit: str
    namespace: str
    name: str
    revisions: tuple[EnteredRevision, ...] = ()


class CrdPolicy(StrEnum):
    """What becomes of the definitions in a chart's `crds` directory."""

    SKIP = "Skip"
    CREATE = "Create"
    """Those are made that are not there."""
    REPLACE = "CreateReplace"
    """And those changed that are."""


class DriftMode(StrEnum):
    """What becomes of what others change of a release between two revisions, in Flux's words."""

    ENABLED = "enabled"
    """It is put back."""
    WARN = "warn"
    """It is told, and left so."""
    DISABLED = "disabled"
    """Nobody looks."""


class ActionTerms(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How an install is done, or an upgrade.

    `waits` for what it has brought, and `waits_for_jobs` until they are done. `replaces`: objects
    are put in the place of what is there. `checks`: they are validated before, and where it
    `checks_values`, values as well.
    `refuses_others`: what is there already, and not the release's, is not taken over. `remedy`:
    what is done about its failure; None leaves it as it is, but for what it has made, where it
    `cleans`. `forgives`: tests that fail are told, and no failure.
    """

    hooks: bool = True
    waits: bool = True
    waits_for_jobs: bool = True
    crds: CrdPolicy = CrdPolicy.CREATE
    timeout: Ms = Ms(0)
    retry: Retry | None = None
    replaces: bool = False
    checks: bool = True
    checks_values: bool = True
    refuses_others: bool = False
    remedy: Action | None = None
    forgives: bool = False
    cleans: bool = False


class TrialTerms(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Whether and how a release is tried out when it is brought.

    `only` and `but`: the tests that are run, by their names, and those that are not; without `only`
    all are. `ignores`: how it went says nothing about the release.
    """

    runs: bool = False
    timeout: Ms = Ms(0)
    ignores: bool = False
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        return name not in self.but and (not self.only or name in self.only)


class ReleaseTerms(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Which release a unit is, and how it is kept.

    `storage`: the namespace of its records. `most`: how many of them are kept; 0 keeps all.
    `keeps_history`: they stay when the release is uninstalled. `action`: what is about to be done.
    `drift`: what becomes of what others change between two revisions, but for the fields of
    `ignores`. `chart`: the name of its chart. `renews`: under another chart's name it is another
    release; `former_chart`: the one that stands until now, where it is uninstalled for that.
    """

    name: str
    namespace: str
    storage: str
    most: int = 5
    keeps_history: bool = False
    action: Action = Action.INSTALL
    install: ActionTerms = ActionTerms()
    upgrade: ActionTerms = ActionTerms()
    rollback: ActionTerms = ActionTerms()
    uninstall: ActionTerms = ActionTerms()
    test: TrialTerms = TrialTerms()
    drift: DriftMode = DriftMode.DISABLED
    ignores: tuple[Ignored, ...] = ()
    chart: str = ""
    renews: bool = True
    former_chart: str = ""

    @property
    def acting(self) -> ActionTerms:
        found = {Action.UPGRADE: self.upgrade, Action.ROLLBACK: self.rollback}
        return found.get(self.action, self.install)

    def refuses(self, known: KnownRelease) -> bool:
        """Whether the tests of a revision have failed, and that counts: it is released anew."""
        how = self.upgrade if known.action is Action.UPGRADE else self.install
        return known.is_unfit and self.test.runs and not how.forgives
