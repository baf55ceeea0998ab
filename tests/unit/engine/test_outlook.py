"""What counts as news of an object."""

from __future__ import annotations

import pytest

from tidegate.engine.reach.outlook import Outlook
from tidegate.model.objects import Kind, Live, Ref, Spot
from tidegate.world.calls import Ticket
from tidegate.world.facts import Change, Changed

REF = Ref(Kind("", "v1", "ConfigMap"), "default", "settings")
SPOT = Spot("", REF)


def a_live(version: str, *, uid: str = "one") -> Live:
    return Live(REF, uid, 0, version, b"{}")


def told(live: Live, change: Change = Change.MODIFIED) -> Changed:
    return Changed(Ticket(1), change, live)


@pytest.fixture
def outlook() -> Outlook:
    """One object is wanted, and our write of it returned version 5."""
    outlook = Outlook()
    outlook.want([SPOT])
    outlook.wrote(SPOT, a_live("5"))
    return outlook


@pytest.mark.parametrize("version", ["5", "4"])
def test_what_our_own_write_returned_is_no_news_nor_is_what_was_before_it(
    outlook: Outlook, version: str
) -> None:
    news = outlook.changed("", told(a_live(version)))

    assert news is None
    assert outlook.lives[SPOT].version == "5"


@pytest.mark.parametrize("live", [a_live("6"), a_live("x"), a_live("4", uid="two")])
def test_another_state_and_another_object_are_news(outlook: Outlook, live: Live) -> None:
    news = outlook.changed("", told(live))

    assert news == SPOT
    assert outlook.lives[SPOT] is live


def test_an_end_is_news_whatever_its_version(outlook: Outlook) -> None:
    news = outlook.changed("", told(a_live("5"), Change.DELETED))

    assert news == SPOT
    assert SPOT not in outlook.lives


def test_a_stranger_is_no_news(outlook: Outlook) -> None:
    other = Live(Ref(REF.kind, "default", "other"), "two", 0, "9", b"{}")

    news = outlook.changed("", told(other))

    assert news is None
    assert list(outlook.lives) == [SPOT]
