"""What rules say of a repository, beside what was found while it was read: one list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.errors import FileError, Place, PlanError, TidegateError, WordsError, errors_of
from tidegate.files import read_whole
from tidegate.flows.absences import absences_of
from tidegate.flows.config import config_at
from tidegate.flows.discover import Family, Member
from tidegate.flows.discover.far import FAR
from tidegate.flows.entering import Found, open_found, spot_of
from tidegate.flows.graph import Graphed, make_graph
from tidegate.flows.lint_places import LintPlaces
from tidegate.flows.lint_scene import LintedScene, as_assumed, look_around
from tidegate.flows.pointing import Pointed
from tidegate.flows.reading import read_members
from tidegate.flows.refusals import find_refusals
from tidegate.flows.rendering import Setting
from tidegate.flows.session import Session, Target
from tidegate.flows.weakness import findings_of
from tidegate.lint.baseline import read_baseline, without_known, write_baseline
from tidegate.lint.catalogue import READ_AS, RULES
from tidegate.lint.rule import Mark, Rule, RuleRemark, check
from tidegate.lint.selection import Ignore, RuleChoice, ignores_of, is_spared
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.semantics import ARGOCD, Semantics
from tidegate.model.unit import Unit
from tidegate.report.lint.report import Assumed, LintReport, Unknown

CIRCLE = "ORD002"
ECHOES = {
    "argo.annotation": "ORD013",
    "flux.vacuous": "ORD017",
    "ORD025": "argo.hook",
}
"""What is not said where another has spoken of the very same thing."""
NOT_OF_TEXTS = frozenset({"argo.set-unmatched", "units.unpruned"})
"""Codes of what is told of a rollout, or of a set and not of each of its Applications."""
NO_KIND = "ORD062"
OF_TEXTS = frozenset({"preflight.invalid", "preflight.not-served"})
"""Codes of what every server refuses, whatever else is there."""
ELSEWHERE = "source.object"
NOT_HAD = FAR - {ELSEWHERE}
"""Codes of what could not be fetched: that is nobody's mistake, and weakens what is said."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How somebody wants a repository to be linted."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    levels: Mapping[str, Severity] = msgspec.field(default_factory=dict)
    rules: Semantics | None = None
    greenfield: bool = False
    baseline: Path | None = None
    updates: bool = False

    @property
    def choice(self) -> RuleChoice:
        return RuleChoice(
            select=self.select, ignore=self.ignore, severity=self.severity, levels=self.levels
        )


async def lint(pointed: Pointed, target: Target, setting: Setting, asking: Asking) -> LintReport:
    """All that is to be said, what hurts most first."""
    config, setting = _config_of(pointed), replace(setting, stands_in=True)
    async with open_found(pointed, target, setting) as (session, found):
        looks = [await look(one, session, asking) for one in found.apart()]
        places = LintPlaces.of(found.scan.root)
        report = _together(looks, found, config, places, asking)
        return _with_baseline(report, asking, places)


def _config_of(pointed: Pointed) -> Config:
    path = Path(pointed.what)
    return config_at(path) if path.exists() else Config()


class _EntryLook(msgspec.Struct, frozen=True):
    """What one entry, or all that go together, come to."""

    looked: LintedScene
    remarks: tuple[tuple[Rule, RuleRemark], ...]
    findings: tuple[Finding, ...]
    assumed: tuple[Assumed, ...] = ()


