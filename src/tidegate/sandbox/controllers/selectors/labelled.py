"""Objects by their labels, for those who select many times among the same ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidegate.model.labels import matches
from tidegate.model.objects import Json
from tidegate.model.reading import mapping
from tidegate.sandbox.server.store import Stored


class Labelled:
    """What a selector asks for first is looked up; the rest is asked of what was found."""

    def __init__(self, objects: Iterable[Stored], selectors: Iterable[Json]) -> None:
        self._all = list(objects)
        self._by_label: dict[tuple[str, Json], list[Stored]] = defaultdict(list)
        asked = {first[0] for one in selectors if (first := _first(one)) is not None}
        for stored in self._all:
            for key, value in stored.labels.items():
                if key in asked:
                    self._by_label[key, value].append(stored)

    def matching(self, selector: Json) -> list[Stored]:
        """Those that a selector with `matchLabels` and `matchExpressions` takes."""
        first = _first(selector)
        found = self._all if first is None else self._by_label.get(first, [])
        return [stored for stored in found if matches(selector, stored.labels)]


def _first(selector: Json) -> tuple[str, Json] | None:
    return next(iter(mapping(selector, "matchLabels").items()), None)
