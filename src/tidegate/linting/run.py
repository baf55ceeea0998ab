"""Linting of a repository: findings of the rules and of loading the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.clusters.session import ClusterTargets, Session
from tidegate.documents import Document
from tidegate.errors import (
    FileError,
    Location,
    PlanError,
    TidegateError,
    flatten_errors,
)
from tidegate.files import read_regular_file
from tidegate.health.lua import LuaRules
from tidegate.lint.baseline import (
    read_baseline,
    split_by_base,
    split_by_baseline,
    write_baseline,
)
from tidegate.lint.causes import merge_causes
from tidegate.lint.registry import RULES, RULES_BY_FINDING_CODE
from tidegate.lint.rule import Diagnostic, FieldRef, Rule, run_rules
from tidegate.lint.selection import IgnoreEntry, RuleSelection, ignores_in, is_ignored
from tidegate.linting.context import LoadedContext, assumed_dependencies, build_context
from tidegate.linting.file_scope import only_about_files
from tidegate.linting.left_out_fields import soften_left_out_fields
from tidegate.linting.lookup import DiagnosticLocator
from tidegate.linting.repetitions import without_repetitions
from tidegate.linting.repository_files import RepositoryFiles, read_repository_files
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.semantics import ARGOCD, Semantics
from tidegate.model.units.unit import Unit
from tidegate.model.views.lint import AssumedDependency, LintReport, UncheckedInput
from tidegate.planning.graph import GraphResult, make_graph
from tidegate.planning.manifest_check import check_manifests
from tidegate.planning.missing import find_missing_for
from tidegate.planning.preparation import read_valid_manifests
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.completeness import workspace_findings
from tidegate.workspace.config import load_config
from tidegate.workspace.coverage import measure_coverage
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.locations import FieldLocator
from tidegate.workspace.rendering.result import UNAVAILABLE_SOURCE_CODES, UNKNOWN_APPLICATIONS_CODES
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import Workspace, file_and_line, open_workspace

CYCLE_RULE = "ORD002"
ROLLOUT_CODES = frozenset(
    {"appset.unmatched", "flux.uncheckable", "units.shared", "units.unpruned"}
)
"""Codes about a rollout, about an ApplicationSet instead of each of its Applications, or of ORD030.
"""
UNKNOWN_KIND_RULE = "ORD062"
MISSING_SOURCE_CODE = "source.object"
UNSUPPORTED_CODE = "flux.unsupported"
UNAVAILABLE_CODES = frozenset(
    {
        *UNAVAILABLE_SOURCE_CODES,
        *UNKNOWN_APPLICATIONS_CODES,
        *("render.plugin", "render.secret", "render.sops.key", "render.sops.offline"),
        *("units.unknown-variables", "units.unread"),
    }
    - {MISSING_SOURCE_CODE}
)
"""Codes of inputs that could not be read.

They are no errors of the repository, but they make the result incomplete.
"""


class LintOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `lint`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    severity_overrides: Mapping[str, Severity] = msgspec.field(default_factory=dict)
    semantics: Semantics | None = None
    empty_cluster: bool = False
    files: tuple[str, ...] = ()
    """Only findings about the units of these files are reported; empty for all."""
    baseline: Path | None = None
    update_baseline: bool = False
    command: str = "tidegate lint"
    """The command line, for commands that check more."""

    @property
    def selection(self) -> RuleSelection:
        return RuleSelection(
            select=self.select,
            ignore=self.ignore,
            severity=self.severity,
            severity_overrides=self.severity_overrides,
        )


async def lint(
    request: LoadRequest,
    target: ClusterTargets,
    render_settings: RenderSettings,
    options: LintOptions,
) -> LintReport:
    """Lint a repository, and return the findings."""
    linted = await lint_repository(request, target, render_settings, options)
    report = _with_baseline(linted.report, options, linted.locator)
    return replace(report, findings=merge_causes(report.findings))


class LintedRepository(msgspec.Struct, frozen=True, kw_only=True):
    """The findings about a repository, and what they were made from."""

    report: LintReport
    """All findings, without those that are ignored."""
    locator: DiagnosticLocator
    workspace: Workspace
    results: tuple[LintResult, ...]
    """A result for each alternative."""
    health_rules: LuaRules
    """The health rules of Argo CD's settings."""


