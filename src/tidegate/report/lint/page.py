"""Output of `lint`: text, JSON, SARIF, JUnit, GitHub annotations, Markdown, and rule pages."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.patterns import lazy_regex

CODE_FENCE = "```"
CODE_INDENT = "    "
_LINK = lazy_regex(r"\[([^\]]+)\]\([^)]+\)")


def rule_page_lines(page: str) -> Iterator[str]:
    """Yield the page of a rule for a terminal, without code fences and link addresses."""
    in_code = False
    for line in page.rstrip().splitlines():
        if line.startswith(CODE_FENCE):
            in_code = not in_code
        elif in_code:
            yield f"{CODE_INDENT}{line}".rstrip()
        else:
            yield _LINK.sub(r"\1", line).replace("**", "")
