"""A worker's answers."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.render.engines import Refused


class Text(msgspec.Struct, frozen=True, gc=False):
    """What one template, or one file of CRDs, came to."""

    path: str
    text: str


class Templated(msgspec.Struct, frozen=True, tag="rendered", gc=False):
    """A worker's good answer: templates by their path inside the chart, and CRDs apart."""

    templates: tuple[Text, ...]
    crds: tuple[Text, ...] = ()


Answer: TypeAlias = Templated | Refused
