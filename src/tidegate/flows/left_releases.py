"""HelmReleases that Flux has brought, by what they have left in a cluster.

    Kustomization ── status.inventory ──▶ HelmRelease ── status.history ──▶ records of Helm

kustomize-controller prunes what its inventory names and its labels own. helm-controller uninstalls
what the status of a HelmRelease says, as its text says how, takes its finalizer off, and deletes
the HelmChart that it has made. Nothing of ours need be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import structs

from tidegate.dialect.flux.release import read_release
from tidegate.dialect.inventories import inventory_refs
from tidegate.dialect.tracking import FLUX
from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.means import stale_of
from tidegate.flows.session import Session
from tidegate.model.journal import Kin
from tidegate.model.ledger import ReleaseTerms
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.plan import PlannedUnit
from tidegate.model.policy import Consent
from tidegate.model.reading import listed, mappings, text
from tidegate.model.unit import UnitId
from tidegate.plan.pruning import Stale

Body = dict[str, Json]
RELEASE = "HelmRelease"
CHART = Kind("source.toolkit.fluxcd.io", "v1", "HelmChart")


async def find_left(
    units: Iterable[PlannedUnit], known: Collection[UnitId], session: Session
) -> list[tuple[Kin, str]]:
    """Those that these units have brought by their own word and that nobody knows, by cluster."""
    parents = {one.id: one for one in units if one.id.kind in FLUX}
    found: list[tuple[Kin, str]] = []
    for name, own in (await read_own(parents, session)).items():
        parent = parents[name]
        refs = [ref for ref in inventory_refs(own) or () if _is_release(ref)]
        named = [UnitId(RELEASE, parent.cluster, ref.namespace, ref.name) for ref in refs]
        left = await read_own((one for one in named if one not in known), session)
        found += [
            (_kin(one, body, parent.id), parent.cluster)
            for one, body in left.items()
            if _may_go(body, parent)
        ]
    return found


def _is_release(ref: Ref) -> bool:
    return (ref.kind.group, ref.kind.name) == (FLUX[RELEASE], RELEASE)


def _may_go(body: Body, parent: PlannedUnit) -> bool:
    """Whether whoever has brought it would prune it."""
    stale = stale_of(body, parent)
    return stale is not None and stale.handling.prune is not Consent.NO


def _kin(name: UnitId, body: Body, parent: UnitId) -> Kin:
    (unit,) = read_release(Document(body, Place(f"{name} in the cluster")), name.namespace).units
    terms = unit.policy.release
    status = released_as(body)
    if terms is None or status is None:
        return Kin(name, parent, cascades=True)
    storage, release, namespace = status
    ended = structs.replace(terms, storage=storage, name=release, namespace=namespace, ignores=())
    farewell = unit.policy.farewell
    return Kin(name, parent, cascades=True, farewell=farewell, release=ended)


def released_as(own: Body) -> tuple[str, str, str] | None:
    """Where its records are, and the name and the namespace of the release, by its own word."""
    storage, history = text(own, "status", "storageNamespace"), mappings(own, "status", "history")
    if not (storage and history):
        return None
    home = text(own, "metadata", "namespace")
    return storage, text(history[0], "name"), text(history[0], "namespace", default=home)


async def read_own(units: Iterable[UnitId], session: Session) -> dict[UnitId, Body]:
    """The own objects of units of Flux's, as they live where their kinds are served."""
    by_cluster: dict[str, dict[tuple[str, str, str, str], UnitId]] = {}
    for name in units:
        place = session.place_of(name.cluster)
        named = (FLUX[name.kind], name.kind, name.namespace, name.name)
        by_cluster.setdefault(place, {})[named] = name
    found: dict[UnitId, Body] = {}
    for place, names in by_cluster.items():
        kinds = {(one.kind.group, one.kind.name): one.kind for one in await session.kinds(place)}
        refs = [
            Ref(kinds[group, kind], namespace, name)
            for group, kind, namespace, name in names
            if (group, kind) in kinds
        ]
        for live in await look_at(session.world, refs, cluster=place) if refs else ():
            found[names[identity(live.ref)]] = body_of(live)
    return found


async def own_ends(kin: Kin, parent: PlannedUnit | None, session: Session) -> tuple[Stale, ...]:
    """What is left of a HelmRelease behind its end: its own object, and the chart made for it.

    None where whoever has brought it remembers its own object: that prunes it.
    """
    if kin.unit.kind != RELEASE or parent is None:
        return ()
    own = (await read_own((kin.unit,), session)).get(kin.unit)
    if own is None or not _may_go(own, parent):
        return ()
    ref = Ref(Kind.of(text(own, "apiVersion"), RELEASE), kin.unit.namespace, kin.unit.name)
    journal = (await read_journal(parent, session.world)).journal
    if identity(ref) in map(identity, journal.entries):
        return ()
    finalizers = tuple(map(str, listed(own, "metadata", "finalizers")))
    charts = await look_at(session.world, _charts(own), cluster=parent.cluster)
    return (Stale(ref, releases=finalizers), *(Stale(one.ref) for one in charts))


def _charts(own: Body) -> Iterator[Ref]:
    namespace, sign, name = text(own, "status", "helmChart").partition("/")
    if sign:
        yield Ref(CHART, namespace, name)


def other_release(own: Body, terms: ReleaseTerms) -> ReleaseTerms | None:
    """The release that a HelmRelease says it is, where that is not what it is to be."""
    told = released_as(own)
    if told is None or told == (terms.storage, terms.name, terms.namespace):
        return None
    storage, name, namespace = told
    return structs.replace(terms, storage=storage, name=name, namespace=namespace)
