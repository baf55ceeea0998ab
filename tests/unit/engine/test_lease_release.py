"""Letting go of a unit while its lease is being written."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.engine.hold import SETTLES, Hold
from tidegate.engine.journal import Keeper
from tidegate.engine.lease import LASTS, Lease
from tidegate.engine.reach.errands import Errand, Pause, Wish
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Live
from tidegate.world.calls import Get, Request, Write
from tidegate.world.facts import Conflict, Done

NOW = Ms(1_000_000)


def a_lease() -> Lease:
    return Lease("shop", "", "me", "plan", version="7", renewed=NOW, held=True)


def stored(lease: Lease, *, holder: str, version: str) -> Done:
    spec: Json = {
        "holderIdentity": holder,
        "renewTime": "1970-01-01T00:16:40.000000Z",
        "leaseDurationSeconds": LASTS // SECOND,
    }
    body: Json = {"metadata": {}, "spec": spec}
    return Done(Live(lease.ref, "uid", 1, version, msgspec.json.encode(body)))


def the_request(wish: Wish) -> Request:
    assert not isinstance(wish, Pause)
    (ask,) = wish
    return ask.request


def holder_in(request: Request) -> tuple[Json, str]:
    """Whom a write makes the holder, and of which version."""
    assert isinstance(request, Write)
    return msgspec.json.decode(request.body)["spec"]["holderIdentity"], request.version


def test_a_release_that_a_renewal_came_before_is_done_again() -> None:
    lease = a_lease()
    errand = lease.release(lambda: NOW)

    first = the_request(next(errand))
    looks = the_request(errand.send((Conflict("changed"),)))
    again = the_request(errand.send((stored(lease, holder="me", version="9"),)))

    assert holder_in(first) == ("", "7")
    assert isinstance(looks, Get)
    assert holder_in(again) == ("", "9")
    assert not lease.held


def test_a_release_leaves_the_lease_to_whom_it_belongs_by_then() -> None:
    lease = a_lease()
    errand = lease.release(lambda: NOW)

    next(errand)
    errand.send((Conflict("changed"),))
    with pytest.raises(StopIteration):
        errand.send((stored(lease, holder="other", version="9"),))

    assert not lease.held


def test_a_unit_is_not_let_go_while_a_renewal_is_on_its_way() -> None:
    lease = a_lease()
    hold = Hold(lease, Keeper("shop", ""), renewing=True)
    errand = hold.close(lambda: NOW)

    waits = first_pause(errand)
    hold.renewing = False
    lets_go = the_request(errand.send(()))

    assert waits == Pause(Ms(NOW + SETTLES))
    assert holder_in(lets_go) == ("", "7")


def first_pause(errand: Errand[None]) -> Pause:
    """Where an errand waits; what it asks for until then is done."""
    wish = next(errand)
    while not isinstance(wish, Pause):
        wish = errand.send(tuple(Done() for _ in wish))
    return wish
