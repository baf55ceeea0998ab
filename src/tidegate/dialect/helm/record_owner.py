"""Owner of release records: their unit, their release, and records of a previous release.

Helm identifies a release by name and storage namespace. Annotations of Tidegate add the unit; for
releases of helm-controller, the labels of the objects do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus, read_annotations
from tidegate.documents import read_documents
from tidegate.errors import DocumentError
from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.units.release_history import KnownRelease, ReleaseAction, ReleaseSpec

UNIT = "tidegate.dev/unit"
CONTENT_KEY = "tidegate.dev/content-digest"
ACTION = "tidegate.dev/action"
RENDERED = "tidegate.dev/rendered-as"
RELEASE_NAMESPACE = "tidegate.dev/release-namespace"
CHART = "tidegate.dev/chart"
TESTED = "tidegate.dev/tests"
"""Annotations of Tidegate on release records.

The unit, the key of the content, the action, the revision that was rendered (a rollback
repeats an earlier one), the namespace, the chart and the outcome of the tests.
"""
FLUX_LABEL_LINE = "helm.toolkit.fluxcd.io/name: "
"""Beginning of a label that helm-controller writes to each object of a release."""
TESTS_PASSED, TESTS_FAILED = "passed", "failed"
ENDED_STATUSES = frozenset({ReleaseStatus.UNINSTALLED})
RESUMED_ACTIONS = {
    ReleaseStatus.PENDING_INSTALL: ReleaseAction.INSTALL,
    ReleaseStatus.PENDING_UPGRADE: ReleaseAction.UPGRADE,
}


def newest_record(records: Iterable[ReleaseRecord]) -> ReleaseRecord | None:
    return max(records, key=lambda record: record.number, default=None)


class PreviousRelease(msgspec.Struct, frozen=True, order=True):
    """Earlier release of a unit."""

    unit_tracking_id: str
    storage: str
    name: str
    namespace: str


def revision_number(body: dict[str, Json]) -> int:
    """Return the number of a revision, by the labels of its Secret; 0 if it is invalid."""
    version = get_text(body, "metadata", "labels", "version")
    return int(version) if version.isdecimal() else 0


def is_uninstalled(body: dict[str, Json]) -> bool:
    """Return whether the release of a revision is uninstalled, by the labels of its Secret."""
    return get_text(body, "metadata", "labels", "status") in ENDED_STATUSES


def previous_release(body: dict[str, Json]) -> PreviousRelease | None:
    """Return the release of a record that Tidegate wrote; None for any other record."""
    labels, annotations = (
        get_mapping(body, "metadata", "labels"),
        read_annotations(get_mapping(body, "metadata")),
    )
    unit_tracking_id, namespace = annotations.get(UNIT, ""), annotations.get(RELEASE_NAMESPACE, "")
    if not (unit_tracking_id and namespace):
        return None
    return PreviousRelease(
        unit_tracking_id,
        get_text(body, "metadata", "namespace"),
        get_text(labels, "name"),
        namespace,
    )


def records_of_release(
    records: Iterable[ReleaseRecord], release_spec: ReleaseSpec
) -> list[ReleaseRecord]:
    """Return the records of a release, without those of another release with its name and storage.

    The other release had another namespace or chart, and is uninstalled before a revision is
    written. If the history is kept, its records are kept as uninstalled, and the numbers
    continue after them.
    """
    records = [*records]
    previous = newest_record(
        record
        for record in records
        if release_spec.former_chart and _has_former_chart(record, release_spec)
    )
    last = 0 if previous is None else previous.number
    return [
        record if is_unchanged else record.with_status(ReleaseStatus.UNINSTALLED, "")
        for record in records
        for is_current in (record.namespace == release_spec.namespace and record.number > last,)
        for is_unchanged in (is_current or record.status in ENDED_STATUSES,)
        if is_unchanged or release_spec.keeps_history
    ]


def _has_former_chart(record: ReleaseRecord, release_spec: ReleaseSpec) -> bool:
    return chart_name(record) == release_spec.former_chart


def chart_name(record: ReleaseRecord) -> str:
    """Return the name of the chart, if a HelmRelease created the record; else an empty text."""
    name = record.annotations.get(CHART)
    return name or (record.chart[0] if FLUX_LABEL_LINE in record.manifest else "")


def known_release(
    labels: Mapping[str, Json], annotations: Mapping[str, str], release_spec: ReleaseSpec
) -> KnownRelease | None:
    """Return the release by labels and annotations of a record; None if it is another release."""
    status, action = str(labels.get("status")), annotations.get(ACTION)
    number, rendered = int(str(labels.get("version"))), str(annotations.get(RENDERED, ""))
    if (
        annotations.get(RELEASE_NAMESPACE, release_spec.namespace) != release_spec.namespace
        and status not in ENDED_STATUSES
    ):
        return KnownRelease(number, is_uninstalled=True) if release_spec.keeps_history else None
    return KnownRelease(
        number=number,
        is_deployed_or_pending=status == ReleaseStatus.DEPLOYED or status in RESUMED_ACTIONS,
        is_deployed=status == ReleaseStatus.DEPLOYED,
        is_uninstalled=status == ReleaseStatus.UNINSTALLED,
        action=ReleaseAction(action)
        if isinstance(action, str) and action in {*ReleaseAction}
        else None,
        key=str(annotations.get(CONTENT_KEY, "")),
        rendered_revision=int(rendered) if rendered.isdecimal() else number,
        has_failed_tests=annotations.get(TESTED) == TESTS_FAILED,
        chart_name=str(annotations.get(CHART, "")),
    )


def with_record(
    known: KnownRelease, record: ReleaseRecord, release_spec: ReleaseSpec
) -> KnownRelease | None:
    """Complete a release of another tool from its record; None if it is another release."""
    if record.namespace != release_spec.namespace:
        return (
            KnownRelease(known.number, is_uninstalled=True) if release_spec.keeps_history else None
        )
    return msgspec.structs.replace(known, chart_name=chart_name(record))


def manifest_refs(record: ReleaseRecord, namespace: str) -> Iterable[Ref]:
    """Yield the objects in the manifest of a record; `namespace` is used for those without one."""
    try:
        documents = read_documents(record.manifest, f"release {record.name}")
    except DocumentError:
        return
    for document in documents:
        body = document.body
        kind = object_kind(body)
        name = get_text(body, "metadata", "name")
        if kind.name and name:
            yield Ref(kind, get_text(body, "metadata", "namespace", default=namespace), name)
