"""Status of objects as a table and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tidegate.model.display import count_noun
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.k8s.verdict import Verdict
from tidegate.report.styled_text import text_width

StatusRow = tuple[Ref, int, bool, Verdict]
MESSAGE_INDENT = " " * 9
"""Before a message that does not fit on its line."""


def status_lines(rows: Sequence[StatusRow], max_width: int | None = None) -> Iterator[str]:
    """Yield a line for each object, and how many are not in sync or unhealthy."""
    width = max([len("object"), *(len(str(ref)) for ref, *_ in rows)])
    yield f"{'wave':>5}  {'object':{width}}  {'sync':9}  health"
    for ref, wave, is_synced, verdict in rows:
        sync = "synced" if is_synced else "differs"
        message = f"  {verdict.message}" if verdict.message else ""
        line = f"{wave:>5}  {ref!s:{width}}  {sync:9}  {verdict.health}"
        if max_width is None or text_width(line + message) <= max_width:
            yield line + message
        else:
            yield line
            yield from wrap(
                message.strip(),
                max_width,
                initial_indent=MESSAGE_INDENT,
                subsequent_indent=MESSAGE_INDENT,
            )
    differing = sum(not is_synced for _, _, is_synced, _ in rows)
    unhealthy = sum(verdict.health != "Healthy" for *_, verdict in rows)
    yield ""
    yield f"{count_noun(len(rows), 'object')}, {differing} out of sync, {unhealthy} unhealthy"


def verdict_document(ref: Ref, verdict: Verdict) -> dict[str, Json]:
    """Return an object with its health as a JSON document.

    The observed generation is null where it is not reported.
    """
    return {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "namespace": ref.namespace,
        "name": ref.name,
        "health": verdict.health.value,
        "reason": verdict.reason,
        "message": verdict.message,
        "final": verdict.is_final,
        "checked": verdict.is_checked,
        "observedGeneration": verdict.observed_generation or None,
    }
