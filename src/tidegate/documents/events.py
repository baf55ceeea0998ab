"""Parser events of libyaml for the text of one document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import TidegateError

try:
    from yaml._yaml import CParser
except ImportError:
    raise TidegateError(
        "documents.libyaml",
        "PyYAML is installed without libyaml, which is required to read YAML",
        hint="install a wheel: `pip install --only-binary :all: --force-reinstall PyYAML`",
    ) from None

if TYPE_CHECKING:
    from collections.abc import Callable

    from yaml.events import Event

    from tidegate.documents.split import DocumentText


def event_source(part: DocumentText) -> Callable[[], Event | None]:
    """Return a function that returns the next parser event on each call."""
    return CParser(part.text).get_event


def event_position(event: Event | None) -> tuple[int, int]:
    """Return the line and column where an event starts, counted from 0."""
    mark = event.start_mark if event else None
    return (mark.line, mark.column) if mark else (0, 0)
