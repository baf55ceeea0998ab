"""Nodes of a unit tree, and the blocks of a trace."""

from __future__ import annotations

import msgspec

TraceBlock = tuple[tuple[str, str], ...]
"""Labels and values of one part of a trace; empty values are not shown."""


class TreeNode(msgspec.Struct, frozen=True):
    """An object, a note about its order, and the objects below it."""

    name: str
    note: str = ""
    children: tuple[TreeNode, ...] = ()
