"""Trees of units and traces of objects, formatted like `flux tree` and `flux trace`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.k8s.objects import Json
from tidegate.model.views.tree import TraceBlock, TreeNode
from tidegate.report.styled_text import text_width
from tidegate.report.tables import wrap_lines

BRANCH, LAST_BRANCH, CONTINUATION, BLANK = "├── ", "└── ", "│   ", "    "


def tree_lines(node: TreeNode) -> Iterator[str]:
    """Yield the tree like `flux tree`."""
    yield _node_title(node)
    yield from _branch_lines(node, "")


def _branch_lines(node: TreeNode, prefix: str) -> Iterator[str]:
    for child in node.children:
        is_last = child is node.children[-1]
        yield f"{prefix}{LAST_BRANCH if is_last else BRANCH}{_node_title(child)}"
        yield from _branch_lines(child, prefix + (BLANK if is_last else CONTINUATION))


def _node_title(node: TreeNode) -> str:
    return f"{node.name} ({node.note})" if node.note else node.name


def tree_document(node: TreeNode) -> dict[str, Json]:
    """Return the tree as a JSON document."""
    return {
        "name": node.name,
        "note": node.note,
        "children": [tree_document(child) for child in node.children],
    }


def trace_lines(blocks: Iterable[TraceBlock], max_width: int | None = None) -> Iterator[str]:
    """Yield the blocks like `flux trace`, with a line between them."""
    filled_blocks = [[(name, value) for name, value in block if value] for block in blocks]
    width = max((text_width(name) for block in filled_blocks for name, _ in block), default=0) + 2
    for index, block in enumerate(filled_blocks):
        if index:
            yield "---"
        for name, value in block:
            line = f"{name + ':':{width}}{value}"
            yield from wrap_lines(line, max_width, " " * width)


def trace_document(blocks: Iterable[TraceBlock]) -> dict[str, Json]:
    """Return the trace as a JSON document: first the object, then its origins."""
    return {
        "trace": [
            [{"name": name, "value": value} for name, value in block if value] for block in blocks
        ]
    }
