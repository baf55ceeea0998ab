"""What a change does to the order: both revisions are linted and planned, then compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.clusters.session import ClusterTargets
from tidegate.graph.comparison.compare import compare_orders
from tidegate.linting.order_side import empty_side, order_side, side_times
from tidegate.linting.run import (
    LintedRepository,
    LintOptions,
    LintResult,
    lint_repository,
    new_findings,
)
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.plans.graph import NodeKind
from tidegate.model.views.lint import LintReport
from tidegate.model.views.order_diff import DiffReport, OrderDiff, RevisionName
from tidegate.planning.manifests import UnitManifests
from tidegate.removal.preview import RemovalPreview
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.revisions import Revision, RevisionNames, open_revisions
from tidegate.workspace.workspace import Workspace

ABSENT_CODES = frozenset({"units.lfs", "units.submodule"})


class _Alternative(msgspec.Struct, frozen=True):
    """The units of one revision that are deployed together, and the result of linting them."""

    linted: LintedRepository
    workspace: Workspace
    result: LintResult


async def diff_revisions(
    request: LoadRequest,
    target: ClusterTargets,
    settings: RenderSettings,
    names: RevisionNames,
    options: LintOptions,
) -> DiffReport:
    """Compare the orders of two revisions."""
    async with open_revisions(request, names, settings) as revisions:
        base = await _lint(revisions.base, target, settings, options)
        head = await _lint(revisions.head, target, settings, options)
        return DiffReport(
            base=_revision_name(revisions.base),
            head=_revision_name(revisions.head),
            new=new_findings(head, base.report.findings if base else ())
            if head
            else LintReport(findings=()),
            fixed=_fixed_findings(base, head),
            orders=tuple(_compare(base, head)),
            not_read=tuple(_not_read(base, head)),
        )


async def lint_new_findings(
    request: LoadRequest,
    target: ClusterTargets,
    settings: RenderSettings,
    names: RevisionNames,
    options: LintOptions,
) -> LintReport:
    """Lint a repository, and return the findings that another revision does not have."""
    async with open_revisions(request, names, settings) as revisions:
        of_all_files = msgspec.structs.replace(options, files=())
        base = await _lint(revisions.base, target, settings, of_all_files)
        head = await _lint(revisions.head, target, settings, options)
        if head is None:
            return LintReport(findings=())
        name = str(_revision_name(revisions.base))
        return new_findings(head, base.report.findings if base else (), name)


async def _lint(
    revision: Revision, target: ClusterTargets, settings: RenderSettings, options: LintOptions
) -> LintedRepository | None:
    """Lint a revision; None if it does not have the path."""
    if revision.request is None:
        return None
    return await lint_repository(revision.request, target, settings, options)


def _revision_name(revision: Revision) -> RevisionName:
    return RevisionName(name=revision.name, commit=revision.commit)


def _fixed_findings(
    base: LintedRepository | None, head: LintedRepository | None
) -> tuple[Finding, ...]:
    if base is None:
        return ()
    fixed = new_findings(base, head.report.findings if head else ())
    return tuple(fixed.sorted_findings)


def _not_read(base: LintedRepository | None, head: LintedRepository | None) -> Iterator[Finding]:
    """Yield each finding about files that a revision names and does not contain."""
    findings = dict.fromkeys(
        finding for side in (base, head) if side for finding in side.report.findings
    )
    return (finding for finding in findings if finding.code in ABSENT_CODES)


def _compare(base: LintedRepository | None, head: LintedRepository | None) -> Iterator[OrderDiff]:
    """Yield the differences of each alternative; those of both revisions have the same root."""
    base_alternatives, head_alternatives = _alternatives(base), _alternatives(head)
    if len(base_alternatives) <= 1 and len(head_alternatives) <= 1:
        yield _compare_alternatives(
            next(iter(base_alternatives.values()), None),
            next(iter(head_alternatives.values()), None),
        )
        return
    for root in dict.fromkeys((*base_alternatives, *head_alternatives)):
        diff = _compare_alternatives(base_alternatives.get(root), head_alternatives.get(root))
        yield msgspec.structs.replace(diff, root=root)


def _alternatives(linted: LintedRepository | None) -> dict[str, _Alternative]:
    """Return the alternatives of a revision by the name of their root."""
    if linted is None:
        return {}
    workspaces = linted.workspace.split_alternatives()
    return {
        _root_name(workspace): _Alternative(linted, workspace, result)
        for workspace, result in zip(workspaces, linted.results, strict=True)
    }


def _root_name(workspace: Workspace) -> str:
    return next((unit_tree.root_name for unit_tree in workspace.unit_trees), "")


def _compare_alternatives(base: _Alternative | None, head: _Alternative | None) -> OrderDiff:
    base_side = order_side(base.linted, base.result, base.workspace) if base else empty_side()
    head_side = order_side(head.linted, head.result, head.workspace) if head else empty_side()
    removals = RemovalPreview(
        units=base_side.units,
        manifests={
            unit_manifests.manifests.unit.id: unit_manifests.manifests
            for unit_manifests in _known_manifests(base)
        },
        remaining_units=head_side.units,
        remaining_objects={
            (node.cluster, *versionless_key(node.ref))
            for node in head_side.graph.nodes
            if node.kind is NodeKind.OBJECT and node.ref is not None
        },
    )
    return compare_orders(
        base_side,
        head_side,
        find_removal=removals.find_removal,
        base_times=side_times(base.result if base else None),
        head_times=side_times(head.result if head else None),
    )


def _known_manifests(alternative: _Alternative | None) -> Iterable[UnitManifests]:
    if alternative is None or alternative.result.graph_result is None:
        return ()
    return alternative.result.graph_result.plan_result.unit_manifests
