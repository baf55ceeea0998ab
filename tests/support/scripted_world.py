"""A World with scripted messages, for tests of the client layers."""

from __future__ import annotations

from tidegate.model.k8s.objects import Kind, LiveObject, Ref
from tidegate.model.times import Ms
from tidegate.world.messages import Message, Outcome, Response, TimerFired
from tidegate.world.requests import Call, Get, RequestId, Verb, Write

CONFIG_MAP = Kind("", "v1", "ConfigMap")


def a_ref(name: str = "web", *, namespace: str = "shop", kind: Kind = CONFIG_MAP) -> Ref:
    return Ref(kind, namespace, name)


def a_live(name: str = "web", *, version: int = 1, uid: str = "u1") -> LiveObject:
    return LiveObject(a_ref(name), uid, 0, str(version), b"{}")


def a_get(
    request_id: int = 1, name: str = "web", *, urgent: bool = False, cluster: str = ""
) -> Call:
    request = Get(a_ref(name))
    return Call(request_id=RequestId(request_id), request=request, urgent=urgent, cluster=cluster)


def a_write(request_id: int = 1, *, verb: Verb = Verb.APPLY, uid: str = "") -> Call:
    return Call(request_id=RequestId(request_id), request=Write(verb=verb, ref=a_ref(), uid=uid))


class ScriptedWorld:
    """Keeps all requests. The clock stops unless a caller waits; tests deliver messages."""

    def __init__(self) -> None:
        self.sent: list[Call] = []
        self.cancelled: list[RequestId] = []
        self.time = Ms(1_000_000)
        self._facts: list[Message] = []

    def now(self) -> Ms:
        return self.time

    def submit(self, call: Call) -> None:
        self.sent.append(call)

    def cancel(self, request_id: RequestId) -> bool:
        self.cancelled.append(request_id)
        return False

    async def wait(self, until: Ms | None) -> tuple[Message, ...]:
        if self._facts:
            facts, self._facts = tuple(self._facts), []
            return facts
        if until is None:
            raise AssertionError("waits for ever: nothing was told and nothing is due")
        self.time = max(self.time, until)
        return (TimerFired(),)

    def wake(self) -> None:
        """Do nothing: no call waits here."""

    def deliver(self, *facts: Message) -> None:
        self._facts.extend(facts)

    def answer(self, outcome: Outcome) -> None:
        """The outcome of the call that was sent last."""
        self.deliver(Response(self.sent[-1].request_id, outcome))
