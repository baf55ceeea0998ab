"""The parts of a journal hold what is remembered, also after that has changed."""

from __future__ import annotations

import base64

import msgspec

from tidegate.engine.journal import PER_PART, Keeper
from tidegate.engine.reach.errands import Pause
from tidegate.model.journal import Entry
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.world.calls import Write
from tidegate.world.facts import Done

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def a_ref(name: str) -> Ref:
    return Ref(CONFIG_MAP, "default", name)


def a_keeper(*names: str) -> Keeper:
    keeper = Keeper("shop", "")
    keeper.expect("plan", map(a_ref, names), text="text", now=Ms(0))
    return keeper


def stored(keeper: Keeper) -> dict[str, list[str]]:
    """The names in each part that is written now."""
    errand = keeper.store()
    parts: dict[str, list[str]] = {}
    wish = next(errand)
    while True:
        assert not isinstance(wish, Pause)
        for ask in wish:
            assert isinstance(ask.request, Write)
            if "." in ask.request.ref.name:
                parts[ask.request.ref.name] = names_in(ask.request.body)
        try:
            wish = errand.send(tuple(Done() for _ in wish))
        except StopIteration:
            return parts


def names_in(body: bytes) -> list[str]:
    text = base64.b64decode(msgspec.json.decode(body)["data"]["journal.json"])
    return [line["ref"]["name"] for line in msgspec.json.decode(text)]


def test_what_comes_later_is_in_the_next_writing() -> None:
    keeper = a_keeper("a", "c")
    (before,) = stored(keeper).values()

    keeper.remember(a_ref("b"), Entry("digest"))
    (after,) = stored(keeper).values()

    assert (before, after) == (["a", "c"], ["a", "b", "c"])


def test_what_is_forgotten_is_not() -> None:
    keeper = a_keeper("a", "b")
    stored(keeper)

    keeper.forget(a_ref("a"))
    (left,) = stored(keeper).values()

    assert left == ["b"]


def test_only_the_part_of_what_has_changed_is_written() -> None:
    keeper = a_keeper(*(f"m{number}" for number in range(PER_PART + 1)))
    whole = stored(keeper)

    keeper.remember(a_ref("m7"), Entry("digest"))
    changed = stored(keeper)

    assert len(whole) == 2
    assert sum(map(len, whole.values())) == PER_PART + 1
    assert [name for name, names in whole.items() if "m7" in names] == list(changed)
