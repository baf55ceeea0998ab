"""The page of a rule for a terminal: its text as it is, its examples set in."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.patterns import late

FENCE = "```"
INDENT = "    "
_LINK = late(r"\[([^\]]+)\]\([^)]+\)")


def page_lines(page: str) -> Iterator[str]:
    """Without fences and without addresses of links."""
    is_inside = False
    for line in page.rstrip().splitlines():
        if line.startswith(FENCE):
            is_inside = not is_inside
        elif is_inside:
            yield f"{INDENT}{line}".rstrip()
        else:
            yield _LINK.sub(r"\1", line).replace("**", "")
