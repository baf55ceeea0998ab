"""Releases that a cluster has already: rendered as they were, and kept as they are recorded."""

from __future__ import annotations

import msgspec

from tidegate.errors import RenderError
from tidegate.flows.rendering.charts import chart_key, inside_chart
from tidegate.flows.rendering.outcome import Rendered
from tidegate.flows.rendering.workshop import Setting, Workshop
from tidegate.model.helm_order import is_crd_path
from tidegate.model.ledger import Action, CrdPolicy, KnownRelease
from tidegate.model.patterns import late
from tidegate.model.plan import digest_bytes
from tidegate.model.release import Release
from tidegate.model.rendering import FluxDetails
from tidegate.model.unit import Unit
from tidegate.render.glimpse import Marks, chart_may_hold
from tidegate.render.helm.files import in_tree
from tidegate.render.helm.rendering import is_wanted

CAPABILITIES: Marks = late(rb"\bCapabilities\b")


async def as_known(
    asked: Release, details: FluxDetails, unit: Unit, workshop: Workshop
) -> tuple[Release, str, KnownRelease | None]:
    """The release as the revision that it is or will be, the name of all it is made of, its record.

    One that is there already is rendered as it was then: as an install, or as an upgrade.
    """
    ask, terms = workshop.setting.ask_release, unit.policy.release
    if ask is None:
        return msgspec.structs.replace(asked, revision=1, is_upgrade=False), "", None
    known = await ask(unit) if terms is not None else None
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
        return *told(1, is_upgrade=False), None
    if known.stands and known.action is not None and not (terms and terms.refuses(known)):
        same, key = told(known.rendered, is_upgrade=known.action is Action.UPGRADE)
        if key and key == known.key:
            return same, key, known
    return *told(known.number + 1, is_upgrade=not known.is_gone), None


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
    there: what they make only where it is absent would go. Helm does not render what is deployed.
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
    return msgspec.structs.replace(rendered, documents=documents, hidden=((),) * len(documents))
