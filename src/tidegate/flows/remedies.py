"""What is done about a release that fails: an earlier revision is restored, or all of it goes.

Both are steps that rescue: they are planned before anything is written, and have their turn when
the release has failed. They are made of what its records say, in Helm's order, with Helm's hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from tidegate.dialect.helm.acting import act
from tidegate.dialect.helm.record import ReleaseRecord
from tidegate.dialect.manifests import Scope, read_sound_manifests
from tidegate.dialect.units import is_own_kind
from tidegate.documents import read
from tidegate.engine.means import FailingUnit
from tidegate.errors import DocumentError
from tidegate.flows.looking import body_of
from tidegate.flows.means import stale_of
from tidegate.health.budget import budget
from tidegate.model.ledger import Action, ReleaseSheet, ReleaseTerms
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.objects import Ref, identity
from tidegate.model.plan import Because, Deed, Edge, Fragment, Plan, PlannedUnit, Step, items_of
from tidegate.model.reading import mappings, text
from tidegate.model.unit import Destination, Unit
from tidegate.plan.build import build_plan
from tidegate.plan.chains import step_id
from tidegate.plan.deletion import build_deletion
from tidegate.plan.pruning import Stale, is_definition, prune_units
from tidegate.plan.releases import OBJECTS


def record_text(record: ReleaseRecord) -> str:
    """All objects of a revision, and its hooks."""
    hooks = (text(one, "manifest") for one in mappings(record.content, "hooks"))
    return _together((record.manifest, *hooks))


def sheet_text(sheet: ReleaseSheet) -> str:
    return _together((sheet.manifest, *(one.manifest for one in sheet.hooks)))


def roll_back(failing: FailingUnit, terms: ReleaseTerms, target: ReleaseRecord) -> Fragment | None:
    """Restore the objects of an earlier revision; what came with the one that failed goes."""
    wanted = _read_for(failing, terms, record_text(target), Action.ROLLBACK)
    if wanted is None:
        return None
    plan = build_plan((wanted,), budget=budget)
    kept = {identity(one.ref) for one in wanted.manifests}
    going = [one for one in _brought(failing) if identity(one.ref) not in kept]
    return _rescuing(prune_units(plan, [(plan.units[0], going)]))


def untried(failing: FailingUnit) -> Fragment:
    """The unit without further tries: there is no revision to go back to before each of them."""
    unit = failing.unit
    rules = unit.policy.semantics
    retry = msgspec.structs.replace(rules.retry, limit=0, rescues=False, rescues_last=False)
    policy = msgspec.structs.replace(
        unit.policy, semantics=msgspec.structs.replace(rules, retry=retry)
    )
    return Fragment(units=(msgspec.structs.replace(unit, policy=policy),))


def uninstall(
    failing: FailingUnit, terms: ReleaseTerms, content: str, brought: Iterable[Ref]
) -> Fragment | None:
    """Delete what the release has brought, and what its last good revision had."""
    wanted = _read_for(failing, terms, content, Action.UNINSTALL)
    if wanted is None:
        return None
    before = (_stale(failing, ref) for ref in brought)
    lives = {one.ref: one for one in (*filter(None, before), *_brought(failing))}
    return _rescuing(build_deletion(wanted, lives.values(), budget=budget))


def clean_up(failing: FailingUnit, terms: ReleaseTerms) -> Fragment:
    """Delete what was not there before, and what the release has made therefore."""
    unit = Unit(
        id=failing.unit.id,
        destination=Destination(failing.unit.cluster, terms.namespace),
        policy=failing.unit.policy,
    )
    made = [one for one in _brought(failing) if failing.find(one.ref) is None]
    return _rescuing(build_deletion(Manifests(unit=unit), made, budget=budget))


def _together(texts: Iterable[str]) -> str:
    return "".join(f"---\n{one}\n" for one in texts if one.strip())


def _read_for(
    failing: FailingUnit, terms: ReleaseTerms, content: str, action: Action
) -> Manifests | None:
    acting = msgspec.structs.replace(terms, action=action)
    return read_release_text(failing.unit, acting, content, failing.is_namespaced)


def read_release_text(
    planned: PlannedUnit, terms: ReleaseTerms, content: str, is_namespaced: Scope
) -> Manifests | None:
    """What a text asks for; None where it cannot be read: half of a release is none."""
    policy = act(planned.policy, terms)
    policy = msgspec.structs.replace(policy, creates_namespace=False)
    home = Destination(planned.cluster, terms.namespace)
    unit = Unit(id=planned.id, destination=home, policy=policy)
    try:
        documents = read(content, f"release {terms.name}")
    except DocumentError:
        return None
    found, wrong = read_sound_manifests(unit, documents, is_namespaced)
    manifests = tuple(one for one in found.manifests if _is_taken(one, is_namespaced))
    return None if wrong else msgspec.structs.replace(found, manifests=manifests)


def _is_taken(one: Manifest, is_namespaced: Scope) -> bool:
    """Own objects of units are written only where the cluster serves their kinds."""
    return not is_own_kind(one.ref.kind) or is_namespaced(one.ref.kind) is not None


def _brought(failing: FailingUnit) -> Iterator[Stale]:
    """What the unit is about to write and nobody else has; definitions stay."""
    for item in (item for step in failing.steps for item in items_of(step)):
        is_own = item.deed is Deed.APPLY and item.hook is None
        if not is_own or is_definition(item.ref.kind):
            continue
        if failing.find(item.ref) is None or _stale(failing, item.ref) is not None:
            yield Stale(item.ref, handling=item.handling)


def _stale(failing: FailingUnit, ref: Ref) -> Stale | None:
    """An object that lives and is the unit's."""
    live = failing.find(ref)
    return None if live is None else stale_of(body_of(live), failing.unit)


def _rescuing(plan: Plan) -> Fragment:
    """The steps of a plan as what is done about a failure, one after another."""
    unit = plan.units[0]

    def rescuing(step: Step) -> Step:
        stage = f"{Action.ROLLBACK}/{OBJECTS}" if step.stage == OBJECTS else step.stage
        name = step_id(unit, stage) if stage != step.stage else step.id
        return msgspec.structs.replace(step, id=name, stage=stage, rescues=True)

    steps = [rescuing(step) for step in plan.steps if step.batches]
    edges = (Edge(one.id, other.id, Because.STAGE) for one, other in pairwise(steps))
    return Fragment(steps=tuple(steps), edges=tuple(edges))
