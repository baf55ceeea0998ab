"""Render whatever is asked for: a chart, an overlay or a directory of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tidegate.flows.rendering.charts import ChartWay, Sealed, render_chart
from tidegate.flows.rendering.outcome import Rendered
from tidegate.flows.rendering.overlays import build_overlay
from tidegate.flows.rendering.unsealing import Unsealing, secrets_among
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.release import Parameter, Release
from tidegate.model.rendering import Directory, Overlay, Request
from tidegate.render.jsonnet import render_directory
from tidegate.render.sops import Keys


async def render_request(
    asked: Request,
    workshop: Workshop,
    *,
    keys: Keys | None = None,
    keeps: bool = True,
    whole: bool = False,
) -> Rendered:
    """The objects, decrypted where there is a key and with placeholders where not.

    With `keeps` false the cache is left alone: for values that came out of a Secret. The `whole` is
    rendered whatever is sought.
    """
    setting = workshop.setting
    unsealing = Unsealing(replace(keys or setting.keys, offline=setting.offline))
    how = ChartWay(keeps=keeps, seeks=None if whole else setting.seeks)
    made = await _make(asked, workshop, unsealing, how)
    unsealing.secrets |= secrets_among(_given(asked), made.documents)
    opened = await unsealing.open_objects(made.documents, Path(asked.root))
    return Rendered(
        documents=opened.documents,
        hidden=opened.hidden,
        locked=opened.locked,
        suspect=tuple(unsealing.suspect),
        weakened=made.weakened,
        bases=made.bases,
        is_unread=made.is_unread,
    )


def _given(asked: Request) -> Iterator[str]:
    """Values that somebody gives by hand: those that end in a Secret are meant to be secret."""
    if isinstance(asked, Release):
        yield from (one.value for one in asked.layers if isinstance(one, Parameter))


async def _make(asked: Request, workshop: Workshop, unsealing: Unsealing, how: ChartWay) -> Sealed:
    match asked:
        case Release():
            return await render_chart(asked, workshop, how)
        case Overlay():
            return await build_overlay(asked, workshop, unsealing, how)
        case Directory():
            workers = await workshop.crew.jsonnet()
            within, read = workshop.within(asked.root), workshop.setting.read
            return Sealed(await render_directory(asked, workers, within, read))
