"""What the user points at, as a unit of the plain dialect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.dialect.ignoring import read_ignored
from tidegate.dialect.plain import read_unit
from tidegate.documents import Document
from tidegate.flows.render import Wanted, for_cluster, own_setting, render_all
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.capabilities import ask_capabilities
from tidegate.model.ignoring import Ignored
from tidegate.model.manifest import WantedUnit
from tidegate.model.objects import Kind
from tidegate.model.plan import PlannedUnit
from tidegate.model.reading import text
from tidegate.world.ask import ask
from tidegate.world.calls import Kinds
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A directory, a chart or an overlay, and how it is to be understood.

    `resources`: only these of its objects, and no hooks. `options`: Argo CD's sync options.
    `ignores`: fields that are no difference.
    """

    wanted: Wanted
    ignores_waves: bool = False
    options: tuple[str, ...] = ()
    ignores: tuple[Ignored, ...] = ()
    resources: tuple[str, ...] = ()
    offline: bool = False
    maps: tuple[str, ...] = field(default=())

    @property
    def unit(self) -> PlannedUnit:
        wanted = self.wanted
        name = wanted.name or Path(wanted.what).resolve().name
        return PlannedUnit(
            name=f"{wanted.namespace}/{name}", options=self.options, ignores=self.ignores
        )


@dataclass(frozen=True, slots=True)
class Read:
    """A unit, and what it was rendered to."""

    unit: WantedUnit
    rendered: Rendered


def read_ignores(path: Path | None) -> tuple[Ignored, ...]:
    """The fields that a file says are no difference. Raises what is wrong with it."""
    return () if path is None else read_ignored(path.read_bytes(), str(path))


async def read_chosen(chosen: Chosen, world: Exchange) -> Read:
    """Render it for its cluster and read its annotations. Raises what is wrong with its files."""
    setting = own_setting(offline=chosen.offline, maps=chosen.maps)
    wanted = for_cluster(chosen.wanted, await ask_capabilities(world))
    (rendered,) = await render_all([wanted], setting)
    if isinstance(rendered, Unrendered):
        raise ExceptionGroup("not rendered", list(rendered.errors))
    return Read(await _read_unit(rendered.documents, chosen, world), rendered)


async def _read_unit(
    documents: tuple[Document, ...], chosen: Chosen, world: Exchange
) -> WantedUnit:
    cluster_wide = await _cluster_wide(world, documents)
    return read_unit(
        documents,
        chosen.unit,
        namespace=chosen.wanted.namespace,
        is_namespaced=lambda kind: (kind.group, kind.name) not in cluster_wide,
        ignores_waves=chosen.ignores_waves,
    )


async def _cluster_wide(world: Exchange, documents: Iterable[Document]) -> set[tuple[str, str]]:
    """Kinds without namespaces: the cluster's, and those that the documents define."""
    (catalogue,) = await ask(world, Kinds())
    served = catalogue.kinds if isinstance(catalogue, Catalogue) else ()
    found = {(one.kind.group, one.kind.name) for one in served if not one.namespaced}
    for document in documents:
        body = document.body
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        if kind.name == "CustomResourceDefinition" and text(body, "spec", "scope") == "Cluster":
            found.add((text(body, "spec", "group"), text(body, "spec", "names", "kind")))
    return found
