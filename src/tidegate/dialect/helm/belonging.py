"""Whose the records of a release are, what they tell of it, and which of them are of another one.

Helm knows a release by its name and its place. What else it is, notes of ours tell, and where
helm-controller has made it, the labels of its objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus, notes_of
from tidegate.documents import read
from tidegate.errors import DocumentError
from tidegate.model.ledger import Action, KnownRelease, ReleaseTerms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, text

UNIT = "tidegate.dev/unit"
KEY = "tidegate.dev/made-of"
ACTION = "tidegate.dev/action"
RENDERED = "tidegate.dev/rendered-as"
INTO = "tidegate.dev/release-namespace"
CHART = "tidegate.dev/chart"
TESTED = "tidegate.dev/tests"
"""Notes of records that are ours: whose, of what, by which action, and as which revision
where that is another one: what was rolled back to was rendered then; for which namespace, of which
chart, and how its tests went.
"""
ORIGIN = "helm.toolkit.fluxcd.io/name: "
"""What helm-controller writes onto each object of a release."""
FIT, UNFIT = "passed", "failed"
ENDED = frozenset({ReleaseStatus.UNINSTALLED})
GONE_ON_WITH = {
    ReleaseStatus.PENDING_INSTALL: Action.INSTALL,
    ReleaseStatus.PENDING_UPGRADE: Action.UPGRADE,
}


def newest(records: Iterable[ReleaseRecord]) -> ReleaseRecord | None:
    return max(records, key=lambda one: one.number, default=None)


class Former(msgspec.Struct, frozen=True, order=True):
    """Of which unit a record is, and of which release that stands."""

    mark: str
    storage: str
    name: str
    namespace: str


def revision_of(body: dict[str, Json]) -> int:
    """The number of a revision, by the labels of its Secret."""
    told = text(body, "metadata", "labels", "version")
    return int(told) if told.isdecimal() else 0


def is_ended(body: dict[str, Json]) -> bool:
    """Whether a revision says that its release is uninstalled, by the labels of its Secret."""
    return text(body, "metadata", "labels", "status") in ENDED


def former_of(body: dict[str, Json]) -> Former | None:
    """What a record of ours tells of its release; None: it is nobody's."""
    labels, notes = mapping(body, "metadata", "labels"), notes_of(mapping(body, "metadata"))
    mark, into = notes.get(UNIT, ""), notes.get(INTO, "")
    if not (mark and into):
        return None
    return Former(mark, text(body, "metadata", "namespace"), text(labels, "name"), into)


def own_records(records: Iterable[ReleaseRecord], terms: ReleaseTerms) -> list[ReleaseRecord]:
    """The records of a release, without those of another one that had its name and its place.

    That one is uninstalled before anything is entered; where the history is kept, so are its
    records, and numbers go on behind them. It was for another namespace, or of another chart.
    """
    records = [*records]
    former = newest(one for one in records if terms.former_chart and _is_former(one, terms))
    last = 0 if former is None else former.number
    return [
        one if is_own else one.become(ReleaseStatus.UNINSTALLED, "")
        for one in records
        for stays in (one.namespace == terms.namespace and one.number > last,)
        for is_own in (stays or one.status in ENDED,)
        if is_own or terms.keeps_history
    ]


def _is_former(record: ReleaseRecord, terms: ReleaseTerms) -> bool:
    return chart_of(record) == terms.former_chart


def chart_of(record: ReleaseRecord) -> str:
    """The name of its chart, where a HelmRelease has brought it: Helm itself does not mind it."""
    told = record.notes.get(CHART)
    return told or (record.chart[0] if ORIGIN in record.manifest else "")


def known_release(
    labels: Mapping[str, Json], notes: Mapping[str, str], terms: ReleaseTerms
) -> KnownRelease | None:
    """What the labels and notes of a record tell; None: it is of another release."""
    status, action = str(labels.get("status")), notes.get(ACTION)
    number, rendered = int(str(labels.get("version"))), str(notes.get(RENDERED, ""))
    if notes.get(INTO, terms.namespace) != terms.namespace and status not in ENDED:
        return KnownRelease(number, is_gone=True) if terms.keeps_history else None
    return KnownRelease(
        number=number,
        stands=status == ReleaseStatus.DEPLOYED or status in GONE_ON_WITH,
        is_deployed=status == ReleaseStatus.DEPLOYED,
        is_gone=status == ReleaseStatus.UNINSTALLED,
        action=Action(action) if isinstance(action, str) and action in {*Action} else None,
        key=str(notes.get(KEY, "")),
        rendered=int(rendered) if rendered.isdecimal() else number,
        is_unfit=notes.get(TESTED) == UNFIT,
        chart=str(notes.get(CHART, "")),
    )


def as_recorded(
    known: KnownRelease, record: ReleaseRecord, terms: ReleaseTerms
) -> KnownRelease | None:
    """What is known of a release that somebody else has made, by the record itself.

    None: it is of another release.
    """
    if record.namespace != terms.namespace:
        return KnownRelease(known.number, is_gone=True) if terms.keeps_history else None
    return msgspec.structs.replace(known, chart=chart_of(record))


def objects_of(record: ReleaseRecord, namespace: str) -> Iterable[Ref]:
    """The objects of a record's manifest; those without a namespace are in this one."""
    try:
        documents = read(record.manifest, f"release {record.name}")
    except DocumentError:
        return
    for document in documents:
        body = document.body
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        name = text(body, "metadata", "name")
        if kind.name and name:
            yield Ref(kind, text(body, "metadata", "namespace", default=namespace), name)
