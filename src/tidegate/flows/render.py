"""What a path renders to: a chart, an overlay, or a directory of manifests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tidegate.documents import Document, FieldPath
from tidegate.errors import Place, RenderError, TidegateError
from tidegate.render.helm import (
    Inline,
    Parameter,
    Release,
    ValuesFile,
    helm_workers,
    render,
)
from tidegate.render.kustomize import Overlay, build
from tidegate.render.plain import Directory, read_directory
from tidegate.render.sops import Keys, decrypt
from tidegate.render.tool_choice import Tool, detected_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be rendered, and what a chart is told."""

    path: Path
    name: str = ""
    namespace: str = "default"
    values: tuple[Path, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects, which of their fields stood encrypted, and what could not be opened."""

    documents: tuple[Document, ...]
    hidden: tuple[tuple[FieldPath, ...], ...]
    locked: tuple[TidegateError, ...]


async def render_path(wanted: Wanted) -> Rendered:
    """The objects of a path, decrypted where there is a key and with placeholders where not."""
    path = wanted.path.resolve()
    if not path.is_dir():
        problem = f"`{wanted.path}` is not a directory"
        hint = "name a chart, an overlay or a directory of manifests"
        raise RenderError("render.path", problem, where=Place(str(wanted.path)), hint=hint)
    root = root_of(path)
    inside = path.relative_to(root).as_posix()
    documents = await _render(wanted, root, inside)
    opened = await decrypt(documents, Keys.from_environment(os.environ), offline=True)
    return Rendered(opened.documents, opened.hidden, opened.locked)


async def _render(wanted: Wanted, root: Path, inside: str) -> tuple[Document, ...]:
    match detected_tool(entry.name for entry in wanted.path.iterdir()):
        case Tool.HELM:
            return await _render_chart(wanted, root, inside)
        case Tool.KUSTOMIZE:
            return await build(Overlay(root=root, path=inside))
        case _:
            return read_directory(Directory(root=root, path=inside, recurse=True))


def root_of(path: Path) -> Path:
    """The repository of a path: overlays and charts may reach that far, and no farther."""
    return next((one for one in (path, *path.parents) if (one / ".git").exists()), path)


async def _render_chart(wanted: Wanted, root: Path, inside: str) -> tuple[Document, ...]:
    files = (ValuesFile(one.name, root=str(one.resolve().parent)) for one in wanted.values)
    parameters = (Parameter(name, value) for name, value in wanted.parameters)
    release = Release(
        root=str(root),
        chart=inside,
        name=wanted.name or wanted.path.resolve().name,
        namespace=wanted.namespace,
        layers=(*files, Inline(), *parameters),
    )
    async with helm_workers(count=1) as workers:
        return await render(release, workers)