async def lint_repository(
    request: LoadRequest,
    target: ClusterTargets,
    render_settings: RenderSettings,
    options: LintOptions,
) -> LintedRepository:
    """Run the rules on a repository."""
    config, render_settings = (
        _load_config(request),
        replace(render_settings, skips_unavailable=True),
    )
    request = replace(request, allows_several=True)
    async with open_workspace(request, target, render_settings) as (session, workspace):
        locator = DiagnosticLocator(workspace.scan.locator)
        files = read_repository_files(workspace.scan)
        results = [
            await lint_workspace(alternative, workspace, session, files, options, locator.files)
            for alternative in workspace.split_alternatives()
        ]
        report = _build_report(results, workspace, config, locator, options)
        if options.files:
            report = only_about_files(report, workspace, options.files)
        return LintedRepository(
            report=report,
            locator=locator,
            workspace=workspace,
            results=tuple(results),
            health_rules=session.evaluator.scripts,
        )


def new_findings(
    linted: LintedRepository, base: Iterable[Finding], base_name: str = ""
) -> LintReport:
    """Return the report without the findings that the base has, with excerpts of the files."""
    new, known = split_by_base(linted.report.findings, base)
    report = replace(
        linted.report,
        findings=tuple(new),
        baseline_count=len(known),
        baseline_name=base_name or linted.report.baseline_name,
        excerpts=linted.locator.excerpts(tuple(new)),
    )
    return replace(report, findings=merge_causes(report.findings))


def _load_config(request: LoadRequest) -> Config:
    path = Path(request.path_or_url)
    return load_config(path) if path.exists() else Config()


class LintResult(msgspec.Struct, frozen=True):
    """Result of linting one alternative, or all units that are deployed together."""

    loaded: LoadedContext
    graph_result: GraphResult | None
    """None if the units cannot be planned."""
    diagnostics: tuple[tuple[Rule, Diagnostic], ...]
    findings: tuple[Finding, ...]
    assumed: tuple[AssumedDependency, ...] = ()


async def lint_workspace(
    workspace: Workspace,
    repository: Workspace,
    session: Session,
    files: RepositoryFiles,
    options: LintOptions,
    locator: FieldLocator,
) -> LintResult:
    """Run the rules on the rendered units of a workspace.

    `repository`: the workspace itself, or the one that it is an alternative of.
    """
    findings: tuple[Finding, ...] = ()
    graph_result: GraphResult | None = None
    unit_trees, manual = _with_auto_sync(workspace.unit_trees)
    try:
        graph_result = await make_graph(unit_trees, session, options.semantics)
    except (PlanError, ExceptionGroup) as error:
        findings = tuple(map(Finding.from_error, _plan_errors(error)))
    if graph_result is not None:
        planned = (
            finding
            for finding in graph_result.plan_result.findings
            if finding.code not in ROLLOUT_CODES
        )
        notes = graph_result.plan_result.notes  # uncertain render results, such as an empty one
        findings = (
            *planned,
            *manual,
            *(Finding.from_error(note, Severity.NOTE) for note in notes),
        )
    unit_manifests = (
        graph_result.plan_result.unit_manifests
        if graph_result
        else await read_valid_manifests(workspace.members, session)
    )
    loaded = build_context(
        workspace,
        session,
        files,
        graph_result,
        unit_manifests,
        repository,
        empty_cluster=options.empty_cluster,
    )
    selected = [
        lint_rule for lint_rule in RULES.values() if options.selection.includes(lint_rule.id)
    ]
    diagnostics = tuple(run_rules(loaded.context, selected))
    if graph_result is not None:
        plan = graph_result.plan_result.plan
        served_kinds = {unit.cluster: await session.kinds(unit.cluster) for unit in plan.units}
        rejected = check_manifests(plan, session.evaluator, served_kinds, locator)
        findings += tuple(_without_unknown_kinds(rejected, diagnostics))
    if (
        graph_result is not None
        and graph_result.cycle
        and not any(lint_rule.id == CYCLE_RULE for lint_rule, _ in diagnostics)
    ):
        findings += (Finding.from_error(graph_result.cycle),)
    assumed: tuple[AssumedDependency, ...] = ()
    if options.empty_cluster:
        assumed = tuple(
            assumed_dependencies(
                await find_missing_for(workspace, unit_manifests, session), loaded.context
            )
        )
    return LintResult(loaded, graph_result, diagnostics, findings, assumed)


def _without_unknown_kinds(
    rejected: Iterable[Finding], diagnostics: Iterable[tuple[Rule, Diagnostic]]
) -> Iterator[Finding]:
    """Yield the findings, except about objects whose kind a rule has reported."""
    targets = (diagnostic.at for rule, diagnostic in diagnostics if rule.id == UNKNOWN_KIND_RULE)
    reported = {
        file_and_line(target.document.location)
        for target in targets
        if isinstance(target, FieldRef)
    }
    return (finding for finding in rejected if file_and_line(finding.location) not in reported)


