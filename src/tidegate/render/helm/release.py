"""A worker's answers."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.model.release import ChartDependency


class Text(msgspec.Struct, frozen=True, gc=False):
    """What one template, or one file of CRDs, came to."""

    path: str
    text: str


class Rendered(msgspec.Struct, frozen=True, tag="rendered", gc=False):
    """A worker's good answer: templates by their path inside the chart, and CRDs apart."""

    templates: tuple[Text, ...]
    crds: tuple[Text, ...] = ()


class Refused(msgspec.Struct, frozen=True, tag="refused", gc=False):
    """A worker's other answer: the parts of an error, to be raised on our side."""

    code: str
    problem: str
    place: str = ""
    line: int = 0
    column: int = 0
    field: str = ""
    hint: str = ""
    absent: tuple[ChartDependency, ...] = ()


Answer: TypeAlias = Rendered | Refused
