"""Records of Helm releases: packed and unpacked, and what is entered into them."""

from __future__ import annotations

import base64
import gzip
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.dialect.helm import history, record_owner
from tidegate.dialect.helm.record import (
    MAX_SECRET_BYTES,
    ReleaseRecord,
    ReleaseStatus,
    decode_release,
    encode_release,
    read_record,
    record_secret,
)
from tidegate.errors import DialectError
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.times import Ms
from tidegate.model.units.release_history import (
    PendingRevision,
    ReleaseAction,
    ReleaseContents,
    ReleaseSpec,
    RevisionOutcome,
)

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TERMS = ReleaseSpec("web", "shop", "shop")
MARK = "HelmRelease/shop/web"
NOW = Ms(1_700_000_000_000)


def sheet(to: str = "1") -> ReleaseContents:
    chart: dict[str, Json] = {"metadata": {"name": "web", "version": "1.0.0"}}
    return ReleaseContents(key=to, chart=chart, config={"to": to}, manifest=f"---\n# {to}\n")


class Storage:
    """Records as a cluster keeps them."""

    def __init__(self, terms: ReleaseSpec = TERMS) -> None:
        self.terms = terms
        self.kept: dict[int, ReleaseRecord] = {}

    @property
    def revision_statuses(self) -> list[tuple[int, str]]:
        return [(number, item.status.value) for number, item in sorted(self.kept.items())]

    def enter(self, result: history.RecordChanges) -> None:
        for item in (*result.changed, *result.created):
            body = record_secret(item, self.terms.storage, now=NOW)
            self.kept[item.number] = read_record(msgspec.json.decode(msgspec.json.encode(body)))
        for item in result.deleted:
            del self.kept[item.number]

    def start(self, expected: ReleaseContents) -> PendingRevision:
        records = list(self.kept.values())
        entering = history.plan_revision(expected.key, records, self.terms, MARK)
        if entering.is_due and not entering.is_resumed:
            self.enter(
                history.start_revision(
                    expected, records, self.terms, MARK, pending=entering, now=NOW
                )
            )
        return entering

    def end(self, entering: PendingRevision, *, passed: bool = True) -> None:
        records, ended = list(self.kept.values()), RevisionOutcome(passed, "it does not start")
        self.enter(history.finish_revision(records, pending=entering, outcome=ended, now=NOW))


@given(st.dictionaries(st.text(), VALUES))
def test_a_packed_record_is_unpacked_unchanged(content: dict[str, Json]) -> None:
    assert decode_release(encode_release(content)) == content


def test_unknown_fields_stay_when_a_status_changes() -> None:
    content: dict[str, Json] = {"name": "web", "version": 3, "later": {"field": 1}}
    record = ReleaseRecord(content, {"team": "sea"}, {"note": "kept"})

    changed = record.with_status(ReleaseStatus.FAILED, "why")
    again = read_record(record_secret(changed, "shop", now=NOW, version="7"))

    assert again.content["later"] == {"field": 1}
    assert (again.status, again.number) == (ReleaseStatus.FAILED, 3)
    assert (again.labels, again.annotations) == ({"team": "sea"}, {"note": "kept"})


def as_helm_writes(record: ReleaseRecord, number: int) -> ReleaseRecord:
    """Read and written by Helm, as this or another revision: it keeps labels, and no annotation."""
    content: dict[str, Json] = {**record.content, "version": number}
    whole = msgspec.json.decode(msgspec.json.encode(record_secret(record, "shop", now=NOW)))
    metadata = whole["metadata"]
    del metadata["annotations"]
    metadata["labels"]["version"] = str(number)
    packed = base64.b64encode(encode_release(content)).decode()
    return read_record({**whole, "data": {"release": packed}})


def test_a_record_rewritten_by_helm_is_ours_and_its_next_revision_is_not() -> None:
    storage = Storage()
    storage.end(storage.start(sheet()))

    storage.kept[1] = as_helm_writes(storage.kept[1], 1)
    assert storage.start(sheet()).action is ReleaseAction.UNCHANGED
    assert storage.kept[1].labels == {}
    storage.kept[2] = as_helm_writes(storage.kept[1], 2)

    assert storage.start(sheet()).action is ReleaseAction.UPGRADE


