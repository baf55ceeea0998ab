"""Contents of a Helm release record: the chart, the values, the manifest and the hooks."""

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
from tidegate.render.helm.chart_renderer import (
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
    """The parts of a release record that do not depend on the objects after the build."""

    chart: dict[str, Json]
    """The chart, as a release record stores it."""
    config: dict[str, Json]
    """The values of the user."""
    notes: str
    """The rendered notes."""
    tests: tuple[ReleaseHook, ...]
    """The test hooks."""

    def __repr__(self) -> str:
        return "ChartDescription()"


async def describe_release(release: ChartRequest, workers: Workers) -> ChartDescription:
    """Return the chart, the user's values, the notes and the tests of a release.

    Raises the errors of rendering.
    """
    rendered = await request_render(msgspec.structs.replace(release, described=True), workers)
    chart: dict[str, Json] = msgspec.json.decode(rendered.chart)
    config: dict[str, Json] = msgspec.json.decode(rendered.config)
    name = get_text(chart, "metadata", "name")
    return ChartDescription(chart, config, _notes(rendered), tuple(_tests(rendered, name)))


def build_release_contents(
    key: str, description: ChartDescription, documents: Iterable[Document]
) -> ReleaseContents:
    """Return the contents of a release record, with the objects as they are applied.

    CRDs of `crds/` are not part of a release.

    Like `Release` in `pkg/release/v1/release.go` of Helm 4.2.4.
    """
    name = get_text(description.chart, "metadata", "name")
    members = [document for document in documents if not is_crd_path(document.location.name)]
    ordinary = [document for document in members if hook_events(document) is None]
    ordinary.sort(key=lambda document: install_rank(get_text(document.body, "kind")))
    hooks = [_hook(document, name) for document in members if hook_events(document) is not None]
    hook_names = {(hook.kind, hook.name) for hook in hooks}
    others = [test for test in description.tests if (test.kind, test.name) not in hook_names]
    return ReleaseContents(
        key=key,
        chart=description.chart,
        config=description.config,
        manifest="".join(f"---\n{_text(document, name)}" for document in ordinary),
        hooks=(*hooks, *others),
        notes=description.notes,
    )


def _text(document: Document, chart: str) -> str:
    return f"# Source: {chart}/{document.location.name}\n{to_yaml(document.body)}"


def _notes(rendered: RenderedChart) -> str:
    """Return the notes of the chart itself; Helm does not show those of subcharts.

    Like `renderResources` in `pkg/action/action.go` of Helm 4.2.4.
    """
    return next((file.text for file in rendered.templates if file.path == f"templates/{NOTES}"), "")


def _tests(rendered: RenderedChart, chart: str) -> Iterator[ReleaseHook]:
    for path, number, text in split_templates(rendered.templates):
        for document in read_rendered_text(text, path, number):
            events = hook_events(document)
            if events is not None and events & TEST_EVENTS:
                yield _hook(document, chart)


def _hook(document: Document, chart: str) -> ReleaseHook:
    annotations = get_mapping(document.body, "metadata", "annotations")
    events = sorted(hook_events(document) or ())
    policies = (policy.strip() for policy in str(annotations.get(POLICY) or "").split(","))
    return ReleaseHook(
        name=get_text(document.body, "metadata", "name"),
        kind=get_text(document.body, "kind"),
        path=f"{chart}/{document.location.name}",
        manifest=_text(document, chart),
        events=tuple(TEST if event in TEST_EVENTS else event for event in events),
        weight=hook_weight(annotations),
        policies=tuple(policy for policy in policies if policy),
    )


def hook_weight(annotations: dict[str, Json]) -> int:
    """Return the weight of a hook; 0 if it is no number.

    Like `calculateHookWeight` in `pkg/release/v1/util/manifest_sorter.go` of Helm 4.2.4.
    """
    try:
        return int(str(annotations.get(WEIGHT) or "0"))
    except ValueError:
        return 0
