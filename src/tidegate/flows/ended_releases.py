"""Uninstall of releases whose units were removed from Git or moved.

The record of a release says which objects are deleted and which hooks run before and after, as
for `helm uninstall`. HelmReleases that Flux deployed are found without a Tidegate record:

    Kustomization ── status.inventory ──▶ HelmRelease ── status.history ──▶ Helm records

kustomize-controller prunes what its inventory names and its labels own. helm-controller
uninstalls the release in the HelmRelease's status, removes its finalizer, and deletes the
HelmChart it created.
"""

from __future__ import annotations

import msgspec

from tidegate.dialect.helm.acting import with_action
from tidegate.dialect.helm.belonging import manifest_refs, newest_record
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    ReleaseStatus,
    read_record,
    release_selector,
)
from tidegate.dialect.semantics import KSTATUS
from tidegate.errors import Location
from tidegate.flows.bringing import KnownKinds
from tidegate.flows.looking import get_objects, object_body
from tidegate.flows.means import prune_candidate
from tidegate.flows.remedies import parse_release, record_manifest
from tidegate.flows.session import Session
from tidegate.health.budget import budget
from tidegate.model.ledger import ReleaseAction, ReleaseSpec
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Propagation, Ref
from tidegate.model.plan import Plan, PlanFragment
from tidegate.model.policy import ObjectOptions, Order, Policy, Tracking
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.build import plan_unit
from tidegate.plan.deletion import build_deletion
from tidegate.plan.joints import end_step
from tidegate.world.ask import send_requests
from tidegate.world.calls import List, Selection
from tidegate.world.facts import ListPage, is_error
from tidegate.world.refusals import error_from_outcome

UNINSTALL_POLICY = Policy(
    rules=KSTATUS,
    order=Order.HELM,
    tracking=Tracking.FLUX,
    manager="helm-controller",
    handling=ObjectOptions(propagation=Propagation.BACKGROUND),
)


def uninstall_policy(release: ReleaseSpec) -> Policy:
    """Return the policy for uninstalling a release."""
    return with_action(
        UNINSTALL_POLICY, msgspec.structs.replace(release, action=ReleaseAction.UNINSTALL)
    )


async def read_uninstall(
    unit: Unit, session: Session, hook_owner: UnitId | None = None
) -> tuple[Manifests, tuple[Ref, ...]]:
    """Return the uninstall hooks of a release, and the objects that are deleted with it.

    `hook_owner`: the unit in the ownership marker of the hooks, if it is another one.
    """
    release, nothing = unit.policy.release, Manifests(unit=unit)
    if release is None:
        return nothing, ()
    cluster, location = unit.destination.cluster, f"unit {unit.id}"
    latest = newest_record(await read_records(release, cluster, session, location=location))
    if latest is None:
        return nothing, ()
    catalog = session.evaluator.rules.known
    kinds = KnownKinds.from_served(await session.kinds(unit.destination.cluster), (), catalog)
    manifest = record_manifest(latest)
    planned = msgspec.structs.replace(plan_unit(unit), id=hook_owner or unit.id)
    manifests = parse_release(planned, release, manifest, kinds.is_namespaced) or nothing
    return msgspec.structs.replace(manifests, unit=unit), tuple(
        manifest_refs(latest, release.namespace)
    )


async def plan_uninstall(unit: Unit, hook_owner: UnitId, session: Session) -> Plan:
    """Return the plan that uninstalls a release; it has a step even if no objects are left."""
    hooks, refs = await read_uninstall(unit, session, hook_owner)
    planned = plan_unit(unit)
    live_objects = await get_objects(session.world, refs, cluster=planned.cluster)
    candidates = (prune_candidate(object_body(live), planned) for live in live_objects)
    return with_final_step(
        build_deletion(
            hooks,
            [candidate for candidate in candidates if candidate is not None],
            readiness_timeout=budget,
        )
    )


def with_final_step(plan: Plan) -> Plan:
    """Return the plan, with one empty step if there is nothing to delete."""
    if plan.steps:
        return plan
    return Plan.from_fragment(PlanFragment(units=plan.units, steps=(end_step(plan.units[0]),)))


async def is_installed(unit: Unit, session: Session) -> bool:
    """Whether a unit is a release that Helm lists as installed or being uninstalled."""
    release = unit.policy.release
    if release is None:
        return False
    cluster, location = unit.destination.cluster, f"unit {unit.id}"
    latest = newest_record(await read_records(release, cluster, session, location=location))
    return latest is not None and latest.status is not ReleaseStatus.UNINSTALLED


async def read_records(
    release: ReleaseSpec, cluster: str, session: Session, *, location: str
) -> list[ReleaseRecord]:
    """Return all records of a release; none where their namespace does not exist."""
    selection = Selection(SECRET, release.storage, label_selector=release_selector(release.name))
    (page,) = await send_requests(session.world, List(selection), cluster=cluster)
    if is_error(page):
        raise error_from_outcome(
            page, "reading the records of the release", location=Location(location)
        )
    return (
        [read_record(object_body(secret)) for secret in page.items]
        if isinstance(page, ListPage)
        else []
    )
