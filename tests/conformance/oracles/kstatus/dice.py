"""Chance, from a seed: fields that are there or not, right, nearly right, or of a wrong type."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tidegate.model.k8s.objects import Json, JsonObject


class Absent:
    """A field that is not there."""


ABSENT: Final = Absent()
Field = Json | Absent

ODD: tuple[Json, ...] = (None, "", "x", "True", "1", 7, 1.5, 2.0, True, False, [], {}, [None], [3])


def built(fields: dict[str, Field]) -> JsonObject:
    """A mapping of the fields that are there."""
    return {name: value for name, value in fields.items() if not isinstance(value, Absent)}


class Dice:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def happens(self, share: float) -> bool:
        return self._random.random() < share

    def one_of(self, *options: Field) -> Field:
        return self._random.choice(options)

    def word(self, *options: str) -> str:
        return self._random.choice(options)

    def among(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def near(self, expected: int, *, share: float = 0.8) -> Field:
        """Mostly what is wanted; else less, more, or nothing."""
        return expected if self.happens(share) else self.one_of(ABSENT, 0, 1, 2, 3, expected + 1)

    def condition(self, name: str, *, reasons: tuple[str, ...], share: float = 0.7) -> JsonObject:
        """A condition that holds with some likelihood, written as well or badly as people do."""
        status = "True" if self.happens(share) else self.word("True", "False", "Unknown", "true")
        entry: dict[str, Field] = {
            "type": name,
            "status": status if self.happens(0.97) else ABSENT,
            "reason": self.word(*reasons) if self.happens(0.9) else self.one_of(ABSENT, "", None),
            "message": self.one_of("it is so", "because", "", ABSENT),
            "observedGeneration": self.one_of(ABSENT, ABSENT, 1, 2),
        }
        return built(entry)

    def conditions(self, *drawn: JsonObject) -> Field:
        """Some of these in any order, or no list at all."""
        kept: list[Json] = [item for item in drawn if self.happens(0.75)]
        self._random.shuffle(kept)
        return kept if kept or self.happens(0.5) else self.one_of(ABSENT, None)

    def spoil(self, body: Json, *, keep: frozenset[str] = frozenset()) -> None:
        """Put something odd in one place, or take it away. Fields named in `keep` stay."""
        places = list(_places(body, keep))
        if not places:
            return
        holder, key = self._random.choice(places)
        if isinstance(holder, dict):
            if self.happens(0.2):
                del holder[str(key)]
            else:
                holder[str(key)] = self._random.choice(ODD)
        else:
            holder[int(key)] = self._random.choice(ODD)


Place = tuple[dict[str, Json] | list[Json], str | int]


def _places(body: Json, keep: frozenset[str]) -> Iterator[Place]:
    if isinstance(body, dict):
        for name, value in body.items():
            if name not in keep:
                yield body, name
                yield from _places(value, keep)
    elif isinstance(body, list):
        for number, value in enumerate(body):
            yield body, number
            yield from _places(value, keep)
