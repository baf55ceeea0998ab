"""One-shot requests through a dispatcher."""

from __future__ import annotations

from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Delivery, LossReason, NoResponse, Outcome, Response
from tidegate.world.requests import Request


async def send_requests(
    dispatcher: Dispatcher,
    *requests: Request,
    cluster: str = "",
    identity: ImpersonatedUser | None = None,
    timeout: Ms | None = None,
) -> tuple[Outcome, ...]:
    """Submit requests, wait, and return their outcomes in the same order.

    A request without a response after `timeout`, or when the caller is cancelled, is cancelled and
    has the outcome `NoResponse`. Other clients of the dispatcher continue meanwhile.
    """
    client, outcomes = dispatcher.client(), dict[int, Outcome]()
    pending = {
        client.submit(request, cluster=cluster, identity=identity): index
        for index, request in enumerate(requests)
    }
    deadline = None if timeout is None else Ms(dispatcher.now() + timeout)
    try:
        while pending and (deadline is None or dispatcher.now() < deadline):
            for message in await client.wait(deadline):
                if isinstance(message, Response):
                    outcomes[pending.pop(message.request_id)] = message.outcome
    finally:
        for request_id, index in pending.items():
            delivery = Delivery.NOT_SENT if client.cancel(request_id) else Delivery.MAYBE_SENT
            outcomes[index] = NoResponse(delivery, LossReason.CANCELLED, "timed out")
    return tuple(outcomes[index] for index in range(len(requests)))
