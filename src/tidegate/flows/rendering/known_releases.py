"""Releases that a cluster has already: rendered as they were, and kept as they are recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.flows.rendering.charts import chart_key, inside_chart
from tidegate.flows.rendering.outcome import Rendered, RevisedRelease
from tidegate.flows.rendering.workshop import Setting, Workshop
from tidegate.model.helm_order import is_crd_path
from tidegate.model.ledger import Action, CrdPolicy, KnownRelease, ReleaseTerms
from tidegate.model.patterns import late
from tidegate.model.plan import digest_bytes
from tidegate.model.reading import text
from tidegate.model.release import Release
from tidegate.model.rendering import FluxDetails
from tidegate.model.unit import Unit
from tidegate.render.glimpse import Marks, chart_may_hold
from tidegate.render.helm.files import in_tree
from tidegate.render.helm.rendering import is_wanted
from tidegate.source.vendored import read_chart

CAPABILITIES: Marks = late(rb"\bCapabilities\b")


async def as_known(
    asked: Release, details: FluxDetails, unit: Unit, workshop: Workshop
) -> RevisedRelease:
    """The release as a cluster knows it.

    One that is there already is rendered as it was then: as an install, or as an upgrade.
    """
    ask, terms = workshop.setting.ask_release, unit.policy.release
    if ask is None:
        return RevisedRelease(msgspec.structs.replace(asked, revision=1, is_upgrade=False))
    known = await ask(unit) if terms is not None else None
    chart = await asyncio.to_thread(_chart_name, asked)
    former = _former_chart(known, terms, chart)
    if known is not None and former:
        keeps = terms is not None and terms.keeps_history
        known = KnownRelease(known.number, is_gone=True) if keeps else None
    behind = (details.labels, details.annotations, details.post_renders, details.spares_hooks)
    more = msgspec.json.encode(behind, order="sorted")

    def told(revision: int, *, is_upgrade: bool) -> tuple[Release, str]:
        release = msgspec.structs.replace(asked, revision=revision, is_upgrade=is_upgrade)
        if terms is not None and is_upgrade:
            how = terms.upgrade
            crds, unchecked = how.crds is not CrdPolicy.SKIP, not how.checks_values
            release = msgspec.structs.replace(release, include_crds=crds, skip_schema=unchecked)
        untested = msgspec.structs.replace(release, include_tests=False)
        key = chart_key(_without_cluster(untested), workshop)
        return release, digest_bytes(key.encode(), more) if key else ""

    if known is None:
        return RevisedRelease(*told(1, is_upgrade=False), None, chart, former)
    if known.stands and known.action is not None and not (terms and terms.refuses(known)):
        same, key = told(known.rendered, is_upgrade=known.action is Action.UPGRADE)
        if key and key == known.key:
            return RevisedRelease(same, key, known, chart)
    next_one = told(known.number + 1, is_upgrade=not known.is_gone)
    return RevisedRelease(*next_one, None, chart, former)


def _chart_name(release: Release) -> str:
    """Empty for what is no chart: the worker says it better."""
    root = Path(release.root)
    found = read_chart(root / release.chart.lstrip("/"), root)
    return "" if found is None else found.name


def _former_chart(known: KnownRelease | None, terms: ReleaseTerms | None, chart: str) -> str:
    """The name of another chart, whose release stands, and is another one therefore."""
    if known is None or terms is None or known.is_gone or not (terms.renews and chart):
        return ""
    return known.chart if known.chart != chart else ""


def _without_cluster(release: Release) -> Release:
    """A chart that does not ask what a cluster serves is the same release when it serves more."""
    try:
        asks = chart_may_hold(CAPABILITIES, release)
    except (RenderError, OSError):
        asks = True  # it cannot be rendered either, and the worker says it better
    return release if asks else msgspec.structs.replace(release, api_versions=(), kube_version="")


async def as_recorded(
    rendered: Rendered, release: Release, known: KnownRelease, unit: Unit, setting: Setting
) -> Rendered:
    """The objects as the record has them, and the definitions of `crds/`, which it has not.

    Templates that look into the cluster come to something else there when their own release is
    there: what they make only where it is absent would go. Helm does not render what is deployed;
    whether that could be rendered by now does not matter.
    """
    if setting.ask_manifest is None:
        return rendered
    ground = [
        one for one in rendered.documents if is_crd_path(inside_chart(one, release).place.name)
    ]
    recorded = await setting.ask_manifest(unit, known)
    kept = [
        msgspec.structs.replace(one, place=in_tree(one.place, release.chart))
        for one in recorded
        if is_wanted(one, release)
    ]
    documents = (*ground, *kept)
    pairs = zip(rendered.documents, rendered.hidden, strict=True)
    hidden = {name_of(one): paths for one, paths in pairs}
    return msgspec.structs.replace(
        rendered,
        unmet=None,
        notes=() if rendered.unmet is not None else rendered.notes,
        documents=documents,
        hidden=tuple(hidden.get(name_of(one), ()) for one in documents),
    )


def name_of(document: Document) -> tuple[str, str, str]:
    """By what an object is known again behind a build."""
    body = document.body
    return (
        text(body, "kind"),
        text(body, "metadata", "namespace"),
        text(body, "metadata", "name"),
    )
