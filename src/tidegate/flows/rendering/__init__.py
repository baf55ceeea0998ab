"""Rendering as every verb needs it: with what must be fetched, with keys, and from the cache.

async with Workshop(setting) as workshop:
    rendered = await render_unit(release, workshop)
"""

from tidegate.flows.rendering.outcome import Rendered, Unrendered, Weakened, refuse_unsound
from tidegate.flows.rendering.unit import Asked, render_unit
from tidegate.flows.rendering.workshop import Setting, Workshop

__all__ = [
    "Asked",
    "Rendered",
    "Setting",
    "Unrendered",
    "Weakened",
    "Workshop",
    "refuse_unsound",
    "render_unit",
]