def test_a_value_too_long_for_a_label_is_an_annotation() -> None:
    mark = f"HelmRelease/shop/{'a' * 60}"
    record = ReleaseRecord(
        {"name": "web", "version": 1},
        {},
        {record_owner.UNIT: mark, record_owner.CONTENT_KEY: "one"},
    )

    again = read_record(record_secret(record, "shop", now=NOW))

    assert again.annotations == record.annotations
    assert as_helm_writes(record, 1).annotations == {record_owner.CONTENT_KEY: "one"}


def test_a_record_that_no_secret_holds_is_refused_with_its_size() -> None:
    noise = random.Random(1).randbytes(MAX_SECRET_BYTES)
    content: dict[str, Json] = {"name": "web", "version": 1, "chart": noise.hex()}

    with pytest.raises(DialectError, match=r"`web`.* 1,\d+,\d+ ") as raised:
        encode_release(content)

    assert raised.value.code == "dialect.helm.size"


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no base64!",
        base64.b64encode(b"no json"),
        base64.b64encode(b"[]"),
        base64.b64encode(gzip.compress(b"{}")[:-9]),
        base64.b64encode(gzip.compress(b'{"a": "' + b" " * (65 * MAX_SECRET_BYTES) + b'"}')),
    ],
    ids=["nothing", "text", "no json", "list", "half", "bomb"],
)
def test_an_invalid_record_is_rejected(packed: bytes) -> None:
    with pytest.raises(DialectError) as raised:
        decode_release(packed)

    assert raised.value.code == "dialect.helm.record"


def test_a_revision_is_pending_until_its_end_is_entered() -> None:
    storage = Storage()

    entering = storage.start(sheet())
    assert storage.revision_statuses == [(1, "pending-install")]
    storage.end(entering)

    assert storage.revision_statuses == [(1, "deployed")]
    assert storage.start(sheet()).action is ReleaseAction.UNCHANGED


def test_a_killed_action_continues_with_the_same_revision() -> None:
    storage = Storage()
    storage.end(storage.start(sheet()))
    storage.start(sheet("2"))

    again = storage.start(sheet("2"))
    storage.end(again)

    assert again.is_resumed
    assert storage.revision_statuses == [(1, "superseded"), (2, "deployed")]


def test_a_release_left_pending_by_others_is_marked_failed() -> None:
    storage = Storage()
    storage.end(storage.start(sheet()))
    pending = storage.kept[1].with_status(ReleaseStatus.PENDING_UPGRADE, "other-client")
    content: dict[str, Json] = {**pending.content, "version": 2}
    storage.kept[2] = msgspec.structs.replace(pending, content=content, annotations={})

    entering = storage.start(sheet("3"))

    assert (entering.action, entering.number) == (ReleaseAction.UPGRADE, 3)
    assert storage.revision_statuses == [(1, "deployed"), (2, "failed"), (3, "pending-upgrade")]
    assert "unlocked" in get_text(storage.kept[2].content, "info", "description")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12),
    st.integers(0, 4),
)
def test_revisions_increase_by_one_and_at_most_one_is_deployed(
    runs: list[tuple[int, bool, bool]], most: int
) -> None:
    """Whatever is released, fails, and is killed in between."""
    storage = Storage(msgspec.structs.replace(TERMS, max_history=most))
    highest = 0
    for to, passes, dies in runs:
        entering = storage.start(sheet(str(to)))
        assert entering.number in {highest, highest + 1}
        highest = entering.number
        if not dies:
            storage.end(entering, passed=passes)
        statuses = [status for _, status in storage.revision_statuses]
        assert statuses.count("deployed") <= 1
        assert sum(status.startswith("pending") for status in statuses) <= 1
        assert not most or len(storage.kept) <= max(most, 2)
    numbers = [number for number, _ in storage.revision_statuses]
    assert numbers == sorted(set(numbers))
