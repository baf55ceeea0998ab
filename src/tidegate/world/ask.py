"""Questions and answers, for verbs that have nothing else to wait for."""

from __future__ import annotations

from tidegate.model.identity import Identity
from tidegate.model.moment import Ms
from tidegate.world.calls import Call, Request, Ticket
from tidegate.world.facts import Answer, Loss, Lost, Outcome, Sent
from tidegate.world.protocol import World

FIRST_TICKET = 1 << 40
"""Above every ticket that a rollout hands out."""


async def ask(
    world: World,
    *requests: Request,
    cluster: str = "",
    identity: Identity | None = None,
    within: Ms | None = None,
) -> tuple[Outcome, ...]:
    """Submit these, wait, hand back the outcomes in the same order.

    What has no answer after `within` is withdrawn and counts as lost. Nobody else may be waiting
    on the world: facts that are no answers to these requests are dropped.
    """
    waiting = {Ticket(FIRST_TICKET + place): place for place in range(len(requests))}
    for ticket, place in waiting.items():
        world.submit(
            Call(ticket=ticket, request=requests[place], cluster=cluster, identity=identity)
        )
    deadline = None if within is None else Ms(world.now() + within)
    outcomes: dict[int, Outcome] = {}
    while waiting and (deadline is None or world.now() < deadline):
        for fact in await world.wait(deadline):
            if isinstance(fact, Answer) and fact.ticket in waiting:
                outcomes[waiting.pop(fact.ticket)] = fact.outcome
    for ticket, place in waiting.items():
        sent = Sent.NO if world.cancel(ticket) else Sent.MAYBE
        outcomes[place] = Lost(sent, Loss.WITHDRAWN, "no answer in time")
    return tuple(outcomes[place] for place in range(len(requests)))
