"""Writes by several managers, one after another: generated at random, or recorded in a file.

A sequence is about one object of one kind. Its steps contain only the fields to write; the runner
adds the kind and the name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec
import yaml

from tests.support.objects import CONFIG_MAP, DEPLOYMENT, SERVICE
from tidegate.model.k8s.objects import Json, JsonObject, Kind

GATE = Kind("ownership.example.org", "v1", "Gate")
MANAGERS = ("anna", "bert", "cleo")
LONGEST = 12


class Operation(StrEnum):
    APPLY = "apply"
    CREATE = "create"
    REPLACE = "replace"
    """What was read last, with a merge patch worked into it, and sent as a whole."""
    MERGE = "merge"
    JSON = "json"
    DELETE = "delete"


class WriteOutcome(StrEnum):
    DONE = "done"
    CONFLICT = "conflict"
    INVALID = "invalid"
    MISSING = "missing"
    EXISTS = "exists"


class FieldOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of the managed fields, as far as it can be compared."""

    manager: str
    operation: str
    subresource: str = ""
    timed: bool = True
    fields: dict[str, Json] = msgspec.field(default_factory=dict)


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server made of a step; of the object, only the written fields."""

    ended: WriteOutcome
    over: list[str] = msgspec.field(default_factory=list)
    """Conflicts as `manager field`, or the fields that are wrong."""
    is_new_version: bool = True
    body: Json = None
    owners: list[FieldOwner] = msgspec.field(default_factory=list)


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    operation: Operation
    by: str = ""
    force: bool = False
    subresource: str = ""
    body: Json = msgspec.field(default_factory=dict)
    answer: Answer | None = None


class Sequence(msgspec.Struct, frozen=True, omit_defaults=True):
    shows: str
    kind: Kind
    steps: list[Step]


def read_sequence(path: Path) -> Sequence:
    known = _body_in(yaml.safe_load(path.read_text()))
    kind = _body_in(known["kind"])
    steps = [_read_step(_body_in(step)) for step in _items_in(known["steps"])]
    return Sequence(
        shows=str(known["shows"]),
        kind=Kind(str(kind["group"]), str(kind["version"]), str(kind["name"])),
        steps=steps,
    )


def _read_step(known: JsonObject) -> Step:
    return Step(
        operation=Operation(str(known["operation"])),
        by=str(known.get("by", "")),
        force=bool(known.get("force")),
        subresource=str(known.get("subresource", "")),
        body=known.get("body", {}),
        answer=_read_answer(_body_in(known["answer"])) if "answer" in known else None,
    )


def _read_answer(known: JsonObject) -> Answer:
    return Answer(
        ended=WriteOutcome(str(known["ended"])),
        over=[str(part) for part in _items_in(known.get("over", []))],
        is_new_version=bool(known.get("is_new_version", True)),
        body=known.get("body"),
        owners=[_read_owner(_body_in(owner)) for owner in _items_in(known.get("owners", []))],
    )


def _read_owner(known: JsonObject) -> FieldOwner:
    return FieldOwner(
        manager=str(known["manager"]),
        operation=str(known["operation"]),
        subresource=str(known.get("subresource", "")),
        timed=bool(known.get("timed", True)),
        fields=_body_in(known["fields"]),
    )


def _body_in(value: Json) -> JsonObject:
    assert isinstance(value, dict), value
    return value


def _items_in(value: Json) -> list[Json]:
    assert isinstance(value, list), value
    return value


def write_sequence(path: Path, sequence: Sequence) -> None:
    plain = msgspec.to_builtins(sequence)
    path.write_text(yaml.safe_dump(plain, sort_keys=False, width=100, allow_unicode=True))


def random_sequences(count: int, *, seed: int) -> list[Sequence]:
    """The same ones for the same seed."""
    kinds = sorted(MENUS)
    return [
        _sequence(kinds[number % len(kinds)], Random(f"{seed}-{number}"), f"{seed}-{number}")
        for number in range(count)
    ]


def _sequence(kind: Kind, rng: Random, name: str) -> Sequence:
    steps = [_first(kind, rng)]
    steps += [_step(kind, rng) for _ in range(rng.randint(4, LONGEST - 1))]
    return Sequence(shows=name, kind=kind, steps=steps)


def _first(kind: Kind, rng: Random) -> Step:
    operation = rng.choice([Operation.APPLY, Operation.APPLY, Operation.CREATE])
    return Step(operation, by=rng.choice(MANAGERS), body=_body(kind, rng, is_whole=True))


def _step(kind: Kind, rng: Random) -> Step:
    by = rng.choice(MANAGERS)
    operations = (
        [Operation.APPLY] * 10
        + [Operation.REPLACE] * 3
        + [Operation.MERGE] * 3
        + [Operation.JSON] * 2
    )
    operation = rng.choice([*operations, Operation.CREATE, Operation.DELETE])
    match operation:
        case Operation.DELETE:
            return Step(operation)
        case Operation.JSON:
            return Step(operation, by=by, body=_json_patch(kind, rng))
        case Operation.APPLY:
            if kind == GATE and rng.random() < 0.2:
                status: JsonObject = {"status": _some(rng, STATUS)}
                force = rng.random() < 0.5
                return Step(operation, by=by, force=force, subresource="status", body=status)
            body = _holed(_body(kind, rng, is_whole=True), rng, share=0.04)
            return Step(operation, by=by, force=rng.random() < 0.4, body=body)
        case Operation.CREATE:
            return Step(operation, by=by, body=_body(kind, rng, is_whole=True))
        case Operation.MERGE if kind == GATE and rng.random() < 0.2:
            return Step(operation, by=by, subresource="status", body={"status": _some(rng, STATUS)})
        case Operation.REPLACE | Operation.MERGE:
            return Step(operation, by=by, body=_holed(_body(kind, rng, is_whole=False), rng))


Menu = dict[str, Callable[[Random], Json]]


def _some(rng: Random, menu: Menu, *, share: float = 0.5) -> JsonObject:
    return {name: make(rng) for name, make in menu.items() if rng.random() < share}


def _choice(*choices: Json) -> Callable[[Random], Json]:
    return lambda rng: rng.choice(choices)


def _items(key: str, *items: Menu) -> Callable[[Random], Json]:
    """A list of some of these items in any order; `key` names the part that each one keeps."""

    def make(rng: Random) -> Json:
        chosen = rng.sample(items, rng.randint(1, len(items)))
        made: list[Json] = []
        for menu in chosen:
            kept = {name: make(rng) for name, make in menu.items() if name in key.split()}
            made.append({**kept, **_some(rng, menu)})
        return made

    return make


def _subset(*values: str) -> Callable[[Random], Json]:
    return lambda rng: [*rng.sample(values, rng.randint(0, len(values)))]


COLOR = _choice("red", "blue", "green")
LABELS: Menu = {"tier": _choice("front", "back"), "team": _choice("shop", "mail")}
NOTES: Menu = {"note": COLOR, "example.org/why": COLOR}
METADATA: Menu = {
    "labels": lambda rng: _some(rng, LABELS),
    "annotations": lambda rng: _some(rng, NOTES, share=0.6),
}
DATA: Menu = {"color": COLOR, "size": _choice("s", "m"), "shape": _choice("round", "square")}
STATUS: Menu = {
    "phase": _choice("open", "shut", {"is": "odd"}),
    "seen": lambda rng: rng.choice([_some(rng, SEEN), "never", None]),
    "log": _subset("a", "b"),
}
SEEN: Menu = {"by": COLOR, "at": _choice(1, 2, True), "deep": _choice({}, {"er": 1}, {"er": [1]})}


def _port(port: int, protocol: str) -> Menu:
    """Its number and its name belong together: a Service has no two ports of one name."""
    text: Menu = {
        "name": _choice(f"{protocol.lower()}-{port}"),
        "port": _choice(port),
        "targetPort": _choice(port, 8080, "web"),
        "appProtocol": _choice("http", "grpc"),
    }
    return text | (
        {"protocol": _choice(protocol)} if protocol != "TCP" else {"protocol": _choice("TCP")}
    )


SERVICE_SPEC: Menu = {
    "selector": _choice({"app": "web"}, {"app": "web", "tier": "front"}, {"app": "api"}),
    "internalTrafficPolicy": _choice("Cluster", "Local"),
    "publishNotReadyAddresses": _choice(True),
    "externalIPs": _choice(["192.0.2.1"], ["192.0.2.2", "192.0.2.1"]),
}
SERVICE_PORTS = _items("name port protocol", _port(80, "TCP"), _port(53, "UDP"), _port(53, "TCP"))


def _container(name: str) -> Menu:
    return {
        "name": _choice(name),
        "image": _choice("registry.example/app:1", "registry.example/app:2"),
        "args": _choice(["a"], ["a", "b"]),
        "env": _items(
            "name", {"name": _choice("A"), "value": COLOR}, {"name": _choice("B"), "value": COLOR}
        ),
        "ports": _items(
            "containerPort",
            {"containerPort": _choice(80), "name": _choice("web")},
            {"containerPort": _choice(81), "protocol": _choice("UDP", "TCP")},
        ),
        "resources": _choice(
            {"limits": {"cpu": "1"}}, {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}}
        ),
        "imagePullPolicy": _choice("Always", "Never"),
    }


CONTAINERS = _items("name image", _container("app"), _container("side"))
DEPLOYMENT_SPEC: Menu = {
    "minReadySeconds": _choice(5, 7),
    "revisionHistoryLimit": _choice(0, 3),
    "progressDeadlineSeconds": _choice(600, 700),
}
POD_SPEC: Menu = {
    "terminationGracePeriodSeconds": _choice(1, 2),
    "nodeSelector": _choice({"disk": "ssd"}),
    "imagePullSecrets": _items("name", {"name": _choice("one")}, {"name": _choice("two")}),
}
GATE_SPEC: Menu = {
    "size": _choice(1, 2, 3),
    "map": _items(
        "name",
        {"name": _choice("a"), "port": _choice(1, 2)},
        {"name": _choice("b"), "port": _choice(1, 2)},
        {"name": _choice("c"), "port": _choice(3)},
    ),
    "set": _subset("x", "y", "z"),
    "atomic": _subset("x", "y"),
}


def _config_map(rng: Random, *, is_whole: bool) -> JsonObject:
    del is_whole
    return _some(rng, {"data": lambda rng: _some(rng, DATA, share=0.6)}, share=0.9)


def _service(rng: Random, *, is_whole: bool) -> JsonObject:
    spec = _some(rng, SERVICE_SPEC)
    if is_whole or rng.random() < 0.4:
        spec["ports"] = SERVICE_PORTS(rng)
    return {"spec": spec} if spec else {}


def _deployment(rng: Random, *, is_whole: bool) -> JsonObject:
    spec = _some(rng, DEPLOYMENT_SPEC)
    pod = _some(rng, POD_SPEC)
    if is_whole or rng.random() < 0.4:
        pod["containers"] = CONTAINERS(rng)
    template: JsonObject = {"spec": pod} if pod else {}
    if is_whole:
        # Paused and without replicas, so that no controller makes anything of it.
        spec |= {"replicas": 0, "paused": True, "selector": {"matchLabels": {"app": "web"}}}
        template["metadata"] = {"labels": {"app": "web", **_some(rng, LABELS, share=0.3)}}
    return {"spec": {**spec, **({"template": template} if template else {})}}


def _gate(rng: Random, *, is_whole: bool) -> JsonObject:
    spec = _some(rng, GATE_SPEC)
    if rng.random() < (0.95 if is_whole else 0.3):
        spec["color"] = COLOR(rng)
    return {"spec": spec}


class _Recipe(Protocol):
    def __call__(self, rng: Random, *, is_whole: bool) -> JsonObject: ...


MENUS: dict[Kind, _Recipe] = {
    CONFIG_MAP: _config_map,
    SERVICE: _service,
    DEPLOYMENT: _deployment,
    GATE: _gate,
}


def _body(kind: Kind, rng: Random, *, is_whole: bool) -> JsonObject:
    metadata = _some(rng, METADATA, share=0.3)
    body = MENUS[kind](rng, is_whole=is_whole)
    return {**body, **({"metadata": metadata} if metadata else {})}


HOLES: dict[str, Json] = {"data": None, "labels": None, "annotations": None, "map": None}
HOLES |= {"set": None, "atomic": [], "env": None, "nodeSelector": None, "externalIPs": None}
HOLES |= {"color": None, "size": None, "shape": None, "minReadySeconds": None, "note": None}


def _holed(value: Json, rng: Random, *, share: float = 0.25) -> Json:
    """A body that also says `null`: in a merge patch it takes things away."""
    if not isinstance(value, dict):
        return value
    return {
        # The labels of a template are left alone: a Deployment selects by them.
        name: HOLES[name]
        if name in HOLES and rng.random() < share
        else (inner if name == "template" and share < 0.1 else _holed(inner, rng, share=share))
        for name, inner in value.items()
    }


def _json_patch(kind: Kind, rng: Random) -> Json:
    """Fields are added, replaced or removed; now and then one that is not there."""
    pointers = {
        CONFIG_MAP: ["/data/color", "/data/size", "/data", "/metadata/labels/tier"],
        SERVICE: ["/spec/internalTrafficPolicy", "/spec/selector/app", "/metadata/labels/tier"],
        DEPLOYMENT: ["/spec/minReadySeconds", "/spec/template/spec/nodeSelector"],
        GATE: ["/spec/size", "/spec/set", "/spec/map", "/spec/atomic", "/metadata/labels/tier"],
    }
    values: dict[str, Json] = {
        "data": {"color": "black"},
        "internalTrafficPolicy": "Local",
        "minReadySeconds": 9,
        "nodeSelector": {"disk": "tape"},
        "size": 7 if kind == GATE else "xl",
        "set": ["z", "x"],
        "map": [{"name": "c", "port": 9}, {"name": "a"}],
        "atomic": ["z"],
    }
    operations: list[Json] = []
    for pointer in rng.sample(pointers[kind], rng.randint(1, 2)):
        op = rng.choice(["add", "add", "replace", "remove"])
        value = values.get(pointer.rpartition("/")[2], "black")
        operation: JsonObject = {"op": op, "path": pointer}
        operations.append(operation if op == "remove" else {**operation, "value": value})
    return operations


DIGESTS = Path(__file__).parents[1] / "data" / "ownership" / "random.txt"
SEQUENCES, SEED = 200, 1


def write_digests(answers: list[list[Answer]]) -> str:
    """A line for each random sequence, a word for each answer: enough to compare, not to read."""
    lines = (" ".join(map(_digest, answer)) for answer in answers)
    return "".join(f"{line}\n" for line in lines)


def _digest(answer: Answer) -> str:
    encoded = msgspec.json.encode(answer, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=6).hexdigest()