async def look(found: Found, session: Session, asking: Asking) -> _EntryLook:
    """What rules say of units that are rendered already."""
    findings: tuple[Finding, ...] = ()
    graphed: Graphed | None = None
    families, manual = _started(found.families)
    try:
        graphed = await make_graph(families, session, asking.rules)
    except (PlanError, ExceptionGroup) as error:
        findings = tuple(map(_unplanned, _errors(error)))
    if graphed is not None:
        planned = (one for one in graphed.planned.findings if one.code not in NOT_OF_TEXTS)
        findings = (*planned, *manual, *map(_noted, graphed.planned.notes))
    read = graphed.planned.read if graphed else await read_members(found.members, session)
    looked = look_around(found, session, graphed, read, greenfield=asking.greenfield)
    wanted = [one for one in RULES.values() if asking.choice.takes(one.id)]
    remarks = tuple(check(looked.scene, wanted))
    if graphed is not None:
        refused = (await find_refusals(graphed.planned.plan, session)).findings
        findings += tuple(_refused_texts(refused, remarks))
    if graphed is not None and graphed.circle and not any(one.id == CIRCLE for one, _ in remarks):
        findings += (_unplanned(graphed.circle),)
    assumed: tuple[Assumed, ...] = ()
    if asking.greenfield:
        assumed = tuple(as_assumed(await absences_of(found, read, session), looked.scene))
    return _EntryLook(looked, remarks, findings, assumed)


def _refused_texts(
    refused: Iterable[Finding], remarks: Iterable[tuple[Rule, RuleRemark]]
) -> Iterator[Finding]:
    """What every server refuses, but for objects whose kind a rule has spoken of."""
    marks = (remark.at for rule, remark in remarks if rule.id == NO_KIND)
    told = {spot_of(one.document.place) for one in marks if isinstance(one, Mark)}
    for one in refused:
        if one.code in OF_TEXTS and spot_of(one.where) not in told:
            yield one


def _started(families: Iterable[Family]) -> tuple[list[Family], list[Finding]]:
    """The families as if somebody synced what nobody syncs: a person will, in the same order."""
    manual: list[Finding] = []
    started: list[Family] = []
    for family in families:
        members: list[Member] = []
        for member in family.members:
            unit = member.unit
            if unit.policy.semantics.name == ARGOCD.name and not unit.policy.starts:
                manual.append(_manual(unit))
                policy = structs.replace(unit.policy, starts=True)
                member = replace(member, unit=structs.replace(unit, policy=policy))  # noqa: PLW2901
            members.append(member)
        started.append(replace(family, members=tuple(members)))
    return started, manual


def _manual(unit: Unit) -> Finding:
    return Finding(
        code="argo.manual",
        severity=Severity.NOTE,
        sentence=f"nobody syncs `{unit.id}` by itself: it is looked at as if somebody did",
        where=unit.where,
        why="it has no `syncPolicy.automated`, so that Argo CD waits for a person",
        about=(unit.id.called,),
        semantics=(ARGOCD.name,),
    )


def _errors(error: PlanError | ExceptionGroup[Exception]) -> Iterator[TidegateError]:
    """What keeps the units from being put in order; anything else is no finding."""
    if isinstance(error, PlanError):
        yield error
        return
    ours, others = error.split(PlanError)
    if others is not None or ours is None:
        raise error
    yield from errors_of(ours)


def _unplanned(error: TidegateError) -> Finding:
    return _told(error, Severity.ERROR)


def _noted(error: TidegateError) -> Finding:
    """What is not certain of what was rendered, such as that it came to nothing."""
    return _told(error, Severity.NOTE)


def _told(error: TidegateError, severity: Severity) -> Finding:
    return Finding(
        code=error.code,
        severity=severity,
        sentence=error.problem,
        where=error.where,
        fix=error.hint,
    )


def _together(
    looks: Iterable[_EntryLook], found: Found, config: Config, places: LintPlaces, asking: Asking
) -> LintReport:
    looks = list(looks)
    read = [*findings_of(found), *(one for look in looks for one in look.findings)]
    unknown = tuple(Unknown(one.sentence, one.where) for one in read if one.code in NOT_HAD)
    known = (one for one in read if one.code not in NOT_HAD)
    told = [_as_rule(one) for one in places.files.of_findings(map(_perhaps_there, known))]
    spared: list[tuple[Finding, str]] = []
    for look in looks:
        for rule, remark in look.remarks:
            finding = rule.say(remark, places)
            ignore = _ignore_of(remark, rule)
            if ignore is not None and ignore.reason:
                spared.append((finding, ignore.reason))
                continue
            told.append(finding)
            if ignore is not None:
                told.append(_no_reason(ignore, finding))
    told = _without_echoes(told)
    levels = {**config.lint.severity, **asking.choice.levels}
    ordered = [_levelled(one, levels) for one in dict.fromkeys(told)]
    kept = [one for one in ordered if not is_spared(one, config.lint.ignore)]
    scenes = [look.looked for look in looks]
    return LintReport(
        findings=tuple(one for one in kept if asking.choice.shows(one)),
        units=sum(one.units for one in scenes),
        objects=sum(one.objects for one in scenes),
        ignored=len(dict.fromkeys(one for one, _ in spared)) + len(ordered) - len(kept),
        unknown=tuple(dict.fromkeys((*unknown, *(one for look in scenes for one in look.unknown)))),
        greenfield=tuple(dict.fromkeys(one for look in looks for one in look.assumed))
        if asking.greenfield
        else None,
        rules={one.id: one.title for one in RULES.values()},
    )


