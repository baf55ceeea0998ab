"""What a record of a release keeps of its chart, besides the objects: the chart itself, the values
of the user, the notes, and the hooks that are only run by `helm test`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.documents import Document
from tidegate.documents.dump import to_yaml
from tidegate.external.worker import Workers
from tidegate.model.k8s.helm_order import install_rank, is_crd_path
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.release_history import ReleaseContents, ReleaseHook
from tidegate.render.helm.render import (
    NOTES,
    TEST_EVENTS,
    hook_events,
    read_rendered_text,
    request_render,
    split_templates,
)
from tidegate.render.helm.worker_replies import RenderedChart

WEIGHT = "helm.sh/hook-weight"
POLICY = "helm.sh/hook-delete-policy"
TEST = "test"


class ChartDescription(msgspec.Struct, frozen=True):
    """What is the same whatever becomes of the objects behind the build."""

    chart: dict[str, Json]
    config: dict[str, Json]
    notes: str
    tests: tuple[ReleaseHook, ...]

    def __repr__(self) -> str:
        return "ChartSheet()"


async def describe_release(release: ChartRequest, workers: Workers) -> ChartDescription:
    """Raises what rendering raises."""
    told = await request_render(msgspec.structs.replace(release, described=True), workers)
    chart: dict[str, Json] = msgspec.json.decode(told.chart)
    config: dict[str, Json] = msgspec.json.decode(told.config)
    name = get_text(chart, "metadata", "name")
    return ChartDescription(chart, config, _notes(told), tuple(_tests(told, name)))


def build_release_contents(
    key: str, described: ChartDescription, documents: Iterable[Document]
) -> ReleaseContents:
    """The whole sheet, with the objects as they are applied.

    Definitions of `crds/` are no part of a release.
    """
    name = get_text(described.chart, "metadata", "name")
    members = [one for one in documents if not is_crd_path(one.location.name)]
    ordinary = [one for one in members if hook_events(one) is None]
    ordinary.sort(key=lambda one: install_rank(get_text(one.body, "kind")))
    hooks = [_hook(one, name) for one in members if hook_events(one) is not None]
    known = {(one.kind, one.name) for one in hooks}
    others = [one for one in described.tests if (one.kind, one.name) not in known]
    return ReleaseContents(
        key=key,
        chart=described.chart,
        config=described.config,
        manifest="".join(f"---\n{_text(one, name)}" for one in ordinary),
        hooks=(*hooks, *others),
        notes=described.notes,
    )


def _text(document: Document, chart: str) -> str:
    return f"# Source: {chart}/{document.location.name}\n{to_yaml(document.body)}"


def _notes(told: RenderedChart) -> str:
    """Those of the chart itself; what charts inside it have to say is not shown by Helm either."""
    return next((one.text for one in told.templates if one.path == f"templates/{NOTES}"), "")


def _tests(told: RenderedChart, chart: str) -> Iterator[ReleaseHook]:
    for path, number, piece in split_templates(told.templates):
        for document in read_rendered_text(piece, path, number):
            events = hook_events(document)
            if events is not None and events & TEST_EVENTS:
                yield _hook(document, chart)


def _hook(document: Document, chart: str) -> ReleaseHook:
    notes = get_mapping(document.body, "metadata", "annotations")
    events = sorted(hook_events(document) or ())
    policies = (one.strip() for one in str(notes.get(POLICY) or "").split(","))
    return ReleaseHook(
        name=get_text(document.body, "metadata", "name"),
        kind=get_text(document.body, "kind"),
        path=f"{chart}/{document.location.name}",
        manifest=_text(document, chart),
        events=tuple(TEST if one in TEST_EVENTS else one for one in events),
        weight=hook_weight(notes),
        policies=tuple(one for one in policies if one),
    )


def hook_weight(notes: dict[str, Json]) -> int:
    """What is no number counts as none."""
    try:
        return int(str(notes.get(WEIGHT) or "0"))
    except ValueError:
        return 0
