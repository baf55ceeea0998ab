"""Rendering as every verb needs it: with what must be fetched, with keys, and from the cache.

async with Workshop(setting) as workshop:
    rendered = await render_request(release, workshop)
"""

from tidegate.flows.rendering.outcome import Rendered, Unrendered, Weakened, refuse_unsound
from tidegate.flows.rendering.request import render_request
from tidegate.flows.rendering.workshop import Setting, Workshop

__all__ = [
    "Rendered",
    "Setting",
    "Unrendered",
    "Weakened",
    "Workshop",
    "refuse_unsound",
    "render_request",
]
