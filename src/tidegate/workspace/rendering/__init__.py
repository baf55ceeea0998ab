"""Rendering of units: with sources that are fetched, with decryption, and from the cache.

async with RenderContext(settings) as context:
    result = await render_request(request, context)
"""
