"""CEL expressions by kind, and the requests to evaluate them.

As in Flux, the expressions of an exact kind precede those of its whole group. They are not
evaluated while the controller has not observed the last change: kstatus then reports InProgress.

Like `NewStatusReader` and `ReadStatusForObject` in `cel/status_reader.go` of fluxcd/pkg/runtime
0.110.3.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.health.cel.messages import CelRequest, encode_cel_request
from tidegate.model.k8s.json_fields import get_value, object_kind
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.units.expressions import HealthExpressions
from tidegate.world.requests import RunWorker

CEL_WORKER = "cel"
"""The name of the CEL worker in `RunWorker`."""
JOB = ("batch", "Job")


class CelRules(msgspec.Struct, frozen=True):
    """Expressions by group and kind; an empty kind means all kinds of the group."""

    expressions: dict[tuple[str, str], HealthExpressions]
    """The health expressions by group and kind."""

    @classmethod
    def from_expressions(cls, expressions: Iterable[HealthExpressions]) -> CelRules:
        """Return rules. The first entry for a kind counts."""
        by_kind: dict[tuple[str, str], HealthExpressions] = {}
        for rule in expressions:
            by_kind.setdefault((rule.group, rule.kind), rule)
        return cls(by_kind)

    def find(self, kind: Kind) -> HealthExpressions | None:
        """Return the expressions for a kind, or None."""
        return self.expressions.get((kind.group, kind.name)) or self.expressions.get(
            (kind.group, "")
        )

    def make_request(self, body: dict[str, Json], *, jobs: bool = True) -> RunWorker | None:
        """Return the request that evaluates the expressions for an object, or None if there are
        none.

        `jobs`: whether Jobs have expressions too. The rule of Flux for Jobs comes first where Flux
        runs with its own permissions.
        """
        kind = object_kind(body)
        if (
            not self.expressions
            or ((kind.group, kind.name) == JOB and not jobs)
            or _is_unobserved(body)
        ):
            return None
        rule = self.find(kind)
        if rule is None:
            return None
        expressions = (rule.in_progress, rule.failed, rule.current)
        request = CelRequest(expressions, msgspec.json.encode(body))
        return RunWorker(CEL_WORKER, encode_cel_request(request))


def _is_unobserved(body: dict[str, Json]) -> bool:
    observed, generation = (
        get_value(body, "status", "observedGeneration"),
        get_value(body, "metadata", "generation"),
    )
    return isinstance(observed, int) and isinstance(generation, int) and observed != generation


NO_EXPRESSIONS = CelRules({})
