"""Mutation operators: functions that change one thing in a repository, in each possible place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from tests.mutations.repository import Change, Repository

Apply: TypeAlias = Callable[[Repository], Iterator[Change]]

OPERATORS: dict[str, Operator] = {}
"""All operators by name, in the order of their definition."""


class Operator(msgspec.Struct, frozen=True):
    """A mutation operator."""

    name: str
    apply: Apply
    codes: tuple[str, ...]
    """Codes of which one has to be reported, most probable first; none if it is harmless."""

    @property
    def is_breaking(self) -> bool:
        return bool(self.codes)


def breaking(*codes: str) -> Callable[[Apply], Apply]:
    """Register a mistake that `lint` has to report with one of these codes."""
    return _register(codes)


def harmless(apply: Apply) -> Apply:
    """Register a change that `lint` must not report."""
    return _register(())(apply)


def _register(codes: tuple[str, ...]) -> Callable[[Apply], Apply]:
    def register(apply: Apply) -> Apply:
        name = apply.__name__.replace("_", "-")
        assert name not in OPERATORS, f"two operators are named {name}"
        OPERATORS[name] = Operator(name, apply, codes)
        return apply

    return register
