"""Random repositories of both dialects: units that depend on each other, waves, hooks, operators,
the objects that these create, and their dependents. Correct ones can be rolled out on an empty
cluster; in those with a planted mistake a gate waits for an object of a later step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.support.manifest_texts import (
    SOURCE,
    application,
    config_map,
    kustomization,
    pods,
    service,
)
from tests.support.manifest_texts import notes as wave_notes

HOME = "default"
PHASES = ("PreSync", "Sync", "PostSync")
OPERATORS = {
    "eso": ("external-secrets", "ghcr.io/external-secrets/external-secrets:v1.3.2"),
    "certs": ("cert-manager", "quay.io/jetstack/cert-manager-controller:v1.21.2"),
    "cnpg": ("cnpg-controller-manager", "ghcr.io/cloudnative-pg/cloudnative-pg:1.27.0"),
}
DEFINED = {
    "eso": ("external-secrets.io/v1", ("SecretStore", "ExternalSecret")),
    "certs": ("cert-manager.io/v1", ("Issuer", "Certificate")),
    "cnpg": ("postgresql.cnpg.io/v1", ("Cluster",)),
}


@dataclass(frozen=True)
class UnitPosition:
    """The position of an object: a unit, and in an Application a phase and a wave."""

    unit: str
    phase: str = ""
    wave: int = 0

    def is_before(self, other: UnitPosition, ancestors: dict[str, set[str]]) -> bool:
        if self.unit != other.unit:
            return self.unit in ancestors[other.unit]
        mine, theirs = (
            (PHASES.index(item.phase) if item.phase else 1, item.wave) for item in (self, other)
        )
        return mine < theirs


@dataclass(frozen=True)
class ObjectGroup:
    """A few objects that stand together.

    `needs`: what it is not ready without. `refused_without`: what it cannot even be applied
    without. `write`: its text, given its annotations.
    """

    name: str
    write: Callable[[str], str]
    needs: tuple[str, ...] = ()
    refused_without: tuple[str, ...] = ()
    is_task: bool = False
    is_checked: bool = True
    is_custom: bool = False


@dataclass
class RandomRepository:
    """Things in their slots, and the units that these are of."""

    things: dict[str, ObjectGroup] = field(default_factory=dict)
    slots: dict[str, UnitPosition] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)
    """By Kustomization, those it depends on."""
    waits: dict[str, bool] = field(default_factory=dict)
    hooks: set[str] = field(default_factory=set)
    """Tasks of the Application that are Sync hooks."""
    app: str = "shop"

    @property
    def ancestors(self) -> dict[str, set[str]]:
        result: dict[str, set[str]] = {self.app: set()}

        def walk(unit: str, seen: set[str]) -> set[str]:
            for item in self.after.get(unit, ()):
                if item not in seen:
                    seen.add(item)
                    walk(item, seen)
            return seen

        for unit in self.after:
            result[unit] = walk(unit, set())
        return result

    def files(self) -> dict[str, str]:
        """The repository as texts by path."""
        result = {"clusters/source.yaml": SOURCE}
        for unit, after in self.after.items():
            text = kustomization(unit, *after, wait=self.waits[unit])
            result[f"clusters/{unit}.yaml"] = text
            result[f"{unit}/base.yaml"] = config_map(f"base-{unit}", inside=HOME)
        if any(slot.unit == self.app for slot in self.slots.values()):
            text = application(self.app, self.app).replace("namespace: shop", f"namespace: {HOME}")
            result[f"clusters/{self.app}.yaml"] = text
        for name, slot in self.slots.items():
            result[f"{slot.unit}/{name}.yaml"] = self.things[name].write(self._note(name, slot))
        return result

    def _note(self, name: str, slot: UnitPosition) -> str:
        if slot.unit != self.app:
            return ""
        is_hook = slot.phase != "Sync" or name in self.hooks
        return wave_notes(slot.wave, slot.phase if is_hook else "")

    def fitting(self, thing: ObjectGroup, slots: Iterable[UnitPosition]) -> list[UnitPosition]:
        """Positions with no dependency in a later position.

        The Application depends on Kustomizations, and never the other way round.
        """
        ancestors = self.ancestors
        needed = {self.slots[need].unit for need in thing.needs}
        return [
            slot
            for slot in slots
            if (thing.is_task or slot.phase in {"", "Sync"})
            and (slot.unit == self.app or self.app not in needed)
            and not any(slot.is_before(self.slots[need], ancestors) for need in thing.needs)
            and all(
                self.slots[item] == slot or self.slots[item].is_before(slot, ancestors)
                for item in thing.refused_without
            )
        ]


def sound_repository(dice: random.Random) -> RandomRepository:
    """A correct one: hooks, one or two operators, the objects that they create, and dependsOn."""
    while True:
        repo = _try_repository(dice)
        if repo is not None:
            return repo


def _try_repository(dice: random.Random) -> RandomRepository | None:
    """None where something fits nowhere, as what it needs is in different units."""
    repo = RandomRepository()
    for number in range(dice.randint(2, 4)):
        before = [*repo.after]
        some = [item for item in before if dice.random() < 0.5]
        repo.after[f"unit-{number}"] = some or before[-1:]
        repo.waits[f"unit-{number}"] = dice.random() < 0.7
    slots = [UnitPosition(unit) for unit in repo.after]
    slots += [
        UnitPosition(repo.app, phase, wave)
        for phase, waves in (("PreSync", (0, 1)), ("Sync", (0, 1, 2, 3)), ("PostSync", (0, 1)))
        for wave in waves
    ]
    for thing in _things(dice):
        fitting = repo.fitting(thing, slots)
        if not fitting:
            return None
        repo.things[thing.name] = thing
        repo.slots[thing.name] = dice.choice(fitting)
        if thing.is_task and dice.random() < 0.5:
            repo.hooks.add(thing.name)
    return repo


def broken_repository(dice: random.Random) -> RandomRepository:
    """A correct one with a mistake: a dependency moved after its dependent, or a cycle."""
    while True:
        repo = sound_repository(dice)
        pairs = [*_pairs(repo)]
        if dice.random() < 0.1:
            first, *_, last = repo.after
            repo.after[first] = [last]
            if first in repo.ancestors[last]:
                return repo
        elif pairs:
            _put_behind(repo, *dice.choice(pairs))
            return repo


def _pairs(repo: RandomRepository) -> Iterator[tuple[str, str]]:
    """Dependents, each with a dependency that would be a deadlock in a later step.

    Argo CD applies a CRD before its instances, whatever their waves. Flux may consider an instance
    ready before its operator has seen it.
    """
    for thing in repo.things.values():
        slot = repo.slots[thing.name]
        if not thing.is_checked or slot.phase == "PostSync":
            continue
        for need in thing.needs:
            if slot.unit == repo.app or not thing.is_custom:
                yield thing.name, need
        if slot.unit != repo.app:
            yield from ((thing.name, need) for need in thing.refused_without)


def _put_behind(repo: RandomRepository, waiting: str, needed: str) -> None:
    slot = repo.slots[waiting]
    if slot.unit == repo.app:
        repo.slots[needed] = UnitPosition(repo.app, "Sync", 9)
        return
    repo.after["late"], repo.waits["late"] = [slot.unit], True
    repo.waits[slot.unit] = True
    repo.slots[needed] = UnitPosition("late")


def loose_repository(dice: random.Random) -> RandomRepository:
    """A sound one in which a few things fell somewhere else."""
    repo = sound_repository(dice)
    slots = [*dict.fromkeys(repo.slots.values())]
    for name in dice.sample([*repo.things], 2):
        thing = repo.things[name]
        allowed = [slot for slot in slots if thing.is_task or slot.phase in {"", "Sync"}]
        repo.slots[name] = dice.choice(allowed)
    return repo


def _things(dice: random.Random) -> list[ObjectGroup]:
    result: list[ObjectGroup] = []
    secrets: list[tuple[str, str]] = []
    """What makes one, and its name."""
    services: list[str] = []
    for operator in dice.sample([*OPERATORS], dice.randint(1, 2)):
        result += [_definitions(operator), _operator(operator)]
        made, at = _instances(operator, dice)
        result += made
        secrets += at
    for number in range(dice.randint(1, 2)):
        name = f"own-{number}"
        result.append(ObjectGroup(name, _plain_secret(name), is_checked=False))
        secrets.append((name, name))
    for number in range(dice.randint(1, 2)):
        reads = dice.sample(secrets, dice.randint(0, min(2, len(secrets))))
        result.append(_server(f"server-{number}", reads, dice.sample(services, len(services) // 2)))
        services.append(f"server-{number}")
    for number in range(dice.randint(1, 3)):
        reads = dice.sample(secrets, dice.randint(1, min(2, len(secrets))))
        waits = [service for service in services if dice.random() < 0.4]
        result.append(_task(f"task-{number}", reads, waits))
    return result


def _definitions(operator: str) -> ObjectGroup:
    api, kinds = DEFINED[operator]
    group, version = api.split("/")

    def write(note: str) -> str:
        return "---\n".join(
            f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {kind.lower()}s.{group}{note}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {kind.lower()}s, singular: {kind.lower()}}}
  versions:
  - name: {version}
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""
            for kind in kinds
        )

    return ObjectGroup(f"crds-{operator}", write, is_checked=False)


def _operator(operator: str) -> ObjectGroup:
    name, image = OPERATORS[operator]

    def write(note: str) -> str:
        labels = f"{{app.kubernetes.io/name: {name}, app.kubernetes.io/component: controller}}"
        return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {HOME}, labels: {labels}{note}}}
spec:
  selector: {{matchLabels: {labels}}}
  template:
    metadata: {{labels: {labels}}}
    spec: {{containers: [{{name: main, image: "{image}"}}]}}
"""

    return ObjectGroup(operator, write)


