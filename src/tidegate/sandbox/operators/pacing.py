"""Rows that take as long as a profile says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from tidegate.model.operators import Pace, Row, Stage
from tidegate.sandbox.physics.course import StageRule


def paced(rows: Iterable[Row], rules: Sequence[StageRule]) -> tuple[Row, ...]:
    """These rows, with the rules of a profile in their stages."""
    return tuple(_paced(row, rules) for row in rows)


def _paced(row: Row, rules: Sequence[StageRule]) -> Row:
    about = [rule for rule in rules if rule.when.is_about(row)]
    if not about:
        return row
    return msgspec.structs.replace(
        row, stages=tuple(_paced_stage(stage, about) for stage in row.stages)
    )


def _paced_stage(stage: Stage, rules: Sequence[StageRule]) -> Stage:
    paces = (
        Pace(
            after=rule.after,
            group=rule.when.group,
            kind=rule.when.kind,
            namespace=rule.when.namespace,
            name=rule.when.name,
        )
        for rule in rules
        if fnmatchcase(stage.name, rule.when.stage)
    )
    return msgspec.structs.replace(stage, paces=(*stage.paces, *paces))
