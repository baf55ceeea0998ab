"""Objects in the namespaces of a project that belong to nobody: `orphanedResources`."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.dialect.argo.customizing import ALWAYS
from tidegate.dialect.argo.permits import fits_kind, refuse_object
from tidegate.flows.looking import body_of
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Kind, Live, Ref, identity
from tidegate.model.project import OrphanRules, Reach
from tidegate.model.reading import listed
from tidegate.model.unit import Unit
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed

MOST_NAMED = 5
ALWAYS_THERE = frozenset(
    [
        ("Service", "default", "kubernetes"),
        ("ConfigMap", "", "kube-root-ca.crt"),
        ("ServiceAccount", "", "default"),
    ]
)
"""What every cluster or namespace has; without a namespace, in all of them."""


async def find_strays(wanted: Iterable[Manifests], session: Session) -> list[Finding]:
    """One finding for each Application whose project warns of what belongs to nobody."""
    wanted = tuple(wanted)
    known = {identity(one.ref) for each in wanted for one in each.manifests}
    lives: dict[tuple[str, str], list[Live]] = {}
    findings = []
    for unit in (one.unit for one in wanted):
        reach, home = unit.policy.reach, unit.destination.namespace
        rules = reach.project.orphans if reach is not None else None
        if reach is None or rules is None or not rules.warns or not home or unit.claim is None:
            continue
        place = (unit.destination.cluster, home)
        if place not in lives:
            lives[place] = await _look(place, session)
        own = (one for one in lives[place] if identity(one.ref) not in known)
        strays = [
            one.ref
            for one in own
            if not session.craft.owner(body_of(one)) and _is_stray(one, reach, rules)
        ]
        findings += [_told(unit, reach, strays)] if strays else []
    return findings


async def _look(place: tuple[str, str], session: Session) -> list[Live]:
    """All that lives in a namespace, of kinds that can be listed."""
    cluster, namespace = place
    kinds: dict[tuple[str, str], Kind] = {}
    for one in await session.kinds(cluster):
        kind = one.kind
        is_left_alone = any(each.fits(kind.group, kind.name, "") for each in ALWAYS)
        if one.namespaced and "list" in one.verbs and not is_left_alone:
            kinds.setdefault((kind.group, kind.name), kind)
    questions = (List(Selection(kind, namespace)) for kind in kinds.values())
    pages = await ask(session.world, *questions, cluster=cluster)
    found = [live for page in pages if isinstance(page, Listed) for live in page.items]
    services = {one.ref.name for one in found if one.ref.kind.name == "Service"}
    return [one for one in found if not _is_made(one.ref, services)]


def _is_made(ref: Ref, services: set[str]) -> bool:
    """Endpoints are a Service's, though they do not say so."""
    return ref.kind.name == "Endpoints" and ref.name in services


def _is_stray(live: Live, reach: Reach, rules: OrphanRules) -> bool:
    body, ref = body_of(live), live.ref
    names = {(ref.kind.name, one, ref.name) for one in ("", ref.namespace)}
    if names & ALWAYS_THERE or listed(body, "metadata", "ownerReferences"):
        return False
    if any(fits_kind(one, ref, named=True) for one in rules.ignored):
        return False
    return refuse_object(reach, ref, namespaced=True) is None


def _told(unit: Unit, reach: Reach, strays: list[Ref]) -> Finding:
    names = ", ".join(f"{one.kind.name} `{one.name}`" for one in strays[:MOST_NAMED])
    more = f" and {len(strays) - MOST_NAMED} more" if len(strays) > MOST_NAMED else ""
    is_one = len(strays) == 1
    count = "1 object belongs" if is_one else f"{len(strays)} objects belong"
    return Finding(
        code="argo.orphaned",
        severity=Severity.WARNING,
        sentence=f"beside `{unit.id}`, {count} to nobody: {names}{more}",
        where=unit.where,
        why=f"{reach.project.place_of('orphanedResources')} asks for a warning",
        fix="add them to Git, delete them, or name them in `ignore` there",
    )
