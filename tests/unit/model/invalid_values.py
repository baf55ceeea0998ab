"""Texts that a parser refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def invalid_value_error(parse: Callable[[str], object], text: str) -> str:
    """Parse an invalid text; return the message of its ValueError."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the caller compares the message)
        parse(text)
    assert type(caught.value) is ValueError
    return str(caught.value)
