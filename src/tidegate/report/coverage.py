"""How much of a repository a result rests on, as one block of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import sanitize
from tidegate.model.display import count_noun, join_quoted
from tidegate.model.k8s.objects import Json
from tidegate.model.views.coverage import Coverage, Gap

MAX_GAPS, MAX_UNITS = 5, 3


def coverage_lines(coverage: Coverage) -> Iterator[str]:
    """Yield the block; nothing if everything was looked at."""
    if not coverage.gaps and not coverage.is_incomplete:
        return
    if not coverage.unit_count:
        yield "nothing to check: no unit and no object was found"
        return
    if not (coverage.gaps or coverage.object_count):
        units = count_noun(coverage.unit_count, "unit")
        yield f"nothing was checked: no valid object was found in {units}"
        return
    yield (
        f"checked {count_noun(coverage.object_count, 'object')} in {coverage.rendered_count:,} of"
        f" {count_noun(coverage.unit_count, 'unit')}; the other objects are unknown"
    )
    for gap in coverage.gaps[:MAX_GAPS]:
        yield f"  {_gap_text(gap)}"
    if len(coverage.gaps) > MAX_GAPS:
        yield f"  and {count_noun(len(coverage.gaps) - MAX_GAPS, 'reason')} more"
    if coverage.commands:
        yield "to check more:"
        yield from (f"  {command}" for command in coverage.commands)


def _gap_text(gap: Gap) -> str:
    state = "rendered in part" if gap.is_partial else "not rendered"
    names = join_quoted(gap.units, MAX_UNITS)
    problem = sanitize(gap.problem)
    return f"{count_noun(len(gap.units), 'unit')} {state}: {problem} ({names})"


def coverage_document(coverage: Coverage) -> dict[str, Json]:
    """Return the coverage as JSON."""
    return {
        "incomplete": coverage.is_incomplete,
        "units": coverage.unit_count,
        "rendered": coverage.rendered_count,
        "objects": coverage.object_count,
        "gaps": [
            {
                "problem": gap.problem,
                "partial": gap.is_partial,
                "units": [*gap.units],
                "command": gap.command or None,
            }
            for gap in coverage.gaps
        ],
        "commands": [*coverage.commands],
    }