def _with_auto_sync(unit_trees: Iterable[UnitTree]) -> tuple[list[UnitTree], list[Finding]]:
    """Return the unit trees with automated sync on, and a finding for each changed unit.

    A manual sync is linted like an automated one: its order is the same.
    """
    findings: list[Finding] = []
    synced_trees: list[UnitTree] = []
    for unit_tree in unit_trees:
        members: list[RenderedUnit] = []
        for member in unit_tree.members:
            unit = member.unit
            if unit.policy.semantics.name == ARGOCD.name and not unit.policy.auto_sync:
                findings.append(_manual_sync_finding(unit))
                policy = structs.replace(unit.policy, auto_sync=True)
                member = member.with_policy(policy)  # noqa: PLW2901
            members.append(member)
        synced_trees.append(replace(unit_tree, members=tuple(members)))
    return synced_trees, findings


def _manual_sync_finding(unit: Unit) -> Finding:
    return Finding(
        code="argo.manual",
        severity=Severity.NOTE,
        message=f"`{unit.id}` has no automated sync; linting it as if it were synced manually",
        location=unit.location,
        reason="without `syncPolicy.automated` Argo CD syncs the Application only on request",
        unit_names=(unit.id.qualified_name,),
        unit=unit.id,
        semantics=(ARGOCD.name,),
    )


def _plan_errors(error: PlanError | ExceptionGroup[Exception]) -> Iterator[TidegateError]:
    """Yield the errors that prevent a plan. Raises any other error again."""
    if isinstance(error, PlanError):
        yield error
        return
    plan_errors, other_errors = error.split(PlanError)
    if other_errors is not None or plan_errors is None:
        raise error
    yield from flatten_errors(plan_errors)


def _build_report(
    results: Iterable[LintResult],
    workspace: Workspace,
    config: Config,
    locator: DiagnosticLocator,
    options: LintOptions,
) -> LintReport:
    results = list(results)
    read_findings = [
        *workspace_findings(workspace, has_coverage=True),
        *(finding for result in results for finding in result.findings),
    ]
    unknown = tuple(
        UncheckedInput(finding.message, finding.location)
        for finding in read_findings
        if finding.code in UNAVAILABLE_CODES
    )
    located = soften_left_out_fields(
        (finding for finding in read_findings if finding.code not in UNAVAILABLE_CODES),
        workspace.members,
    )
    findings, ignored = _split_ignored(
        (
            *_loading_findings(map(_soften_uncertain, located), results, locator),
            *_rule_findings(results, locator),
        )
    )
    findings = without_repetitions(filter(workspace.scope.includes, findings), locator)
    overrides = {**config.lint.severity, **options.selection.severity_overrides}
    ordered = [_with_severity(finding, overrides) for finding in dict.fromkeys(findings)]
    remaining = [finding for finding in ordered if not is_ignored(finding, config.lint.ignore)]
    contexts = [result.loaded for result in results]
    object_count = sum(loaded.object_count for loaded in contexts)
    return LintReport(
        findings=tuple(finding for finding in remaining if options.selection.is_reported(finding)),
        unit_count=sum(loaded.unit_count for loaded in contexts),
        object_count=object_count,
        coverage=measure_coverage(workspace.members, object_count, options.command, read_findings),
        ignored_count=len(dict.fromkeys(ignored)) + len(ordered) - len(remaining),
        unchecked=tuple(
            dict.fromkeys(
                (
                    *unknown,
                    *(
                        unknown_input
                        for linted in contexts
                        for unknown_input in linted.unknown_inputs
                    ),
                )
            )
        ),
        assumed=tuple(dict.fromkeys(assumed for result in results for assumed in result.assumed))
        if options.empty_cluster
        else None,
        rule_titles={lint_rule.id: lint_rule.title for lint_rule in RULES.values()},
    )


def _soften_uncertain(finding: Finding) -> Finding:
    """Return a finding that depends on what was not read as a warning.

    Another repository may declare a source, or the cluster may have it. A field that only Tidegate
    does not support is no problem of the repository.
    """
    if finding.code == UNSUPPORTED_CODE:
        return structs.replace(finding, severity=Severity.NOTE)
    if finding.is_uncertain:
        return structs.replace(finding, severity=Severity.WARNING)
    if finding.code != MISSING_SOURCE_CODE:
        return finding
    reason = "unless the source already exists in the cluster, Flux waits for it forever"
    return structs.replace(finding, severity=Severity.WARNING, reason=reason)


