"""The rules that judge an object: those of the dialect, then operator rows, then kstatus."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import structs

from tidegate.health import argo, kstatus
from tidegate.health.rows import judge_by_kind_row
from tidegate.knowledge.catalog import KindCatalog
from tidegate.model.k8s.json_fields import object_kind
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.operators.rows import KindRow
from tidegate.model.times import Ms

ARGO = "argo"
KSTATUS = "kstatus"


class Judge(msgspec.Struct, frozen=True):
    """The rules that judge objects: those of a dialect, and operator knowledge."""

    catalog: KindCatalog
    """Operator knowledge by kind."""

    @classmethod
    def from_rows(cls, rows: Iterable[KindRow]) -> Judge:
        """Return a judge that knows the rows of operators."""
        return cls(KindCatalog.from_rows(rows))

    def judge(self, body: dict[str, Json], now: Ms, *, rules: str = ARGO) -> Verdict:
        """Return the health of an object.

        `is_checked` is false if no rule of the dialect applied.
        """
        if rules == KSTATUS:
            return kstatus.judge(body, now)
        verdict = argo.judge(body)
        if verdict is not None and verdict.is_checked:
            return verdict
        kind = object_kind(body)
        row = self.catalog.find_row(kind)
        fallback = (
            judge_by_kind_row(body, row) if row and row.ready_when else kstatus.judge(body, now)
        )
        return structs.replace(fallback, is_checked=False)
