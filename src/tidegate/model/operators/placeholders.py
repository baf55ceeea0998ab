"""Placeholders in braces, which match one segment of a path, or are filled with values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.text.lazy_regex import lazy_regex

_NAME = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = lazy_regex(r"\{([^{}]*)\}")


def placeholder_names(text: str) -> tuple[list[str], str]:
    """Return the placeholder names in order, and the syntax error, or an empty text."""
    names = _BRACES.findall(text)
    if "{" in (remaining := _BRACES.sub("", text)) or "}" in remaining:
        return names, "has an unmatched brace"
    invalid = next((name for name in names if _NAME.fullmatch(name) is None), None)
    return names, "" if invalid is None else "has no valid name between two braces"


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Replace each placeholder by its value. Raises KeyError for an unknown name."""
    return _BRACES.sub(lambda match: values[match[1]], text)


def placeholder_regex(text: str) -> re.Pattern[str]:
    """Return a regular expression in which each placeholder matches one path segment."""
    pieces = _BRACES.split(text)
    regexes = (
        f"(?P<{piece}>[^/]+)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)
    )
    return re.compile("".join(regexes), re.DOTALL)


def could_match(text: str, filled: str) -> bool:
    """Return whether some values for the placeholders of a text result in `filled`."""
    regex = ".+".join(map(re.escape, _BRACES.split(text)[::2]))
    return re.fullmatch(regex, filled, re.DOTALL) is not None
