"""How objects stand: as a table, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tidegate.model.objects import Json, Ref
from tidegate.model.verdict import Verdict
from tidegate.report.rollout.names import count
from tidegate.report.rollout.rows import cells

Row = tuple[Ref, int, bool, Verdict]
BELOW = " " * 9
"""Before a sentence that has no room on its line."""


def status_lines(rows: Sequence[Row], room: int | None = None) -> Iterator[str]:
    """A line for each object, and how many are not well."""
    width = max([len("object"), *(len(str(ref)) for ref, *_ in rows)])
    yield f"{'wave':>5}  {'object':{width}}  {'sync':9}  health"
    for ref, wave, is_synced, verdict in rows:
        sync = "synced" if is_synced else "differs"
        why = f"  {verdict.sentence}" if verdict.sentence else ""
        line = f"{wave:>5}  {ref!s:{width}}  {sync:9}  {verdict.health}"
        if room is None or cells(line + why) <= room:
            yield line + why
        else:
            yield line
            yield from wrap(why.strip(), room, initial_indent=BELOW, subsequent_indent=BELOW)
    off = sum(not is_synced for _, _, is_synced, _ in rows)
    ill = sum(verdict.health != "Healthy" for *_, verdict in rows)
    yield ""
    yield f"{count(len(rows), 'object')}, {off} not as wanted, {ill} not healthy"


def verdict_document(ref: Ref, verdict: Verdict) -> dict[str, Json]:
    """An object and how it is, for programs: the generation is null where nobody tells it."""
    return {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "namespace": ref.namespace,
        "name": ref.name,
        "health": verdict.health.value,
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "final": verdict.final,
        "checked": verdict.checked,
        "observedGeneration": verdict.speaks_of or None,
    }
