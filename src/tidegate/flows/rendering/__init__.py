"""Rendering of units: with sources that are fetched, with decryption, and from the cache.

async with RenderContext(settings) as context:
    result = await render_request(request, context)
"""

from tidegate.flows.rendering.outcome import (
    MissingInput,
    RenderFailure,
    RenderResult,
    require_deployable,
)
from tidegate.flows.rendering.request import render_request
from tidegate.flows.rendering.workshop import RenderContext, RenderSettings

__all__ = [
    "MissingInput",
    "RenderContext",
    "RenderFailure",
    "RenderResult",
    "RenderSettings",
    "render_request",
    "require_deployable",
]
