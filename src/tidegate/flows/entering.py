"""What the user points at, found for the clusters that are chosen.

async with open_found(pointed, target, setting) as (session, found):
    planned = await make_plan(found.families, session)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from tidegate.errors import PlanError
from tidegate.flows.discover import Discovered, Family, Member, choose, discover
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Setting
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.session import Session, Target, open_session
from tidegate.model.finding import Finding, Severity

UNKNOWN = Capabilities()


@dataclass(frozen=True, slots=True)
class Found:
    """The families that are meant, and what is to be said of the repository."""

    families: tuple[Family, ...]
    findings: tuple[Finding, ...] = ()
    are_alternatives: bool = False

    @classmethod
    def of(cls, found: Discovered, pointed: Pointed) -> Found:
        families = choose(found, pointed)
        return cls(families, found.findings, Discovered(families).are_alternatives)

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(member for family in self.families for member in family.members)

    @property
    def one(self) -> tuple[Family, ...]:
        """All families, where they can be rolled out together. Raises where only one is meant."""
        if self.are_alternatives:
            names = ", ".join(f"`{one.entry}`" for one in self.families)
            problem = f"several entries bring the same units: {names}"
            hint = "`--entry NAME` says which one is meant"
            raise PlanError("plan.entry", problem, hint=hint)
        return self.families

    def apart(self) -> list[Found]:
        """One for each alternative; they are not rolled out together."""
        if not self.are_alternatives:
            return [self]
        return [Found((one,), self.findings) for one in self.families]

    def refuse_faults(self, more: tuple[Finding, ...], *, keeps_going: bool) -> None:
        """Raise where something is wrong with a unit, unless the others shall go on without it."""
        faults = [one for one in (*self.findings, *more) if one.severity is Severity.ERROR]
        if faults and not keeps_going:
            count = f"{len(faults)} error{'s' if len(faults) != 1 else ''}"
            problem = f"nothing is written: there {'is' if len(faults) == 1 else 'are'} {count} above"
            hint = "`--keep-going` leaves out the units at fault, and what waits for them"
            raise PlanError("plan.faults", problem, hint=hint)


@asynccontextmanager
async def open_found(
    pointed: Pointed, target: Target, setting: Setting
) -> AsyncIterator[tuple[Session, Found]]:
    """The world of a target, and what is pointed at, rendered for it.

    A simulated world has a cluster for each destination.
    """
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(open_session(target, setting))
        known = target.contexts

        async def ask(cluster: str) -> Capabilities:
            return await session.capabilities(cluster if cluster in known else next(iter(known)))

        found = Found.of(await discover(pointed, setting, ask), pointed)
        missing = [one for one in clusters_of(found.families) if one not in known]
        if missing and target.simulation is None:
            raise _no_context(missing)
        if missing:
            await stack.aclose()
            named = tuple((name, context or "") for name, context in known.items())
            grown = replace(target, clusters=(*named, *((name, "") for name in missing)))
            session = await stack.enter_async_context(open_session(grown, setting))
        yield session, found


async def find(pointed: Pointed, setting: Setting) -> Found:
    """The same for no cluster in particular."""

    async def ask(_cluster: str) -> Capabilities:
        return UNKNOWN

    return Found.of(await discover(pointed, setting, ask), pointed)


def clusters_of(families: Iterable[Family]) -> list[str]:
    """The clusters that units are for, each once."""
    members = (member for family in families for member in family.members)
    return list(dict.fromkeys(one.unit.destination.cluster for one in members))


def _no_context(missing: list[str]) -> PlanError:
    names = ", ".join(f"`{one}`" for one in missing)
    problem = f"units are for clusters that nobody has named here: {names}"
    hint = "`--cluster NAME=CONTEXT` says which context of the kubeconfig each is"
    return PlanError("plan.cluster", problem, hint=hint)
