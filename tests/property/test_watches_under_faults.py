"""Thousands of seeded fault schedules: no change is missed, no write is repeated that must not be,
and everything settles when the faults end."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.faulty_world import (
    SHOP,
    Caller,
    run,
)
from tests.support.objects import CONFIG_MAP
from tidegate.sandbox.faults import (
    ERROR,
)
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import (
    Delivery,
    NoResponse,
    Success,
)
from tidegate.world.requests import Verb

SCHEDULES = 2_000


BATCH = 100


def check_rest(caller: Caller) -> None:
    """Every call has its one outcome."""
    assert set(caller.outcomes) == set(caller.writes)


def check_view(caller: Caller, sandbox: Sandbox) -> None:
    """The events that the caller received add up to the objects that exist."""
    server = sandbox.clusters[""].server
    entry = server.registry.find(CONFIG_MAP)
    assert entry is not None
    there = {
        stored.ref: str(stored.version)
        for stored in server.store.get_table(entry.resource).list_objects(SHOP)
    }
    assert {ref: live.resource_version for ref, live in caller.seen.items()} == there


def check_writes(caller: Caller) -> None:
    """A creation is there once if it was done, at most once if its answer was lost, else not."""
    made = Counter(ref.name.split("-")[0] for ref in caller.seen if ref.name.startswith("c"))
    for request_id, write in caller.writes.items():
        outcome = caller.outcomes[request_id]
        if write.verb is Verb.CREATE:
            times = made[f"c{request_id - 100}"]
            match outcome:
                case Success():
                    assert times == 1
                case NoResponse(delivery=Delivery.MAYBE_SENT):
                    assert times <= 1
                case _:
                    assert times == 0
        elif write.verb is Verb.APPLY:
            assert isinstance(outcome, Success | NoResponse) or outcome == ERROR


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
async def test_a_line_keeps_its_promises_under_any_schedule_of_faults(first: int) -> None:
    for seed in range(first, first + BATCH):
        caller, sandbox = await run(seed)

        check_rest(caller)
        check_view(caller, sandbox)
        check_writes(caller)
