"""What all drawings of a graph share: units as boxes with waves in them, and the ties between.

A picture says what is drawn, and nothing of how. A box stands in a column: behind all boxes that
it waits for. What is the same many times is drawn once, with its number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from tidegate.model.graph import (
    NOWHERE,
    Circle,
    CriticalStep,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    MissingThing,
    NodeKind,
    Tie,
    WaitLink,
)
from tidegate.model.operators import Effect
from tidegate.model.unit import Strength, UnitId
from tidegate.report.places import seen_text
from tidegate.report.rollout.names import name_step

CROWD = 8
"""So many objects of one kind in one wave are still drawn one by one."""
OUTSIDE = "outside"
MOST_FROM_OUTSIDE = 3
"""So many arrows from one thing outside are drawn; of more, the list says who needs it."""
QUIET = frozenset({Tie.NAMESPACE, Tie.DEFINITION, Tie.OPERATOR, Tie.SELECTS})
"""Ties that a drawing tells only where they go wrong: there are too many of them."""


class GraphStory(msgspec.Struct, frozen=True, kw_only=True):
    """A graph, and what was found out about it.

    `inverted`: the places of edges whose consumer comes first. `path`: the critical path, `waits`:
    why one node waits for another; both only where somebody asked.
    """

    graph: Graph
    inverted: frozenset[int] = frozenset()
    circles: tuple[Circle, ...] = ()
    lacks: tuple[MissingThing, ...] = ()
    path: tuple[CriticalStep, ...] | None = None
    waits: tuple[WaitLink, ...] | None = None
    units: frozenset[UnitId] | None = None
    """Only these are shown."""

    def is_shown(self, unit: UnitId | None) -> bool:
        return self.units is None or unit in self.units


class PictureItem(msgspec.Struct, frozen=True):
    """One line of a wave: an object, or many of one kind."""

    key: str
    label: str
    nodes: tuple[int, ...]
    where: str = ""


class PictureWave(msgspec.Struct, frozen=True):
    label: str
    items: tuple[PictureItem, ...]


class PictureBox(msgspec.Struct):
    """A unit, or what lies outside. `column`: how many boxes one after another come before it."""

    key: str
    label: str
    column: int
    waves: tuple[PictureWave, ...]
    where: str = ""
    is_critical: bool = False
    unit: UnitId | None = None

    @property
    def items(self) -> Iterator[PictureItem]:
        return (item for wave in self.waves for item in wave.items)


class PictureTie(msgspec.Struct, frozen=True):
    """An arrow between two keys: boxes, or items."""

    before: str
    after: str
    label: str
    strength: Strength
    is_wrong: bool = False
    is_parent: bool = False
    title: str = ""


class GraphPicture(msgspec.Struct):
    boxes: list[PictureBox] = msgspec.field(default_factory=list)
    ties: list[PictureTie] = msgspec.field(default_factory=list)


def make_picture(story: GraphStory) -> GraphPicture:
    """What of a graph is drawn."""
    graph = story.graph
    columns = _columns(graph)
    critical = {graph.steps[one.step].unit for one in story.path or ()}
    picture = GraphPicture()
    homes: dict[int, str] = {}
    boxes: dict[UnitId, str] = {}
    steps: dict[UnitId, list[GraphStep]] = {}
    for step in graph.steps:
        steps.setdefault(step.unit, []).append(step)
    for number, unit in enumerate(graph.units.values()):
        name = unit.unit
        if name is None or not story.is_shown(name):
            continue
        key = boxes[name] = f"u{number}"
        waves = tuple(_waves(graph, steps.get(name, []), key, homes))
        column = min((columns[one.number] for one in steps.get(name, [])), default=0)
        where = seen_text(unit.where)
        box = PictureBox(key, unit.name, column, waves, where, name in critical, name)
        picture.boxes.append(box)
    outside = _outside(graph, story, homes)
    if outside is not None:
        picture.boxes.insert(0, outside)
    _close_ranks(picture.boxes)
    picture.ties += _ties_of_units(graph, boxes)
    picture.ties += _ties_of_objects(story, homes)
    return picture


def _columns(graph: Graph) -> list[int]:
    """By step, how many changes of unit the longest way to it has."""
    columns = [0] * len(graph.steps)
    unmet = [0] * len(graph.steps)
    for others in graph.behind:
        for one in others:
            unmet[one] += 1
    free = [step for step, count in enumerate(unmet) if not count]
    for step in free:  # it grows meanwhile
        for one in graph.behind[step]:
            differs = graph.steps[step].unit != graph.steps[one].unit
            columns[one] = max(columns[one], columns[step] + differs)
            unmet[one] -= 1
            if not unmet[one]:
                free.append(one)
    return columns


def _close_ranks(boxes: Iterable[PictureBox]) -> None:
    boxes = list(boxes)
    ranks = {column: rank for rank, column in enumerate(sorted({one.column for one in boxes}))}
    for one in boxes:
        one.column = ranks[one.column]


def _waves(
    graph: Graph, steps: Iterable[GraphStep], key: str, homes: dict[int, str]
) -> Iterator[PictureWave]:
    """Steps with the same name are one wave: joints part it only for the engine."""
    waves: dict[str, list[GraphNode]] = {}
    for step in steps:
        label = name_step(step).partition(" part ")[0]
        waves.setdefault(label, []).extend(graph.nodes[one] for one in step.nodes)
    for label, nodes in waves.items():
        items = tuple(_items(nodes, key, homes))
        if items:
            yield PictureWave(label, items)


def _items(nodes: list[GraphNode], key: str, homes: dict[int, str]) -> Iterator[PictureItem]:
    kinds: dict[str, list[GraphNode]] = {}
    for one in nodes:
        kinds.setdefault(one.ref.kind.name if one.ref else one.name, []).append(one)
    for kind, mine in kinds.items():
        if len(mine) > CROWD:
            name = f"{key}n{mine[0].number}"
            homes |= {one.number: name for one in mine}
            yield PictureItem(
                name, f"{kind}, {len(mine):,} of them", tuple(one.number for one in mine)
            )
            continue
        for one in mine:
            homes[one.number] = f"{key}n{one.number}"
            label = f"{one.name}{' (hook)' if one.hook else ''}"
            yield PictureItem(homes[one.number], label, (one.number,), seen_text(one.where))


def _outside(graph: Graph, story: GraphStory, homes: dict[int, str]) -> PictureBox | None:
    groups: dict[str, list[GraphNode]] = {}
    for lack in story.lacks:
        node = graph.nodes[lack.node]
        asked = (graph.nodes[one.node] for one in lack.askers)
        if node.kind is NodeKind.OUTSIDE and any(story.is_shown(one.unit) for one in asked):
            groups.setdefault(lack.kind, []).append(node)
    waves = tuple(
        PictureWave(str(kind), tuple(_items(nodes, OUTSIDE, homes)))
        for kind, nodes in groups.items()
    )
    if not waves:
        return None
    return PictureBox(OUTSIDE, "outside the repository", -1, waves)


def _ties_of_units(graph: Graph, boxes: dict[UnitId, str]) -> Iterator[PictureTie]:
    """One for each reason between two units."""
    told: set[tuple[str, str, str]] = set()
    steps = {one.id: one for one in graph.steps}
    parents = {(edge.before, edge.after) for edge in graph.edges if edge.tie is Tie.PARENT}
    numbers = {name: one.number for name, one in graph.units.items()}
    for edge in graph.edges:
        before, after = graph.nodes[edge.before], graph.nodes[edge.after]
        ends = (boxes.get(before.unit or _NOBODY), boxes.get(after.unit or _NOBODY))
        if after.kind is not NodeKind.UNIT or None in ends or before.kind is not NodeKind.UNIT:
            continue
        key = (str(ends[0]), str(ends[1]), str(edge.tie))
        if key not in told:
            told.add(key)
            label = "" if edge.tie is Tie.PARENT else str(edge.tie)
            yield PictureTie(
                key[0],
                key[1],
                label,
                Strength.HARD,
                is_parent=edge.tie is Tie.PARENT,
                title=seen_text(edge.where),
            )
    for link in graph.order:
        one, other = steps.get(link.before), steps.get(link.after)
        if one is None or other is None or one.unit == other.unit:
            continue
        ends = (boxes.get(one.unit), boxes.get(other.unit))
        pair = (numbers.get(one.unit, NOWHERE), numbers.get(other.unit, NOWHERE))
        if None in ends or pair in parents or pair[::-1] in parents:
            continue
        key = (str(ends[0]), str(ends[1]), str(link.because))
        if key not in told:
            told.add(key)
            yield PictureTie(key[0], key[1], key[2], link.strength, title=seen_text(link.where))


_NOBODY = UnitId("", "", "", "")


def _ties_of_objects(story: GraphStory, homes: dict[int, str]) -> Iterator[PictureTie]:
    graph = story.graph
    told: set[tuple[str, str]] = set()
    for at, edge in enumerate(graph.edges):
        ends = (homes.get(edge.before), homes.get(edge.after))
        if None in ends or ends[0] == ends[1] or graph.nodes[edge.after].kind is NodeKind.UNIT:
            continue
        is_wrong = at in story.inverted
        key = (str(ends[0]), str(ends[1]))
        if key in told or not (is_wrong or _is_drawn(graph, edge)):
            continue
        told.add(key)
        yield PictureTie(
            key[0],
            key[1],
            str(edge.through) if edge.through else "",
            edge.strength,
            is_wrong=is_wrong,
            title=tie_words(graph, edge),
        )


def _is_drawn(graph: Graph, edge: GraphEdge) -> bool:
    """What happens anyway is not drawn."""
    before = graph.nodes[edge.before]
    if before.kind is NodeKind.OUTSIDE:
        return edge.tie not in QUIET and len(graph.needed_by[before.number]) <= MOST_FROM_OUTSIDE
    return edge.tie not in QUIET and (edge.effect is not Effect.NOTHING or edge.tie is Tie.HOST)


def tie_words(graph: Graph, edge: GraphEdge) -> str:
    """`Job shop/migrate needs Secret shop/db from ExternalSecret shop/db (reference)`."""
    before, after = graph.nodes[edge.before], graph.nodes[edge.after]
    what = f"{edge.through} from {before.name}" if edge.through else before.name
    return f"{after.name} needs {what} ({edge.tie})"


def shown_nodes(graph: Graph, units: Collection[UnitId] | None) -> Iterator[GraphNode]:
    """The nodes of some units, and what those need from outside."""
    if units is None:
        yield from graph.nodes
        return
    own = {one.number for one in graph.nodes if one.unit in units}
    near = {edge.before for edge in graph.edges if edge.after in own}
    yield from (one for one in graph.nodes if one.number in own or one.number in near)
