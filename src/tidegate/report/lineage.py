"""What units bring, as a tree; and where an object comes from, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.objects import Json
from tidegate.report.rollout.rows import cells
from tidegate.report.tables import told_lines

TraceBlock = tuple[tuple[str, str], ...]
"""Names and what is said under each; what is empty is not shown."""
NEXT, LAST, ALONG, BLANK = "├── ", "└── ", "│   ", "    "


class TreeNode(msgspec.Struct, frozen=True):
    """An object, when it comes, and what it brings."""

    name: str
    note: str = ""
    children: tuple[TreeNode, ...] = ()


def tree_lines(node: TreeNode) -> Iterator[str]:
    """As `flux tree` draws it."""
    yield _titled(node)
    yield from _branches(node, "")


def _branches(node: TreeNode, before: str) -> Iterator[str]:
    for one in node.children:
        is_last = one is node.children[-1]
        yield f"{before}{LAST if is_last else NEXT}{_titled(one)}"
        yield from _branches(one, before + (BLANK if is_last else ALONG))


def _titled(node: TreeNode) -> str:
    return f"{node.name} ({node.note})" if node.note else node.name


def tree_document(node: TreeNode) -> dict[str, Json]:
    """For programs."""
    return {
        "name": node.name,
        "note": node.note,
        "children": [tree_document(one) for one in node.children],
    }


def trace_lines(blocks: Iterable[TraceBlock], room: int | None = None) -> Iterator[str]:
    """As `flux trace` shows it: blocks, with a line between two of them."""
    shown = [[(name, said) for name, said in block if said] for block in blocks]
    width = max((cells(name) for block in shown for name, _ in block), default=0) + 2
    for number, block in enumerate(shown):
        if number:
            yield "---"
        for name, said in block:
            line = f"{name + ':':{width}}{said}"
            yield from told_lines(line, room, " " * width)


def trace_document(blocks: Iterable[TraceBlock]) -> dict[str, Json]:
    """For programs: the first is the object, the others lead to where it comes from."""
    return {
        "trace": [
            [{"name": name, "value": said} for name, said in block if said] for block in blocks
        ]
    }
