"""Render a unit: its trees are fetched, its sources settled and rendered, and what is asked for
behind the build is done.

Data that other objects hold (`valuesFrom`, `substituteFrom`, keys) is looked up by whoever knows
the objects around a unit; what nobody knows is told, and the unit has no objects then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.documents.dump import to_yaml
from tidegate.errors import RenderError, TidegateError, errors_of, foreign, without_user
from tidegate.flows.rendering.around import Around, is_hook
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.known_releases import as_known, as_recorded, name_of
from tidegate.flows.rendering.lookups import Lookups
from tidegate.flows.rendering.outcome import BuiltTree, Rendered, Unrendered
from tidegate.flows.rendering.request import render_request
from tidegate.flows.rendering.settling import settle, stamped
from tidegate.flows.rendering.trees import Data, FindData, fetch_tree
from tidegate.flows.rendering.unsealing import conceal
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.objects import Kind
from tidegate.model.reading import text
from tidegate.model.release import Release
from tidegate.model.rendering import (
    ArgoDetails,
    FluxDetails,
    FluxOverrides,
    Overlay,
    Request,
    Restriction,
)
from tidegate.model.source import (
    ChartSource,
    GitSource,
    OciSource,
    Snapshot,
    SourceObject,
    SourceRef,
)
from tidegate.model.unit import Unit, UnitSource
from tidegate.render.helm import flux_layers
from tidegate.render.scratch import scratch_directory


def knows_nothing(_kind: str, _namespace: str, _name: str) -> Data | None:
    """For a unit without surroundings."""
    return None


async def render_unit(
    unit: Unit, cluster: Capabilities, workshop: Workshop, find_data: FindData = knows_nothing
) -> Rendered | Unrendered:
    """The objects of a unit; what goes wrong is its own result."""
    try:
        trees = [await fetch_tree(one, workshop, find_data) for one in unit.sources]
        refs = {
            one.details.ref: tree.root
            for one, tree in zip(unit.sources, trees, strict=True)
            if isinstance(one.details, ArgoDetails) and one.details.ref
        }
        parts, built = [], []
        for one, tree in zip(unit.sources, trees, strict=True):
            asked = None
            if one.request is not None:
                asked = stamped(await settle(one, tree, refs, cluster, workshop), tree, unit)
                part = await _render(asked, one, unit, workshop, find_data)
                parts.append(_named_after(tree, part, workshop))
            built.append(BuiltTree(tree.taken_from or tree.root, tree.revision, _tool_of(asked)))
        rendered = parts[0] if len(parts) == 1 else Rendered.together(parts)
        rendered = replace(rendered, built=tuple(built))
        is_argo = any(isinstance(one.details, ArgoDetails) for one in unit.sources)
        return _last_counts(rendered, unit) if is_argo else rendered
    except TidegateError as error:
        return Unrendered((error,))
    except ExceptionGroup as group:
        ours, others = group.split(TidegateError)
        if ours is None or others is not None:
            raise
        return Unrendered(tuple(errors_of(ours)))


def _named_after(tree: Snapshot, rendered: Rendered, workshop: Workshop) -> Rendered:
    """With the places of what was fetched told by its address: nobody has such a file here."""
    home = tree.taken_from or tree.root
    if not home.is_relative_to(workshop.setting.cache.root):
        return rendered
    label = foreign(_address(tree.source))
    documents = (
        msgspec.structs.replace(one, place=one.place.named(f"{label}//{one.place.name}"))
        for one in rendered.documents
    )
    return replace(rendered, documents=tuple(documents))


def _address(source: SourceRef | SourceObject) -> str:
    match source:
        case GitSource(url, at):
            return without_user(f"{url}@{at}")
        case ChartSource(repository, chart, version):
            return without_user(f"{repository}/{chart}@{version or 'latest'}")
        case OciSource(url):
            return without_user(url)
        case _:
            return str(source)


def _tool_of(asked: Request | None) -> str:
    """The tool that renders, as Argo CD calls it."""
    match asked:
        case None:
            return ""
        case Release():
            return "Helm"
        case Overlay():
            return "Kustomize"
        case _:
            return "Directory"


def _last_counts(rendered: Rendered, unit: Unit) -> Rendered:
    """Of an object that is there twice, the last; Argo CD goes on with a warning."""
    last: dict[tuple[str, str, str, str], int] = {}
    notes = []
    for at, document in enumerate(rendered.documents):
        kind = Kind.of(text(document.body, "apiVersion"), text(document.body, "kind"))
        home = text(document.body, "metadata", "namespace", default=unit.destination.namespace)
        name = text(document.body, "metadata", "name")
        key = (kind.group, kind.name, home, name)
        if name and key in last:
            problem = f"{kind.name} `{name}` is there twice, and the last one counts"
            first = rendered.documents[last[key]].place
            hint = f"the first is at {first}; remove one of them"
            notes.append(RenderError("render.twice", problem, where=document.place, hint=hint))
        last[key if name else ("", "", "", str(at))] = at
    if not notes:
        return rendered
    kept = sorted(last.values())
    return replace(
        rendered,
        documents=tuple(rendered.documents[at] for at in kept),
        hidden=tuple(rendered.hidden[at] for at in kept),
        notes=(*rendered.notes, *notes),
    )


async def _render(
    asked: Request, wanted: UnitSource, unit: Unit, workshop: Workshop, find_data: FindData
) -> Rendered:
    details = wanted.details
    if not isinstance(details, FluxDetails):
        return await render_request(asked, workshop)
    around = Around(unit, details, find_data)
    try:
        return await _render_around(asked, details, around, workshop)
    except TidegateError as error:
        raise conceal(error, around.secrets) from None


async def _render_around(
    asked: Request, details: FluxDetails, around: Around, workshop: Workshop
) -> Rendered:
    await around.ask(workshop.setting)
    if isinstance(asked, Release):
        rendered = await _render_release(asked, details, around, workshop)
    else:
        rendered = await _render_sought(asked, around, workshop)
    return around.finish(rendered)


async def _render_sought(asked: Request, around: Around, workshop: Workshop) -> Rendered:
    """The objects; unread where nothing that is sought can come in behind the build either."""
    seeks, keys = workshop.setting.seeks, await around.keys(workshop.setting)
    keeps = not around.has_secrets
    rendered = await render_request(asked, workshop, keys=keys, keeps=keeps)
    if rendered.is_unread and not (seeks and not around.may_add(seeks)):
        return await render_request(asked, workshop, keys=keys, keeps=keeps, whole=True)
    return rendered


async def _render_release(
    asked: Release, details: FluxDetails, around: Around, workshop: Workshop
) -> Rendered:
    if details.values:
        asked = msgspec.structs.replace(asked, layers=flux_layers(around.values()))
    revised = await as_known(asked, details, around.unit, workshop)
    lookups = Lookups(around.unit, workshop.setting, around.secrets)
    asked, rendered = await lookups.render(
        revised.release, lambda release: _render_sought(release, around, workshop)
    )
    if rendered.is_unread:
        return rendered
    if rendered.unmet is not None and revised.known is None:
        return replace(rendered, revised=msgspec.structs.replace(revised, release=asked))
    if asked.lookups and revised.known is not None:
        rendered = await as_recorded(rendered, asked, revised.known, around.unit, workshop.setting)
    else:
        for overrides in details.post_renders:
            rendered = await _post_render(rendered, overrides, details, workshop)
    return replace(rendered, revised=msgspec.structs.replace(revised, release=asked))


async def _post_render(
    rendered: Rendered, overrides: FluxOverrides, details: FluxDetails, workshop: Workshop
) -> Rendered:
    """What kustomize makes of the objects of a chart; they keep their places."""
    spared = [one for one in rendered.documents if details.spares_hooks and is_hook(one)]
    with scratch_directory() as place:
        texts = "---\n".join(to_yaml(one.body) for one in rendered.documents if one not in spared)
        await asyncio.to_thread((place / "all.yaml").write_text, texts, encoding="utf-8")
        overlay = Overlay(root=place, overrides=overrides, restriction=Restriction.OWN_DIRECTORY)
        made = await render_request(overlay, workshop, keeps=False)
    known = dict(_by_name(rendered.documents, rendered.hidden))
    pairs = [(one, known.get(name_of(one))) for one in (*spared, *made.documents)]
    return replace(
        rendered,
        documents=tuple(
            msgspec.structs.replace(one, place=old[0].place) if old else one for one, old in pairs
        ),
        hidden=tuple(old[1] if old else () for _, old in pairs),
    )


def _by_name(
    documents: Iterable[Document], hidden: Iterable[tuple[tuple[str | int, ...], ...]]
) -> Iterator[tuple[tuple[str, str, str], tuple[Document, tuple[tuple[str | int, ...], ...]]]]:
    for document, paths in zip(documents, hidden, strict=True):
        yield name_of(document), (document, paths)
