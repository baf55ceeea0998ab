"""Which expressions are for an object, and what to ask a worker.

Flux's order: an exact kind goes before all kinds of a group. While a controller has not seen the
last change of its object, nothing is asked: the generic rule says that it is in progress.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.health.cel.messages import CelQuestion, write_cel_question
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.units.expressions import HealthExpressions
from tidegate.world.requests import RunWorker

CEL_WORK = "cel"
"""What a world calls the work of evaluating expressions."""
JOB = ("batch", "Job")


class CelRules(msgspec.Struct, frozen=True):
    """Expressions by group and kind; an empty kind is for all of the group."""

    known: dict[tuple[str, str], HealthExpressions]

    @classmethod
    def of(cls, expressions: Iterable[HealthExpressions]) -> CelRules:
        """The first word for a kind counts."""
        known: dict[tuple[str, str], HealthExpressions] = {}
        for one in expressions:
            known.setdefault((one.group, one.kind), one)
        return cls(known)

    def lookup(self, kind: Kind) -> HealthExpressions | None:
        return self.known.get((kind.group, kind.name)) or self.known.get((kind.group, ""))

    def request(self, body: dict[str, Json], *, jobs: bool = True) -> RunWorker | None:
        """Return the request that evaluates the expressions for an object; None without any.

        `jobs`: they are judged so as well; Flux's own rule for them comes first where it runs with
        its own rights.
        """
        kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
        if not self.known or ((kind.group, kind.name) == JOB and not jobs) or _is_unseen(body):
            return None
        found = self.lookup(kind)
        if found is None:
            return None
        expressions = (found.in_progress, found.failed, found.current)
        question = CelQuestion(expressions, msgspec.json.encode(body))
        return RunWorker(CEL_WORK, write_cel_question(question))


def _is_unseen(body: dict[str, Json]) -> bool:
    seen, last = (
        get_value(body, "status", "observedGeneration"),
        get_value(body, "metadata", "generation"),
    )
    return isinstance(seen, int) and isinstance(last, int) and seen != last


NO_EXPRESSIONS = CelRules({})
