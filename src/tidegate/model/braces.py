"""Names in braces: in a path each stands for one part of it, elsewhere for what was found there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.patterns import late

_NAME = late(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = late(r"\{([^{}]*)\}")


def names_in_braces(text: str) -> tuple[list[str], str]:
    """The names, in their order, and what is wrong with how they are written, if anything is."""
    names = _BRACES.findall(text)
    if "{" in (rest := _BRACES.sub("", text)) or "}" in rest:
        return names, "has a brace without the other one"
    wrong = next((one for one in names if _NAME.fullmatch(one) is None), None)
    return names, "" if wrong is None else "has no name between two braces"


def fill_braces(text: str, values: Mapping[str, str]) -> str:
    """The text with a value for each of its names, which must be known."""
    return _BRACES.sub(lambda found: values[found[1]], text)


def braces_shape(text: str) -> re.Pattern[str]:
    """What texts fit: any one part of a path for each name."""
    pieces = _BRACES.split(text)
    names = (f"(?P<{one}>[^/]+)" if at % 2 else re.escape(one) for at, one in enumerate(pieces))
    return re.compile("".join(names), re.DOTALL)


def may_be(text: str, filled: str) -> bool:
    """Whether a text could be filled so, whatever its names stand for."""
    shape = ".+".join(map(re.escape, _BRACES.split(text)[::2]))
    return re.fullmatch(shape, filled, re.DOTALL) is not None
