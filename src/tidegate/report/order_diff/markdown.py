"""Differences between two orders as a comment on a pull request.

Names come from files of strangers: everything but the words of Tidegate is escaped, so that it can
contain neither Markdown, HTML nor a mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.errors import sanitize
from tidegate.model.display import count_noun
from tidegate.model.display_paths import location_text
from tidegate.model.finding import Finding, Severity
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.views.order_diff import Change, DiffReport, GateType, OrderDiff
from tidegate.report.findings import display_finding
from tidegate.report.graph.diagrams import mermaid_text
from tidegate.report.order_diff.sections import (
    DiffSection,
    SectionEntry,
    diff_heading,
    order_sections,
    same_order_line,
)
from tidegate.report.order_diff.text import is_unchanged

MARKER = "<!-- tidegate diff -->"
"""The first line, by which a program finds its comment again."""
MAX_LENGTH = 60_000
"""Characters of a comment. GitHub accepts 65,536, GitLab more."""
CUT_NOTICE = "\n_The comment was cut: run_ `tidegate diff` _to see all of it._"
FOLDED_SECTIONS = frozenset(
    {"levels of dependencies", "renumbered", "dependencies removed", "dependencies added"}
)
MAX_HEADING = 1_000
"""Characters that are kept free for the heading."""
MAX_SHOWN = 10
"""Maximum number of entries of a section that are not folded."""
MAX_ARROWS = 40
"""Maximum number of arrows in the diagram."""
NO_BREAK = "&#8203;"
"""A space without width: it keeps a text from being a mention, a reference or a link."""
_SPECIAL = lazy_regex(r"[\\`*_{}\[\]()#+!|~$^=-]")
_QUOTED = lazy_regex(r"`([^`]+)`")
_NUMBERED = lazy_regex(r"^(\d+)([.)])")
"""The start of a numbered list."""
_LINKED = lazy_regex(r"(?i)@|\\#|\bGH\\-|\bwww(?=\.)|:(?=//|:)")
"""Escaped text that GitHub turns into a mention, a reference or a link."""


def markdown_lines(report: DiffReport) -> Iterator[str]:
    """Yield a comment: the verdict in the heading, the details folded, cut to the maximum."""
    yield MARKER
    if is_unchanged(report):
        yield f"**Order:** {markdown_text(same_order_line(report))}"
        return
    yield f"### Order: {markdown_text(diff_heading(report))}"
    length = len(CUT_NOTICE) + MAX_HEADING
    for block in _blocks(report):
        length += len(block) + 1
        if length > MAX_LENGTH:
            yield CUT_NOTICE
            return
        yield block


def markdown_text(text: str) -> str:
    """Return a text that Markdown displays as it is; names in backticks are code."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    shown = " ".join(shown.split())
    return "".join(
        f"<code>{_escape(part)}</code>" if number % 2 else _escape(part)
        for number, part in enumerate(_QUOTED.split(shown))
    )


def _escape(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\g<0>", text)
    text = _NUMBERED.sub(r"\1\\\2", text)
    return _LINKED.sub(rf"\g<0>{NO_BREAK}", text)


def _blocks(report: DiffReport) -> Iterator[str]:
    """Yield the parts of the comment, each complete in itself."""
    changed = sum(len(order.changed_units) for order in report.orders)
    total = sum(order.unit_count for order in report.orders)
    yield f"\n{changed} of {total} units changed since {markdown_text(str(report.base))}."
    if report.new_errors:
        yield "\n**will not work any more**\n"
        yield from (_error_block(finding) for finding in report.new_errors)
    if report.fixed_errors:
        yield "\n**fixed**\n"
        yield from (_finding_line(finding) for finding in report.fixed_errors)
    for order in report.orders:
        sections = order_sections(order)
        if order.root and sections:
            yield f"\n#### {markdown_text(order.root)}"
        for section in sections:
            yield from _section_blocks(section)
        yield from _diagram_blocks(order)
    warnings = [
        finding for finding in report.new.sorted_findings if finding.severity is Severity.WARNING
    ]
    yield from _folded(count_noun(len(warnings), "new warning"), map(_finding_line, warnings))
    yield from _folded("not read", map(_finding_line, report.not_read))


def _error_block(original: Finding) -> str:
    finding = display_finding(original)
    lines = [_finding_line(original)]
    lines += [
        f"  {number}. {markdown_text(sanitize(step))}"
        for number, step in enumerate(finding.sequence, 1)
    ]
    lines += [f"\n  Fix: {markdown_text(sanitize(finding.fix))}"] if finding.fix else []
    return "\n".join(lines)


def _finding_line(original: Finding) -> str:
    finding = display_finding(original)
    location = f" {_location_text(str(finding.location))}" if finding.location else ""
    return (
        f"- **{markdown_text(finding.code)}** {markdown_text(sanitize(finding.message))}{location}"
    )


def _section_blocks(section: DiffSection) -> Iterator[str]:
    lines = [_entry_text(entry) for entry in section.entries]
    title = f"{section.title} ({len(lines)})"
    if section.title in FOLDED_SECTIONS:
        yield from _folded(title, lines)
        return
    yield f"\n**{section.title}**\n"
    yield from lines[:MAX_SHOWN]
    yield from _folded(f"{len(lines) - MAX_SHOWN} more", lines[MAX_SHOWN:])


def _entry_text(entry: SectionEntry) -> str:
    place = f" {_location_text(location_text(entry.location))}" if entry.location else ""
    details = "".join(f"\n  - {markdown_text(detail)}" for detail in entry.details)
    return f"- {markdown_text(entry.text)}{place}{details}"


def _location_text(text: str) -> str:
    return f"<code>{_escape(sanitize(text))}</code>"


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that a reader unfolds; none without lines."""
    body = "\n".join(lines)
    if body:
        yield f"\n<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _diagram_blocks(order: OrderDiff) -> Iterator[str]:
    """Yield a diagram of the gates that changed."""
    arrows: dict[tuple[str, str, Change], None] = {}
    for gate in order.gates:
        if gate.type is GateType.DEPENDS_ON:
            arrows.setdefault((gate.subject, str(gate.unit), gate.change))
        else:
            for unit in gate.waiting_units:
                arrows.setdefault((str(gate.unit), str(unit), gate.change))
    if not arrows:
        return
    keys: dict[str, str] = {}
    lines = ["flowchart LR"]
    for before, after, change in [*arrows][:MAX_ARROWS]:
        ends = (_node(before, keys), _node(after, keys))
        arrow, label = ("-.->", "lost") if change is Change.REMOVED else ("==>", "new")
        lines.append(f'  {ends[0]} {arrow}|"{label}"| {ends[1]}')
    diagram = "\n".join(("```mermaid", *lines, "```"))
    yield from _folded("gates that changed", [diagram])


def _node(name: str, keys: dict[str, str]) -> str:
    """Return a node of the diagram: with its label where it occurs first."""
    if name in keys:
        return keys[name]
    keys[name] = f"u{len(keys)}"
    return f'{keys[name]}["{mermaid_text(sanitize(name))}"]'