def _perhaps_there(finding: Finding) -> Finding:
    """Of a source that nobody here declares: another repository may, or the cluster has it."""
    if finding.code != ELSEWHERE:
        return finding
    why = "it may be in the cluster already; else Flux waits for it in vain"
    return structs.replace(finding, severity=Severity.WARNING, why=why)


def _without_echoes(told: list[Finding]) -> list[Finding]:
    """What is said of an annotation is not said again by whoever else reads it."""
    spots = {(one.code, spot_of(one.where)) for one in told}
    return [one for one in told if (ECHOES.get(one.code), spot_of(one.where)) not in spots]


def _ignore_of(remark: RuleRemark, rule: Rule) -> Ignore | None:
    if not isinstance(remark.at, Mark):
        return None
    return next((one for one in ignores_of(remark.at.document) if one.code == rule.id), None)


def _no_reason(ignore: Ignore, finding: Finding) -> Finding:
    return Finding(
        code="lint.reason",
        severity=Severity.WARNING,
        sentence=f"`{ignore.code}` is not ignored here, as nobody says why",
        where=finding.where,
        fix=f'write "{ignore.code}: " and a reason behind it',
    )


def _as_rule(finding: Finding) -> Finding:
    """What was found while reading, under the rule that it is."""
    rule = RULES.get(READ_AS.get(finding.code, ""))
    if rule is None:
        return finding
    return structs.replace(finding, code=rule.id, why=finding.why or rule.why)


def _levelled(finding: Finding, levels: Mapping[str, Severity]) -> Finding:
    level = levels.get(finding.code)
    return finding if level is None else structs.replace(finding, severity=level)


def _with_baseline(report: LintReport, asking: Asking, places: LintPlaces) -> LintReport:
    path = asking.baseline
    if path is None:
        return replace(report, excerpts=places.excerpts(report.findings))
    if asking.updates:
        path.write_bytes(write_baseline(report.findings))
        return replace(report, findings=(), known=len(report.findings))
    baseline = read_baseline(_text_of(path), str(path))
    new, old = without_known(report.findings, baseline)
    return replace(
        report, findings=tuple(new), known=len(old), excerpts=places.excerpts(tuple(new))
    )


def _text_of(path: Path) -> bytes:
    try:
        return read_whole(path)
    except OSError as error:
        problem = f"this baseline cannot be read: {error.strerror}"
        hint = "`--update-baseline` writes it"
        raise FileError("file.baseline", problem, where=Place(str(path)), hint=hint) from None


class RulePage(msgspec.Struct, frozen=True):
    """What there is to say of a rule; `page` is Markdown."""

    code: str
    title: str
    severity: str
    why: str
    fix: str
    page: str


def page_of(code: str) -> RulePage:
    """All of a rule. Raises a WordsError where there is none."""
    rule = RULES.get(code.upper()) or RULES.get(READ_AS.get(code, ""))
    if rule is None:
        problem = f"there is no rule `{code}`"
        hint = f"there are {', '.join(RULES)}"
        raise WordsError("words.rule", problem, hint=hint)
    page = resources.files("tidegate.lint") / "pages" / f"{rule.id}.md"
    text = page.read_text(encoding="utf-8")
    return RulePage(rule.id, rule.title, rule.severity.value, rule.why, rule.fix, text)
