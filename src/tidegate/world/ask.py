"""Questions and answers, for verbs that have nothing else to wait for."""

from __future__ import annotations

from tidegate.model.identity import Identity
from tidegate.model.moment import Ms
from tidegate.world.calls import Request
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Answer, Loss, Lost, Outcome, Sent


async def ask(
    world: Exchange,
    *requests: Request,
    cluster: str = "",
    identity: Identity | None = None,
    within: Ms | None = None,
) -> tuple[Outcome, ...]:
    """Submit these, wait, hand back the outcomes in the same order.

    What has no answer after `within`, or when the asker is cancelled, is withdrawn and counts as
    lost. Rollouts of the same world go on meanwhile.
    """
    party, outcomes = world.party(), dict[int, Outcome]()
    waiting = {
        party.submit(request, cluster=cluster, identity=identity): place
        for place, request in enumerate(requests)
    }
    deadline = None if within is None else Ms(world.now() + within)
    try:
        while waiting and (deadline is None or world.now() < deadline):
            for fact in await party.wait(deadline):
                if isinstance(fact, Answer):
                    outcomes[waiting.pop(fact.ticket)] = fact.outcome
    finally:
        for ticket, place in waiting.items():
            sent = Sent.NO if party.cancel(ticket) else Sent.MAYBE
            outcomes[place] = Lost(sent, Loss.WITHDRAWN, "no answer in time")
    return tuple(outcomes[place] for place in range(len(requests)))