def _custom(operator: str, kind: str, name: str, spec: str) -> Callable[[str], str]:
    api, _ = DEFINED[operator]

    def write(note: str) -> str:
        metadata = f"metadata: {{name: {name}, namespace: {HOME}{note}}}"
        return f"apiVersion: {api}\nkind: {kind}\n{metadata}\nspec: {spec}\n"

    return write


def _instances(
    operator: str, dice: random.Random
) -> tuple[list[ObjectGroup], list[tuple[str, str]]]:
    """Custom resources, and the Secrets that come of them."""
    hard = (f"crds-{operator}",)
    if operator == "cnpg":
        name = "pg"
        spec = "{instances: 1, storage: {size: 1Gi}}"
        cluster = ObjectGroup(
            name, _custom(operator, "Cluster", name, spec), (operator,), hard, is_custom=True
        )
        return [cluster], [(name, f"{name}-app")]
    kind, maker, base_spec = {
        "eso": ("SecretStore", "ExternalSecret", "{provider: {fake: {data: []}}}"),
        "certs": ("Issuer", "Certificate", "{selfSigned: {}}"),
    }[operator]
    base = f"base-{operator}"
    store = _custom(operator, kind, base, base_spec)
    result = [ObjectGroup(base, store, (operator,), hard, is_custom=True)]
    made = []
    for number in range(dice.randint(1, 2)):
        name = f"{operator}-{number}"
        spec = {
            "eso": f"{{secretStoreRef: {{name: {base}}}, target: {{name: {name}}}, data: "
            "[{secretKey: password, remoteRef: {key: a}}]}",
            "certs": f"{{secretName: {name}, issuerRef: {{name: {base}}}, dnsNames: [a.b.c]}}",
        }[operator]
        write = _custom(operator, maker, name, spec)
        result.append(ObjectGroup(name, write, (operator, base), hard, is_custom=True))
        made.append((name, name))
    return result, made


def _plain_secret(name: str) -> Callable[[str], str]:
    return lambda note: config_map(name, note, kind="Secret", inside=HOME)


def _server(name: str, reads: list[tuple[str, str]], waits: list[str]) -> ObjectGroup:
    def write(note: str) -> str:
        secrets = tuple(read for _, read in reads)
        text = pods("Deployment", name, note, secrets=secrets, waits=tuple(waits), inside=HOME)
        return f"{service(name, note, inside=HOME)}---\n{text}"

    return ObjectGroup(name, write, (*(maker for maker, _ in reads), *waits))


def _task(name: str, reads: list[tuple[str, str]], waits: list[str]) -> ObjectGroup:
    def write(note: str) -> str:
        secrets = tuple(read for _, read in reads)
        return pods("Job", name, note, secrets=secrets, waits=tuple(waits), inside=HOME)

    return ObjectGroup(name, write, (*(maker for maker, _ in reads), *waits), is_task=True)
