"""Which rule judges an object: those of its unit's dialect, then rows, then the generic one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import structs

from tidegate.health import argo, kstatus
from tidegate.health.rows import judge_row
from tidegate.knowledge.catalog import KnownRows
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.operators.rows import KindRow
from tidegate.model.times import Ms

ARGO = "argo"
KSTATUS = "kstatus"


class Judge(msgspec.Struct, frozen=True):
    """Knows what is known of operators' kinds beside the rules of the dialects."""

    known: KnownRows

    @classmethod
    def of(cls, rows: Iterable[KindRow]) -> Judge:
        return cls(KnownRows.of(rows))

    def judge(self, body: dict[str, Json], now: Ms, *, rules: str = ARGO) -> Verdict:
        """A verdict that no rule of the dialect gave is not `checked`."""
        if rules == KSTATUS:
            return kstatus.judge(body, now)
        verdict = argo.judge(body)
        if verdict is not None and verdict.is_checked:
            return verdict
        kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
        row = self.known.row_of(kind)
        fallen = judge_row(body, row) if row and row.ready_when else kstatus.judge(body, now)
        return structs.replace(fallen, is_checked=False)
