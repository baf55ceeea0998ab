"""One try: a subject on a control plane, the processes that rolled it out, and the faults."""

from __future__ import annotations

import itertools
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from plane import ControlPlane
from plane.client import Client
from plane.etcd import read_revisions
from tests.adversary.commands import CommandEnd, PrintedEvent, RunningCommand
from tests.adversary.history import (
    EarlyWrite,
    History,
    concurrent_writers,
    find_early_writes,
    read_history,
    repeated_hooks,
    runs_image,
)
from tests.adversary.subjects import Subject
from tests.support.kubectl import kubectl

EVE = "admin"
"""The user whose writes are foreign."""
LAST = ("--timeout", "150s")
TRACEBACK = "Traceback (most recent call last)"


class Outage:
    """Keeps tries that stop the API server apart from tries that need it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0
        self._is_out = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Use the API server together with other tries."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_out)
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Use the API server when no other try does."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_out)
            self._is_out = True
            self._changed.wait_for(lambda: self._users == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_out = False
                self._changed.notify_all()


@dataclass(slots=True)
class Try:
    """A subject in namespaces of this try, and what happened to it."""

    plane: ControlPlane
    name: str
    subject: Subject
    directory: Path
    chance: random.Random
    revision: int = 1
    revisions: dict[str, int] = field(default_factory=dict)
    """The revision of each process, by its user."""
    faults: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    """How often the processes were killed, frozen and so on."""
    _commands: list[RunningCommand] = field(default_factory=list)
    _log_start: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def prepare(self) -> None:
        """Create the namespaces and the first revision."""
        self._log_start = self.plane.audit_log.stat().st_size
        for namespace in self.subject.namespaces:
            self.kubectl("create", "namespace", namespace)
        self.subject.write(self.revision)

    def clean_up(self) -> None:
        """Kill what still runs, and delete the namespaces, without waiting for that."""
        for command in self._commands:
            command.send(signal.SIGCONT)
            command.send(signal.SIGKILL)
            command.end()
        names = self.subject.namespaces
        self.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")

    def change(self) -> None:
        """Write the next revision."""
        self.revision += 1
        self.subject.write(self.revision)

    def start(self, verb: str, *options: str, clock: int = 0) -> RunningCommand:
        """Start a process as a user of its own, so that the log shows who wrote what."""
        user = f"{self.name}-{next(self._numbers)}"
        pair = self.plane.client_certificate(user, groups=["system:masters"])
        credentials = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        kubeconfig = self.plane.kubeconfig(user, credentials=credentials)
        self.revisions[user] = self.revision
        target: tuple[str | Path, ...] = (self.subject.path, *self.subject.options)
        command = RunningCommand.start(
            [verb, *target, "--kubeconfig", kubeconfig, "--context", "plane", *options],
            user=user,
            revision=self.revision,
            directory=self.directory,
            clock=clock,
        )
        self._commands.append(command)
        return command

    def end(self, command: RunningCommand, *codes: int) -> CommandEnd:
        """Wait for the end of a process; another exit code than these is a fault."""
        ended = command.end()
        if ended.is_hanging:
            self.faults.append(f"{command.user} did not end")
        elif TRACEBACK in ended.errors:
            self.faults.append(f"{command.user} ended with a traceback: {ended.errors[-400:]}")
        elif not ended.is_killed and ended.code not in codes:
            last = "; ".join(f"{item.event} {item.reason} {item.message}" for item in ended.last)
            self.faults.append(
                f"{command.user} ended with exit code {ended.code}: {last} {ended.errors[-600:]}"
            )
        return ended

    def sync(self) -> CommandEnd:
        """Roll out the current revision to its end."""
        return self.end(self.start("sync", *LAST), 0)

    def finish(self) -> History:
        """Roll out to the end, check that nothing is left to do, and judge the history."""
        self.sync()
        again = self.start("sync", *LAST)
        self.end(again, 0)
        history = self.history()
        for write in history.written_by([again.user]):
            self.faults.append(f"a second sync wrote {write.name}")
        early = find_early_writes(history, self.revisions, self.subject.order)
        self.faults += [str(write) for write in early if not self._is_in_order(write)]
        self.faults += repeated_hooks(history, self.revisions, self.subject.hooks)
        if self.subject.has_single_unit:
            self.faults += concurrent_writers(history, self.revisions)
        self.faults += self._release_faults()
        return history

    def history(self) -> History:
        """Return what happened in the namespaces of this try."""
        return read_history(
            self.plane.audit_log, frozenset(self.subject.namespaces), start=self._log_start
        )

    def kubectl(self, *words: str, text: str = "") -> str:
        """Run kubectl as another client."""
        return kubectl(self.plane.kubeconfig(EVE), *words, text=text)

    def stop_at_random(self, command: RunningCommand, *, events: int = 30) -> bool:
        """Let a process go on until a random moment; False if it ended before."""
        is_running = command.read(self.chance.randint(1, events))
        return is_running and command.live_on(self.chance.uniform(0, 0.5))

    def wait_for_gate(self, command: RunningCommand) -> bool:
        """Let a process go on until a gate waits for the workload; False if it ended before."""
        return command.read_until(_waits_for_workload)

    def leases(self) -> set[str]:
        """Return the Leases of all running processes."""
        words = ("get", "lease", "-n", "tidegate-system", "-o", "name", "--ignore-not-found")
        return set(self.kubectl(*words).split())

    def _is_in_order(self, write: EarlyWrite) -> bool:
        """Return whether etcd shows that the order was kept.

        An API server that is killed loses its last lines of the audit log. Etcd has each object as
        it was just before the later one was created.
        """
        if not self.figures["API losses"]:
            return False
        etcd = Client(self.plane.etcd, ca=self.plane.ca)
        after = read_revisions(etcd, f"/registry/{self._path(write.after)}")
        if after is None:
            return False
        resource, _, name = write.before.partition("/")
        group = {"deployments": "/apis/apps/v1", "jobs": "/apis/batch/v1"}.get(resource, "/api/v1")
        at = f"resourceVersion={after.created - 1}&resourceVersionMatch=Exact"
        path = f"{group}/namespaces/{self.subject.namespace}/{resource}?{at}"
        items = json.loads(self.kubectl("get", "--raw", path))["items"]
        bodies = [item for item in items if item["metadata"]["name"] == name]
        is_plain = resource == "configmaps"
        image = f"main:{write.revision}"
        return any(is_plain or runs_image(resource, body, image) for body in bodies)

    def _path(self, name: str) -> str:
        resource, _, object_name = name.partition("/")
        return f"{resource}/{self.subject.namespace}/{object_name}"

    def _release_faults(self) -> Iterator[str]:
        words = ("get", "secret", "-n", self.subject.namespace, "-l", "owner=helm", "-o", "json")
        labels = [item["metadata"]["labels"] for item in json.loads(self.kubectl(*words))["items"]]
        statuses = {int(label["version"]): label["status"] for label in labels}
        if not statuses:
            return
        if sorted(statuses) != [*range(1, max(statuses) + 1)]:
            yield f"the release has the revisions {sorted(statuses)}"
        if statuses.pop(max(statuses)) != "deployed":
            yield "the last revision of the release is not deployed"
        if not {*statuses.values()} <= {"superseded", "failed"}:
            yield f"earlier revisions of the release are {sorted(set(statuses.values()))}"


def _waits_for_workload(event: PrintedEvent) -> bool:
    return event.event == "gate.waiting" and event.name == "web"
