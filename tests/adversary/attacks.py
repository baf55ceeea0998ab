"""What the adversary does. Each attack is a function; a new one is a new row of `ATTACKS`."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from tests.adversary.edits import EDITS, ForeignEdit
from tests.adversary.history import deletion_faults
from tests.adversary.subjects import SUBJECTS, Subject, gated_workload, plain_unit
from tests.adversary.tries import LAST, Try

HOUR, DAY, YEAR = 3600, 86_400, 31_536_000
STOPPED = {signal.SIGTERM: 130, signal.SIGINT: 130}
FOREIGN = """apiVersion: v1
kind: ConfigMap
metadata: {name: foreign}
"""
MakeSubject: TypeAlias = Callable[[Random, Path, str, int], Subject]


def kill(attempt: Try) -> None:
    """Kill processes at random moments, sometimes with a newer revision afterwards."""
    for _ in range(attempt.chance.randint(1, 2)):
        _kill_once(attempt)
    attempt.finish()


def _kill_once(attempt: Try, *, clock: int = 0) -> None:
    command = attempt.start("sync", *LAST, clock=clock)
    is_running = attempt.stop_at_random(command)
    command.send(signal.SIGKILL)
    ended = attempt.end(command, 0)
    attempt.figures["kills"] += ended.is_killed
    if not is_running or attempt.chance.random() < 1 / 3:
        attempt.change()


def kill_deletion(attempt: Try) -> None:
    """Kill a deletion at random moments; an object of another owner stays."""
    attempt.sync()
    attempt.kubectl("create", "-n", attempt.subject.namespace, "-f", "-", text=FOREIGN)
    users: list[str] = []
    for _ in range(attempt.chance.randint(1, 2)):
        command = attempt.start("delete", *LAST)
        users.append(command.user)
        attempt.stop_at_random(command, events=15)
        command.send(signal.SIGKILL)
        attempt.figures["kills"] += attempt.end(command, 0).is_killed
    last = attempt.start("delete", *LAST)
    users.append(last.user)
    attempt.end(last, 0)
    hooks = set(attempt.subject.hooks)
    waves = [pair for pair in attempt.subject.order if hooks.isdisjoint(pair)]
    attempt.faults += deletion_faults(attempt.history(), users, waves)
    words = ("-n", attempt.subject.namespace, "-o", "json")
    listed = attempt.kubectl("get", "configmaps,deployments,jobs", *words)
    left = {item["metadata"]["name"] for item in json.loads(listed)["items"]}
    if left != {"foreign", "kube-root-ca.crt"}:
        attempt.faults.append(f"after the deletion there are {sorted(left)}")


def freeze(attempt: Try) -> None:
    """Freeze a process, roll out a newer revision with another one, and let the first go on."""
    frozen = attempt.start("sync", *LAST)
    if attempt.stop_at_random(frozen):
        frozen.send(signal.SIGSTOP)
        attempt.figures["freezes"] += 1
    attempt.change()
    newer = attempt.start("sync", *LAST)
    newer.live_on(attempt.chance.uniform(2, 30))
    frozen.send(signal.SIGCONT)
    attempt.end(newer, 0)
    attempt.end(frozen, *range(1, 20), 0)
    attempt.finish()


def delete_lease(attempt: Try) -> None:
    """Delete the Lease of a process while another one waits with a newer revision."""
    others = attempt.leases()
    first = attempt.start("sync", *LAST)
    is_running = attempt.stop_at_random(first)
    attempt.change()
    newer = attempt.start("sync", *LAST)
    if is_running:
        newer.live_on(attempt.chance.uniform(0, 3))
        for name in attempt.leases() - others:
            attempt.kubectl("delete", "-n", "tidegate-system", name, "--ignore-not-found")
            attempt.figures["deleted Leases"] += 1
    attempt.end(newer, 0)
    attempt.end(first, *range(1, 20), 0)
    attempt.finish()


def set_clocks(attempt: Try) -> None:
    """Kill and continue processes whose clocks are wrong by an hour, a day or a year."""
    for _ in range(attempt.chance.randint(1, 2)):
        _kill_once(attempt, clock=_wrong(attempt.chance))
        attempt.figures["wrong clocks"] += 1
    attempt.end(attempt.start("sync", *LAST, clock=_wrong(attempt.chance)), 0)
    attempt.figures["wrong clocks"] += 1
    attempt.finish()


def _wrong(chance: Random) -> int:
    return chance.choice([-1, 1]) * chance.choice([HOUR, DAY, YEAR])


def lose_api(attempt: Try) -> None:
    """Kill or freeze the API server during a rollout; it comes back."""
    command = attempt.start("sync", *LAST)
    attempt.stop_at_random(command)
    lasts = attempt.chance.uniform(1, 20)
    _out_of_service(attempt, lambda: command.live_on(lasts))
    attempt.end(command, 0)
    attempt.finish()


def lose_api_for_good(attempt: Try) -> None:
    """Kill or freeze the API server, and stop the process before it comes back."""
    number = attempt.chance.choice([signal.SIGTERM, signal.SIGINT, None])
    bound = ("--cluster-patience", "10s") if number is None else ()
    command = attempt.start("sync", *LAST, *bound)
    is_running = attempt.stop_at_random(command)

    def stop() -> None:
        command.live_on(attempt.chance.uniform(0, 12))
        if number is not None:
            command.send(number)
        if is_running and command.live_on(30):
            attempt.faults.append(f"{command.user} did not end within 30 s of {number}")

    _out_of_service(attempt, stop)
    attempt.end(command, 0, 5, 8, 130)
    attempt.finish()


def _out_of_service(attempt: Try, during: Callable[[], object]) -> None:
    attempt.figures["API losses"] += 1
    plane = attempt.plane
    if attempt.chance.random() < 1 / 2:
        plane.pause("apiserver")
        during()
        plane.resume("apiserver")
    else:
        plane.kill("apiserver")
        during()
        plane.revive("apiserver")


def edit(attempt: Try, foreign: ForeignEdit) -> None:
    """Edit a workload before or during its rollout; the gate must not open on what runs."""
    attempt.sync()
    attempt.change()
    attempt.figures["foreign edits"] += 1
    is_before = not foreign.needs_gate and attempt.chance.random() < 1 / 2
    if is_before:
        _apply_edit(attempt, foreign)
    command = attempt.start("sync", *LAST)
    if attempt.wait_for_gate(command) and not is_before:
        _apply_edit(attempt, foreign)
    command.live_on(attempt.chance.uniform(4, 8))
    if foreign.undo:
        _undo(attempt, foreign)
    ended = attempt.end(command, 0)
    unverified = [item for item in ended.events if item.event == "gate.unverified"]
    attempt.figures["unverified gates"] += bool(unverified)
    attempt.finish()


def _apply_edit(attempt: Try, foreign: ForeignEdit) -> None:
    if foreign.patch:
        words = ("--subresource", foreign.subresource) if foreign.subresource else ()
        _patch(attempt, foreign.kind, foreign.patch, *words)
    if foreign.deletes:
        place = ("-n", attempt.subject.namespace, "--ignore-not-found", "--wait=false")
        attempt.kubectl("delete", foreign.kind.lower(), "web", *place)


def _undo(attempt: Try, foreign: ForeignEdit) -> None:
    """Take an edit back.

    A StatefulSet does not replace a pod that never became ready, as its page in the documentation
    of Kubernetes says under "Forced rollback".
    """
    _patch(attempt, foreign.kind, foreign.undo)
    if foreign.kind == "StatefulSet":
        place = ("-n", attempt.subject.namespace, "-l", "app=web", "--wait=false")
        attempt.kubectl("delete", "pod", *place)


def _patch(attempt: Try, kind: str, patch: object, *words: str) -> None:
    """Patch a workload, if it is there, as a client whose fields Flux and Argo CD leave alone."""
    place = (kind.lower(), "web", "-n", attempt.subject.namespace)
    if attempt.kubectl("get", *place, "-o", "name", "--ignore-not-found"):
        options = ("--type=merge", "--field-manager=eve", "-p", json.dumps(patch))
        attempt.kubectl("patch", *place, *options, *words)


def any_subject(chance: Random, directory: Path, name: str, _: int) -> Subject:
    """Draw a subject."""
    return chance.choice([*SUBJECTS.values()])(directory, name)


def single_directory(_: Random, directory: Path, name: str, __: int) -> Subject:
    """Return a plain unit, whose writers the audit log distinguishes."""
    return plain_unit(directory, name)


def edited_workload(_: Random, directory: Path, name: str, place: int) -> Subject:
    """Return the workload of an edit, which a ConfigMap waits for."""
    return gated_workload(directory, name, EDITS[place % len(EDITS)].kind)


class Attack(NamedTuple):
    """What is done to which subjects, and how often compared with other attacks."""

    run: Callable[[Try, int], None]
    """Attack a subject; the number counts the tries of this attack."""
    make_subject: MakeSubject
    share: int
    stops_api: bool = False


def _numbered(run: Callable[[Try], None]) -> Callable[[Try, int], None]:
    return lambda attempt, _: run(attempt)


ATTACKS = {
    "kill": Attack(_numbered(kill), any_subject, 4),
    "kill a deletion": Attack(_numbered(kill_deletion), single_directory, 2),
    "freeze": Attack(_numbered(freeze), single_directory, 2),
    "delete a Lease": Attack(_numbered(delete_lease), single_directory, 1),
    "set clocks": Attack(_numbered(set_clocks), any_subject, 1),
    "lose the API": Attack(_numbered(lose_api), any_subject, 1, stops_api=True),
    "lose the API for good": Attack(_numbered(lose_api_for_good), any_subject, 1, stops_api=True),
    "foreign edit": Attack(
        lambda attempt, place: edit(attempt, EDITS[place % len(EDITS)]), edited_workload, 8
    ),
}
"""All attacks. Every 20 tries contain each of them as often as its share."""
