"""What the user points at, found for the clusters that are chosen.

async with open_found(pointed, target, setting) as (session, found):
    planned = await make_plan(found.families, session)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import structs
from msgspec.structs import replace

from tidegate.dialect.argo.customizing import read_customs, with_customs
from tidegate.dialect.semantics import told_policy
from tidegate.dialect.units import MARKS
from tidegate.errors import Place, PlanError, WordsError
from tidegate.flows.cluster_data import ClusterData
from tidegate.flows.cluster_lookups import ClusterLookups
from tidegate.flows.cluster_releases import ClusterReleases
from tidegate.flows.config import config_at
from tidegate.flows.discover import Discovered, Family, Member, choose, discover
from tidegate.flows.discover.customs import APPLICATION
from tidegate.flows.discover.rolling import told_rolling
from tidegate.flows.discover.scan import Scan
from tidegate.flows.discover.sets import clusters_in
from tidegate.flows.looking import living
from tidegate.flows.misspelling import find_misspellings
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Setting
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.session import Session, Target, open_session
from tidegate.health.lua import LuaRules
from tidegate.model.config import Switch
from tidegate.model.expressions import HealthExpressions
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.model.policy import Policy, Tracking, forcing
from tidegate.model.rendering import NOWHERE
from tidegate.model.unit import Unit, UnitId

UNKNOWN = Capabilities()
WISHES = (
    *("prunes", "consents", "allows_empty", "deletes_contents"),
    *("carries_on", "runs_hooks", "adopts_name"),
)
"""What is done to all units where somebody asks for it."""


class Found(msgspec.Struct, frozen=True):
    """The families that are meant, and what is to be said of the repository.

    `opaque`: units that cannot be looked into, and are taken to be well. `settings`: what the real
    controllers are told. `scan`: the tree that all places are in.
    """

    families: tuple[Family, ...]
    findings: tuple[Finding, ...] = ()
    are_alternatives: bool = False
    opaque: frozenset[UnitId] = frozenset()
    settings: Mapping[str, Switch] = msgspec.field(default_factory=dict)
    scan: Scan = msgspec.field(default_factory=lambda: Scan(NOWHERE, ()))

    @classmethod
    def of(cls, found: Discovered, pointed: Pointed, scripts: LuaRules) -> Found:
        """`scripts`: all health rules that are used."""
        if found.is_repository and pointed.said:
            raise _for_plain_units(pointed)
        gates_children = scripts.lookup(*APPLICATION) is not None
        settings = found.settings
        told = (_told(one, settings, gates_children) for one in choose(found, pointed))
        families = tuple(_wished(one, pointed.policy) for one in told)
        together = Discovered(families)
        members = (member for family in families for member in family.members)
        return cls(
            families,
            (*found.findings, *find_misspellings(members, found.scan.root)),
            together.are_alternatives,
            settings=found.settings,
            scan=found.scan,
        )

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(member for family in self.families for member in family.members)

    @property
    def one(self) -> tuple[Family, ...]:
        """All families, where they can be rolled out together. Raises where only one is meant."""
        if self.are_alternatives:
            names = [f"`{one.entry}` ({one.members[0].unit.where})" for one in self.families]
            problem = f"several entries bring the same units: {', '.join(names)}"
            hint = "`--entry NAME` or `--entry FILE` says which one is meant"
            raise PlanError("plan.entry", problem, hint=hint)
        return self.families

    def findings_of(self, members: Iterable[Member]) -> tuple[Finding, ...]:
        """What is said of these units alone."""
        wanted = {(one.unit.id, one.unit.where) for one in members}
        return tuple(
            one for one, units in self._spoken_of() if any((u.id, u.where) in wanted for u in units)
        )

    @property
    def findings_by_unit(self) -> dict[tuple[UnitId, Place | None], tuple[Finding, ...]]:
        """By unit and its place, what is said of it."""
        found: dict[tuple[UnitId, Place | None], list[Finding]] = {}
        for one, units in self._spoken_of():
            for unit in units:
                found.setdefault((unit.id, unit.where), []).append(one)
        return {unit: tuple(said) for unit, said in found.items()}

    @property
    def at_fault(self) -> dict[UnitId, str]:
        """The units in whose text an error stands, and which."""
        return self.at_fault_for()

    def at_fault_for(self, codes: Collection[str] = ()) -> dict[UnitId, str]:
        """The same, for errors with these codes alone."""
        faults: dict[UnitId, str] = {}
        for finding, units in self._spoken_of():
            if finding.severity is Severity.ERROR and (not codes or finding.code in codes):
                for unit in units:
                    faults.setdefault(unit.id, finding.sentence)
        return faults

    def _spoken_of(self) -> Iterator[tuple[Finding, list[Unit]]]:
        """Findings with a place, each with the units that it speaks of.

        Those that it names, else what begins at the last line before it where one begins.
        """
        files: dict[str, list[tuple[int, Unit]]] = {}
        for unit in (one.unit for one in self.members):
            if unit.where is not None:
                files.setdefault(unit.where.name, []).append((unit.where.line, unit))
        for one in self.findings:
            here = files.get(one.where.name, []) if one.where else []
            if one.where is None or not here:
                continue
            if one.about:
                yield one, [unit for _, unit in here if unit.id.called in one.about]
            else:
                lines = (line for line, _ in here if 0 < line <= one.where.line)
                first = max(lines, default=one.where.line)
                yield one, [unit for line, unit in here if line == first]

    def apart(self) -> list[Found]:
        """One for each alternative; they are not rolled out together."""
        if not self.are_alternatives:
            return [self]
        return [replace(self, families=(one,), are_alternatives=False) for one in self.families]

    def refuse_faults(self, more: tuple[Finding, ...], *, keeps_going: bool) -> None:
        """Raise where something is wrong with a unit, unless the others shall go on without it."""
        faults = [one for one in (*self.findings, *more) if one.severity is Severity.ERROR]
        if faults and not keeps_going:
            count = f"{len(faults)} error{'s' if len(faults) != 1 else ''}"
            problem = (
                f"nothing is written: there {'is' if len(faults) == 1 else 'are'} {count} above"
            )
            hint = "`--keep-going` leaves out the units at fault, and what waits for them"
            raise PlanError("plan.faults", problem, hint=hint)


def _told(family: Family, settings: Mapping[str, Switch], gates_children: bool) -> Family:  # noqa: FBT001 - one of three
    """The units as their controllers run them, by what these are told."""
    customs = read_customs(settings)

    def told(member: Member) -> Member:
        unit = member.unit
        policy = told_policy(unit.policy, settings, unit.id.namespace)
        if policy.tracking is Tracking.ARGO:
            is_child = unit.parent is not None and unit.parent.kind == unit.id.kind
            policy = with_customs(policy, customs, gates_children=gates_children, is_child=is_child)
        return replace(member, unit=structs.replace(unit, policy=policy))

    members = tuple(map(told, family.members))
    return told_rolling(replace(family, members=members), settings)


def spot_of(place: Place | None) -> tuple[str, int]:
    """A file and a line of it."""
    return (place.name, place.line) if place else ("", 0)


@asynccontextmanager
async def open_found(
    pointed: Pointed, target: Target, setting: Setting
) -> AsyncIterator[tuple[Session, Found]]:
    """The world of a target, and what is pointed at, rendered for it.

    A unit may be for a cluster that nobody has named so far: of simulated ones there is one for
    each, of real ones the configuration says which context it is.
    """
    expressions = await asyncio.to_thread(_expressions_near, Path(pointed.what))
    target = replace(target, expressions=expressions)
    async with AsyncExitStack() as stack:
        session, found = await _enter(pointed, target, setting, stack)
        missing = [one for one in clusters_of(found.families) if one not in target.contexts]
        if missing:
            await stack.aclose()
            named = _named(missing, pointed, target)
            grown = replace(target, clusters=(*target.contexts.items(), *named))
            session, found = await _enter(pointed, grown, setting, stack)
        yield session, found


def _expressions_near(place: Path) -> tuple[HealthExpressions, ...]:
    """Those of the repository that a path lies in; an address has none."""
    return config_at(place).health if place.exists() else ()


async def _enter(
    pointed: Pointed, target: Target, setting: Setting, stack: AsyncExitStack
) -> tuple[Session, Found]:
    session = await stack.enter_async_context(open_session(target, setting))
    return session, await find_in(session, pointed)


async def find_in(session: Session, pointed: Pointed) -> Found:
    """What is pointed at as it is now, for the clusters of a session."""
    target, setting = session.target, session.setting
    known = target.contexts
    setting = replace(setting, ask_data=ClusterData(session.world, next(iter(known))))
    releases = ClusterReleases(session.world, known, next(iter(known)))
    setting = replace(setting, ask_release=releases, ask_manifest=releases.manifest)
    setting = replace(
        setting, ask_lookup=ClusterLookups(session), simulates=bool(target.simulation)
    )

    async def ask(cluster: str) -> Capabilities:
        return await session.capabilities(session.place_of(cluster))

    async def lives(
        kind: str, cluster: str, namespace: str
    ) -> Mapping[str, dict[str, Json]] | None:
        place = session.place_of(cluster)
        found = await living(session.world, kind, namespace, cluster=place)
        if kind == "Secret":
            session.registered[place, namespace] = clusters_in((found or {}).values())
        return found or None if target.simulation else found  # it knows no Argo CD by itself

    session.registered.clear()
    found = await discover(pointed, setting, ask, lives)
    session.settled_clusters = found.clusters
    customs = read_customs(found.settings)
    session.follow(found.scripts, customs.label if customs.labels_only else "")
    session.tree = found.scan.root
    return Found.of(found, pointed, session.craft.scripts)


def _named(missing: list[str], pointed: Pointed, target: Target) -> list[tuple[str, str | None]]:
    """The contexts of clusters, by the repository's configuration. Raises where it has none.

    The cluster without a name is the one that somebody would have without naming any.
    """
    if target.simulation is not None:
        return [(name, None) for name in missing]
    config = config_at(Path(pointed.what))
    found: dict[str, str | None] = {"": target.context}
    found |= {name: one.context for name in missing if (one := config.find_cluster(name))}
    strange = [name for name in missing if name not in found]
    if strange:
        raise _no_context(strange)
    return [(name, found[name]) for name in missing]


async def find(pointed: Pointed, setting: Setting, *, only_units: bool = False) -> Found:
    """The same for no cluster in particular.

    With `only_units`, charts and overlays that bring none need not be rendered.
    """
    setting = replace(setting, seeks=MARKS if only_units else None)

    async def ask(_cluster: str) -> Capabilities:
        return UNKNOWN

    found = await discover(pointed, setting, ask)
    return Found.of(found, pointed, found.scripts)


def clusters_of(families: Iterable[Family]) -> list[str]:
    """The clusters that units are for, each once."""
    members = (member for family in families for member in family.members)
    return list(dict.fromkeys(one.unit.destination.cluster for one in members))


def _wished(family: Family, wishes: Policy) -> Family:
    """The family with what somebody wishes for all units, beside what each says of itself."""

    def wished(member: Member) -> Member:
        unit, own = member.unit, member.unit.policy
        if own is wishes:
            return member
        policy = msgspec.structs.replace(
            own,
            **{one: getattr(own, one) or getattr(wishes, one) for one in WISHES},
            ignores=(*own.ignores, *wishes.ignores),
            handling=forcing(own, wishes.handling.forces).handling,
            identity=own.identity or wishes.identity,
        )
        return replace(member, unit=msgspec.structs.replace(unit, policy=policy))

    return replace(family, members=tuple(map(wished, family.members)))


def refuse_unnamed(found: Found, session: Session) -> None:
    """Raise where units are for a cluster that the session does not have."""
    refuse_unnamed_clusters(clusters_of(found.families), session)


def refuse_unnamed_clusters(names: Iterable[str], session: Session) -> None:
    """Raise where the session does not have a cluster of such a name."""
    missing = [one for one in dict.fromkeys(names) if one not in session.target.contexts]
    if missing:
        raise _no_context(missing)


def _for_plain_units(pointed: Pointed) -> WordsError:
    said = ", ".join(f"`{one}`" for one in pointed.said)
    verb = "is" if len(pointed.said) == 1 else "are"
    problem = (
        f"{said} {verb} for a plain directory, chart or overlay, and here units say it themselves"
    )
    hint = "write it into the unit, or point at one directory of manifests"
    return WordsError("words.plain", problem, where=Place(pointed.what), hint=hint)


def _no_context(missing: list[str]) -> PlanError:
    names = ", ".join(f"`{one}`" for one in missing)
    problem = f"units are for clusters that are not known here: {names}"
    hint = "`--cluster NAME=CONTEXT`, or `clusters` in tidegate.yaml, says which context each is"
    return PlanError("plan.cluster", problem, hint=hint)
