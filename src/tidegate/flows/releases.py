"""The records of Helm releases, kept as a ledger while their units are rolled out.

sheet ── render      what a release is made of: chart, values, objects, hooks, notes
  │
book ── dialect      what is entered when, by the records there are
  │
writes               of Secrets, each over the version that was read
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tidegate.dialect.helm import book
from tidegate.dialect.helm.record import (
    SECRET,
    ReleaseRecord,
    pack,
    read_record,
    record_ref,
    secret_of,
    selector_of,
)
from tidegate.dialect.manifests import with_marks
from tidegate.dialect.tracking import origin_labels
from tidegate.engine.means import FailingUnit
from tidegate.errors import DialectError
from tidegate.flows.ended_releases import read_records
from tidegate.flows.late_lookups import SoughtObjects
from tidegate.flows.planning import Planned
from tidegate.flows.remedies import (
    clean_up,
    record_text,
    roll_back,
    sheet_text,
    uninstall,
    untried,
)
from tidegate.flows.rendering import Rendered
from tidegate.flows.rendering.charts import describe_chart, inside_chart
from tidegate.flows.rendering.outcome import RevisedRelease, attempt_all, raise_all
from tidegate.flows.rendering.workshop import Workshop
from tidegate.flows.session import Session
from tidegate.model.ledger import (
    Action,
    EnteredRevision,
    Entering,
    EntryEnd,
    LedgerPlace,
    ReleaseHistory,
    ReleaseSheet,
    ReleaseTerms,
)
from tidegate.model.moment import Ms
from tidegate.model.objects import Live
from tidegate.model.plan import Fragment, Plan
from tidegate.model.unit import UnitId
from tidegate.render.helm.sheets import ChartSheet, sheet_of
from tidegate.world.calls import Verb, Write

MANAGER = "helm-controller"
UNDESCRIBED = ChartSheet({}, {}, "", ())


class ReleaseBooks(msgspec.Struct):
    """The ledgers of units that are Helm releases; one without a key is to end.

    There is a sheet of each release of which the cluster has no record that is the same.
    """

    terms: Mapping[UnitId, ReleaseTerms]
    keys: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    sheets: Mapping[UnitId, ReleaseSheet] = msgspec.field(default_factory=dict)
    formers: Mapping[UnitId, UnitId] = msgspec.field(default_factory=dict)
    """Of those that end, what units were before: the unit of each."""
    sought: Mapping[UnitId, SoughtObjects] = msgspec.field(default_factory=dict)
    """What the templates of those looked up that are about to be released."""
    describes: bool = True
    """Records hold charts as well."""
    hear: Callable[[Fragment], None] | None = None
    """Is told what is done about failures: earlier revisions hold values that nobody may see."""

    def take(self, newer: ReleaseBooks) -> None:
        """Go on with what was rendered since: each try of a release is another revision."""
        self.terms, self.keys, self.sheets = newer.terms, newer.keys, newer.sheets
        self.formers, self.sought = newer.formers, newer.sought

    def place(self, unit: UnitId) -> LedgerPlace | None:
        terms = self.terms.get(unit)
        if terms is None:
            return None
        return LedgerPlace(SECRET, terms.storage, selector_of(terms.name))

    def before(self, unit: UnitId) -> tuple[UnitId, ...]:
        return tuple(one for one, other in self.formers.items() if other == unit)

    def intend(self, unit: UnitId, entries: Sequence[Live]) -> Entering:
        records, terms, key = _records(entries), self.terms[unit], self.keys.get(unit)
        if key is None:
            return book.intend_end(records)
        entering = book.intend(key, records, terms, unit.mark)
        if not entering.is_due or entering.goes_on:
            return entering
        if entering.action is not terms.action or unit not in self.sheets:
            problem = f"somebody else has released `{terms.name}` since it was rendered"
            return msgspec.structs.replace(entering, problem=f"{problem}; run it again")
        try:
            for one in self._begin(unit, records, entering, Ms(0)).made:
                pack(one.content)
        except DialectError as error:
            told = f"{error.problem}; {error.hint}" if error.hint else error.problem
            return msgspec.structs.replace(entering, problem=told)
        return entering

    def remedy(
        self, failing: FailingUnit, entries: Sequence[Live], entering: Entering
    ) -> Fragment | None:
        found = self._remedy(failing, entries, entering)
        if found is not None and self.hear is not None:
            self.hear(found)
        return found

    def _remedy(
        self, failing: FailingUnit, entries: Sequence[Live], entering: Entering
    ) -> Fragment | None:
        terms = self.terms[failing.unit.id]
        remedy, records = terms.acting.remedy, _records(entries)
        if entering.action is Action.UNINSTALL:
            return None
        if remedy is None:
            return clean_up(failing, terms) if terms.acting.cleans else None
        if remedy is Action.ROLLBACK:
            target = book.rollback_target(records, entering.number, terms)
            return untried(failing) if target is None else roll_back(failing, terms, target)
        sheet = self.sheets.get(failing.unit.id)
        mine = next((one for one in records if one.number == entering.number), None)
        if sheet is not None:
            return uninstall(failing, terms, sheet_text(sheet), entering.brought)
        if mine is not None:
            return uninstall(failing, terms, record_text(mine), entering.brought)
        return None

    def intend_remedy(self, unit: UnitId, entries: Sequence[Live]) -> Entering:
        records, terms = _records(entries), self.terms[unit]
        if terms.acting.remedy is None:
            return Entering(Action.KEEP)
        if terms.acting.remedy is Action.UNINSTALL:
            return book.intend_end(records)
        return book.intend_rollback(records, terms)

    def begin(
        self, unit: UnitId, entries: Sequence[Live], entering: Entering, now: Ms
    ) -> tuple[Write, ...]:
        made = self._begin(unit, _records(entries), entering, now)
        return tuple(self._writes(unit, entries, made, now))

    def _begin(
        self, unit: UnitId, records: Sequence[ReleaseRecord], entering: Entering, now: Ms
    ) -> book.Entries:
        if entering.action is Action.UNINSTALL:
            return book.begin_end(records)
        if entering.goes_on:
            return book.Entries()
        if entering.action is Action.ROLLBACK:
            terms = self.terms[unit]
            return book.begin_rollback(records, terms, entering=entering, now=now)
        sheet = self.sheets[unit]
        return book.begin(sheet, records, self.terms[unit], unit.mark, entering=entering, now=now)

    def end(
        self, unit: UnitId, entries: Sequence[Live], entering: Entering, ended: EntryEnd, now: Ms
    ) -> tuple[Write, ...]:
        records = _records(entries)
        if entering.action is Action.UNINSTALL:
            told = book.remove(records, self.terms[unit], ended=ended, now=now)
        else:
            told = book.end(records, entering=entering, ended=ended, now=now)
        return tuple(self._writes(unit, entries, told, now))

    def review(
        self,
        unit: UnitId,
        entries: Sequence[Live],
        entering: Entering,
        *,
        ended: EntryEnd,
        now: Ms,
    ) -> tuple[Write, ...]:
        terms = self.terms[unit]
        told = book.review(_records(entries), terms, entering=entering, ended=ended)
        return tuple(self._writes(unit, entries, told, now))

    def _writes(
        self, unit: UnitId, entries: Sequence[Live], told: book.Entries, now: Ms
    ) -> Iterable[Write]:
        storage, lives = self.terms[unit].storage, {one.ref: one for one in entries}

        def put(record: ReleaseRecord, version: str) -> Write:
            body = secret_of(record, storage, now=now, version=version)
            return Write(
                verb=Verb.REPLACE if version else Verb.CREATE,
                ref=record_ref(record.name, record.number, storage),
                body=msgspec.json.encode(body),
                manager=MANAGER,
                version=version,
            )

        for one in told.changed:
            yield put(one, lives[record_ref(one.name, one.number, storage)].version)
        for one in told.made:
            yield put(one, "")
        for one in told.gone:
            ref = record_ref(one.name, one.number, storage)
            yield Write(verb=Verb.DELETE, ref=ref, uid=lives[ref].uid)


def _records(entries: Sequence[Live]) -> list[ReleaseRecord]:
    return [read_record(msgspec.json.decode(one.body)) for one in entries]


async def make_releases(
    planned: Planned, session: Session, *, describes: bool = True
) -> ReleaseBooks:
    """The ledgers of those of a plan's units that are releases; of those that end as well.

    Without `describes` charts are left out of the records, where no Helm will read them.
    """
    terms, leaving = terms_of(planned.plan), {one.id for one in planned.leaving}
    wanted = {
        one.manifests.unit.id: (one.rendered, one.rendered.revised)
        for one in planned.read
        if one.manifests.unit.id in terms and one.rendered.revised is not None
        if one.rendered.unmet is None
    }
    sought = {
        one.manifests.unit.id: SoughtObjects(one.manifests.unit, looked_up, one.rendered.unmet)
        for one in planned.read
        if (looked_up := one.rendered.looked_up)
    }
    ending = {name: one for name, one in terms.items() if name in leaving}
    if not wanted:
        return ReleaseBooks(ending, sought=sought, describes=describes)
    async with Workshop(session.setting) as workshop:
        asked = {
            name: _sheet(name, one, revised, workshop if describes else None)
            for name, (one, revised) in wanted.items()
            if revised.known is None
        }
        sheets, errors = await attempt_all(asked)
    raise_all(tuple(errors.values()))
    keys = {name: revised.key for name, (_, revised) in wanted.items()}
    mine = {name: terms[name] for name in wanted}
    return ReleaseBooks({**ending, **mine}, keys, sheets, planned.formers, sought, describes)


def end_releases(plan: Plan) -> ReleaseBooks:
    """The ledgers of units that are to end."""
    return ReleaseBooks(terms_of(plan))


def has_releases(plan: Plan) -> bool:
    return bool(terms_of(plan))


def terms_of(plan: Plan) -> dict[UnitId, ReleaseTerms]:
    found = ((unit.id, unit.policy.release) for unit in plan.units)
    return {name: terms for name, terms in found if terms is not None}


async def histories_of(plan: Plan, session: Session) -> tuple[ReleaseHistory, ...]:
    """What is entered of the releases of a plan by now."""
    found = []
    for unit in plan.units:
        terms = unit.policy.release
        if terms is not None:
            records = await read_records(terms, unit.cluster, session, where=f"unit {unit.id}")
            told = sorted((one.number, one.status.value, one.description) for one in records)
            entered = tuple(EnteredRevision(*one) for one in told)
            found.append(ReleaseHistory(str(unit.id), terms.namespace, terms.name, entered))
    return tuple(found)


async def _sheet(
    unit: UnitId, rendered: Rendered, revised: RevisedRelease, workshop: Workshop | None
) -> ReleaseSheet:
    labels, release = origin_labels(unit), revised.release
    documents = [
        msgspec.structs.replace(one, body=with_marks(one.body, {}, labels))
        for one in (inside_chart(each, release) for each in rendered.documents)
    ]
    described = UNDESCRIBED if workshop is None else await describe_chart(release, workshop)
    return sheet_of(revised.key, described, documents)
