"""Places as whoever reads them can open them.

Inside, a place is a path from the root of its tree, which is the same on every machine. Where it is
told, it is a path from where the user stands, or a whole one: whoever knows the trees says how.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from tidegate.errors import Place, TidegateError
from tidegate.model.patterns import late

Finder: TypeAlias = Callable[[str], str | None]
"""A path in a tree, as the user would write it; None for what is no file there."""

_WITH_LINE = late(r"(?<![\w/.:-])(?P<name>[\w.@+][\w./@+-]*)(?=:\d)")
_KNOWN: dict[str, Finder] = {}


def add_tree(root: str, find: Finder) -> None:
    """What is told from now on may stand in this tree; the last new one counts first."""
    _KNOWN.setdefault(root, find)


def prefer_tree(root: str) -> None:
    """What is told from now on is of this one, where it may be of several."""
    if root in _KNOWN:
        _KNOWN[root] = _KNOWN.pop(root)


def forget_trees() -> None:
    """Another command begins."""
    _KNOWN.clear()


def seen_name(name: str) -> str:
    """A path from a tree's root, as the user would write it; anything else as it is."""
    found = (find(name) for find in reversed(_KNOWN.values()))
    return next((one for one in found if one is not None), name)


def seen(where: Place) -> Place:
    return where.named(seen_name(where.name))


def seen_text(where: Place | str | None) -> str:
    """A place, or one that was written down; empty for none."""
    if isinstance(where, str):
        name, line, rest = _split(where)
        return f"{seen_name(name)}{line}{rest}"
    return str(seen(where)) if where is not None else ""


def seen_within(sentence: str) -> str:
    """A sentence in which files are named with their lines."""
    return _WITH_LINE.sub(lambda found: seen_name(found["name"]), sentence)


def seen_error(error: TidegateError) -> TidegateError:
    """As it is told."""
    where = seen(error.where) if error.where else None
    problem, hint = seen_within(error.problem), seen_within(error.hint)
    return TidegateError(error.code, problem, where=where, hint=hint)


def _split(written: str) -> tuple[str, str, str]:
    name, space, field = written.partition(" (")
    found = re.fullmatch(r"(?P<name>.+?)(?P<line>(?::\d+){0,2})", name)
    return (found["name"], found["line"], space + field) if found else (written, "", "")
