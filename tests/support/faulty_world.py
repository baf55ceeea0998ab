"""A resilient World under faults: writes and a watch that must see all of them."""

from __future__ import annotations

from random import Random

import msgspec

from tests.support.objects import CONFIG_MAP, NAMESPACE, a_namespace
from tidegate.model.k8s.objects import Json, LiveObject, Ref
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.sandbox.cluster import ServerTiming
from tidegate.sandbox.faults import (
    CONFLICT,
    ERROR,
    CallEffect,
    CallFault,
    Compaction,
    Delay,
    Fault,
    FaultSelector,
    Frequency,
    Outage,
    Rejection,
    ResponseLoss,
    StreamDrop,
    StreamSilence,
    TimedFault,
    too_many_requests,
)
from tidegate.sandbox.world import START, Sandbox
from tidegate.world.messages import (
    Message,
    Outcome,
    Response,
    WatchEvent,
    WatchEventType,
)
from tidegate.world.requests import Call, RequestId, Selection, Verb, Watch, Write
from tidegate.world.resilient import ResilientWorld

FAULTS_END = Ms(40 * SECOND)
WRITES_END = Ms(30 * SECOND)
WATCHING = RequestId(1)
SHOP = "shop"


def some_faults(chance: Random) -> list[Fault]:
    """A handful, all over when the faults end."""
    effects: list[CallEffect] = [
        Rejection(ERROR),
        Rejection(too_many_requests()),
        ResponseLoss(is_performed=False),
        ResponseLoss(is_performed=True),
        Delay(Ms(chance.randrange(3_000))),
        StreamDrop(after=Ms(chance.randrange(2_000))),
        StreamSilence(duration=Ms(chance.randrange(9_000)), after=Ms(chance.randrange(2_000))),
    ]
    faults: list[Fault] = [
        CallFault(
            effect,
            frequency=Frequency(probability=chance.choice([0.1, 0.3, 0.6]), until=FAULTS_END),
        )
        for effect in chance.sample(effects, chance.randrange(1, 5))
    ]
    if chance.random() < 0.5:
        writes = FaultSelector(verbs=("replace", "patch"))
        faults.append(CallFault(Rejection(CONFLICT), writes, Frequency(every=3, until=FAULTS_END)))
    if chance.random() < 0.5:
        faults.append(TimedFault(Ms(chance.randrange(FAULTS_END)), Compaction()))
    if chance.random() < 0.5:
        start = chance.randrange(WRITES_END)
        length = chance.randrange(1, FAULTS_END - start)
        faults.append(TimedFault(Ms(start), Outage(until=Ms(start + length))))
    return faults


def a_write(number: int, chance: Random) -> Write:
    """A call with one of a few names; creations are distinguished by their number."""
    verb = chance.choice([Verb.APPLY, Verb.APPLY, Verb.CREATE, Verb.DELETE])
    name = f"m{chance.randrange(4)}"
    metadata: dict[str, Json] = {"namespace": SHOP, "name": name}
    if verb is Verb.CREATE:
        name = ""
        metadata = {"namespace": SHOP, "generateName": f"c{number}-"}
    body: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"number": str(number)},
    }
    encoded = b"" if verb is Verb.DELETE else msgspec.json.encode(body)
    return Write(
        verb=verb, ref=Ref(CONFIG_MAP, SHOP, name), body=encoded, manager="test", force=True
    )


class Caller:
    """Keeps a watch and writes, and records the events that it received."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.line = ResilientWorld(sandbox, seed=seed)
        self.seen: dict[Ref, LiveObject] = {}
        self.outcomes: dict[RequestId, Outcome] = {}
        self.writes: dict[RequestId, Write] = {}
        self.messages: list[Message] = []

    def write(self, number: int, write: Write) -> None:
        request_id = RequestId(number + 100)
        self.writes[request_id] = write
        self.line.submit(Call(request_id=request_id, request=write))

    async def listen(self, until: Ms) -> None:
        while self.line.now() < until:
            for message in await self.line.wait(until):
                self.receive(message)

    def receive(self, message: Message) -> None:
        self.messages.append(message)
        match message:
            case Response(request_id=request_id) if request_id != WATCHING:
                assert request_id not in self.outcomes, "answered twice"
                self.outcomes[request_id] = message.outcome
            case WatchEvent(type=WatchEventType.DELETED):
                assert message.live.ref in self.seen, "deleted, but never told of"
                del self.seen[message.live.ref]
            case WatchEvent(type=WatchEventType.ADDED):
                assert message.live.ref not in self.seen, "added twice"
                self.seen[message.live.ref] = message.live
            case WatchEvent():
                assert message.live.ref in self.seen, "changed, but never told of"
                self.seen[message.live.ref] = message.live
            case _:
                pass


async def run(seed: int) -> tuple[Caller, Sandbox]:
    chance = Random(seed)
    sandbox = Sandbox(
        seed=seed, faults=some_faults(chance), timing=ServerTiming(watch_timeout=Ms(20 * SECOND))
    )
    namespace = Write(
        verb=Verb.CREATE,
        ref=Ref(NAMESPACE, "", SHOP),
        body=msgspec.json.encode(a_namespace(SHOP)),
    )
    sandbox.clusters[""].server.perform(namespace)
    caller = Caller(sandbox, seed)
    caller.line.submit(Call(request_id=WATCHING, request=Watch(Selection(CONFIG_MAP, SHOP))))
    for number in range(25):
        caller.write(number, a_write(number, chance))
        await caller.listen(Ms(caller.line.now() + chance.randrange(WRITES_END // 25)))
    await caller.listen(Ms(START + FAULTS_END + 5 * MINUTE))
    return caller, sandbox