def _loading_findings(
    findings: Iterable[Finding], results: Iterable[LintResult], locator: DiagnosticLocator
) -> Iterator[tuple[Finding, tuple[Document, ...]]]:
    """Yield the findings of loading, with the document at their location and that of their unit."""
    unit_resources = {
        unit: document
        for result in results
        for unit, document in result.loaded.context.unit_resources.items()
    }
    for finding in locator.files.locate_findings(findings):
        at_location = locator.files.find_document(finding.location)
        of_unit = unit_resources.get(finding.unit) if finding.unit else None
        yield _with_rule_code(finding), tuple(filter(None, (at_location, of_unit)))


def _rule_findings(
    results: Iterable[LintResult], locator: DiagnosticLocator
) -> Iterator[tuple[Finding, tuple[Document, ...]]]:
    """Yield the findings of rules, with the document that they are about."""
    for result in results:
        for rule, diagnostic in result.diagnostics:
            finding = rule.to_finding(diagnostic, locator)
            document = (
                diagnostic.at.document
                if isinstance(diagnostic.at, FieldRef)
                else locator.files.find_document(finding.location)
            )
            yield finding, (document,) if document else ()


def _split_ignored(
    findings: Iterable[tuple[Finding, tuple[Document, ...]]],
) -> tuple[list[Finding], list[Finding]]:
    """Return the reported findings, and those that an annotation of their document suppresses."""
    reported: list[Finding] = []
    ignored: list[Finding] = []
    for finding, documents in findings:
        entries = [
            entry
            for document in documents
            for entry in ignores_in(document)
            if entry.code == finding.code
        ]
        if any(entry.reason for entry in entries):
            ignored.append(finding)
            continue
        reported.append(finding)
        if entries:
            reported.append(_missing_reason_finding(entries[0], finding))
    return reported, ignored


def _missing_reason_finding(ignore: IgnoreEntry, finding: Finding) -> Finding:
    return Finding(
        code="lint.reason",
        severity=Severity.WARNING,
        message=f"`{ignore.code}` is not suppressed: the annotation gives no reason",
        location=finding.location,
        fix=f'add a reason: `tidegate.dev/ignore: "{ignore.code}: <reason>"`',
    )


def _with_rule_code(finding: Finding) -> Finding:
    """Return a finding of loading with the code of its rule."""
    rule = RULES.get(RULES_BY_FINDING_CODE.get(finding.code, ""))
    if rule is None:
        return finding
    return structs.replace(finding, code=rule.id, reason=finding.reason or rule.why)


def _with_severity(finding: Finding, overrides: Mapping[str, Severity]) -> Finding:
    severity = overrides.get(finding.code)
    return finding if severity is None else structs.replace(finding, severity=severity)


def _with_baseline(
    report: LintReport, options: LintOptions, locator: DiagnosticLocator
) -> LintReport:
    path = options.baseline
    if path is None:
        return replace(report, excerpts=locator.excerpts(report.findings))
    if options.update_baseline:
        path.write_bytes(write_baseline(report.findings))
        return replace(report, findings=(), baseline_count=len(report.findings))
    baseline = read_baseline(_read_baseline_file(path), str(path))
    new, old = split_by_baseline(report.findings, baseline)
    return replace(
        report, findings=tuple(new), baseline_count=len(old), excerpts=locator.excerpts(tuple(new))
    )


def _read_baseline_file(path: Path) -> bytes:
    try:
        return read_regular_file(path)
    except OSError as error:
        problem = f"cannot read baseline: {error.strerror}"
        hint = "create the file with `--update-baseline`"
        raise FileError("file.baseline", problem, location=Location(str(path)), hint=hint) from None


class RulePage(msgspec.Struct, frozen=True):
    """Documentation of a rule. `page` is Markdown."""

    code: str
    title: str
    severity: str
    why: str
    fix: str
    page: str


def has_rule(code: str) -> bool:
    """Return whether a code is a rule, or a finding that a rule reports."""
    return code.upper() in RULES or code in RULES_BY_FINDING_CODE


def rule_page(code: str) -> RulePage:
    """Return the page of a rule, also for the code of a finding that the rule reports."""
    rule = RULES.get(code.upper()) or RULES[RULES_BY_FINDING_CODE[code]]
    page = resources.files("tidegate.lint") / "pages" / f"{rule.id}.md"
    text = page.read_text(encoding="utf-8")
    return RulePage(rule.id, rule.title, rule.severity.value, rule.why, rule.fix, text)
