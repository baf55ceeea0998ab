"""Run one control plane: etcd, API server, controllers, scheduler and kwok, on loopback.

    with ControlPlane.start() as plane:
        kubectl("--kubeconfig", plane.kubeconfig("tidegate"), "get", "nodes")

It is up when a node is Ready and the things a workload needs are there. It ends with its starter,
whatever happens to that.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from plane.binaries.build import Binaries, find_binaries
from plane.client import Client, wait_until
from plane.errors import PlaneError, PortTakenError, tail_of
from plane.etcd import compact_etcd
from plane.groundwork import has_settled, lay_groundwork
from plane.identity.certificates import (
    Authority,
    KeyPair,
    Validity,
    write_service_account_keys,
)
from plane.identity.users import (
    ADMIN,
    MASTERS,
    USERS,
    kubeconfig_text,
    make_tokens,
    token_file,
    write_private,
)
from plane.parts.commands import command
from plane.parts.program import Program
from plane.parts.settings import write_settings
from plane.parts.site import PARTS, Part, Ports, Site
from plane.parts.stages import read_stages
from plane.ports import pick_ports
from plane.state import StateDirectory, claim_state, state_root
from tidegate.errors import Location

START_SECONDS = 60.0
PORT_ATTEMPTS = 5
SERVER_NAMES = ("127.0.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc")


class ControlPlane:
    """A running control plane. `start` makes one; `stop` ends it and deletes its data."""

    def __init__(
        self, site: Site, *, state: StateDirectory, binaries: Binaries, runs_pods: bool = True
    ) -> None:
        site.pki.mkdir(mode=0o700)
        self.site = site
        self.server = site.server
        self.etcd = site.etcd
        self.audit_log = site.audit_log
        self.authority = Authority(site.pki)
        self.ca = self.authority.ca
        self.programs: dict[Part, Program] = {}
        self._state = state
        self._binaries = binaries
        self._runs_pods = runs_pods
        self._tokens = make_tokens()
        self._numbers = itertools.count(1)

    @classmethod
    def start(
        cls,
        *,
        is_tied: bool = True,
        binaries: Binaries | None = None,
        pick: Callable[[], Ports] = pick_ports,
        root: Path | None = None,
        runs_pods: bool = True,
    ) -> Self:
        """Start all parts and wait until they work. Untied, they outlive this process.

        `runs_pods` is False where a test plays the kubelet: kwok then keeps its node alive only.
        """
        built, directory = binaries or find_binaries(), root or state_root()
        for attempt in range(PORT_ATTEMPTS):
            state = claim_state(directory, is_tied=is_tied)
            plane = cls(Site(state.path, pick()), state=state, binaries=built, runs_pods=runs_pods)
            try:
                plane._bring_up()
            except PortTakenError:
                plane.stop()
                if attempt == PORT_ATTEMPTS - 1:
                    raise
            except BaseException:
                plane.stop()
                raise
            else:
                return plane
        raise AssertionError("the last attempt returns or raises")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill every part and delete the data. Again is fine."""
        for part in reversed(PARTS):
            self.kill(part)
        self._state.discard()

    def kill(self, part: Part) -> None:
        """Kill one part, as a crash would. That it is dead already is fine."""
        program = self.programs.pop(part, None)
        if program is not None:
            program.kill()

    def revive(self, part: Part) -> None:
        """Start a killed part again, on the same port with the same keys, and wait for it."""
        self._launch(part)
        self._await(part)

    def pause(self, part: Part) -> None:
        """Stop one part in its tracks: connections stay open, and nothing answers."""
        self.programs[part].pause()

    def resume(self, part: Part) -> None:
        """Let a paused part go on."""
        self.programs[part].resume()

    def token(self, user: str) -> str:
        """The token of a user, by short name."""
        return self._tokens[user].reveal()

    def kubeconfig(self, user: str, *, credentials: Mapping[str, str] | None = None) -> Path:
        """A kubeconfig for a user: with the token, or with credentials of the caller's.

        Those are kubeconfig fields, `client-certificate` and `client-key` for example.
        """
        if credentials is None:
            return self.site.kubeconfig(user)
        name = f"{user}-{next(self._numbers)}"
        return self._write_kubeconfig(name, user=user, credentials=credentials)

    def client_certificate(
        self,
        user: str,
        groups: Iterable[str] = (),
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> KeyPair:
        """A certificate that makes its bearer a user; good from an hour ago for a year."""
        usual = Validity.from_now()
        validity = Validity(not_before or usual.not_before, not_after or usual.not_after)
        name = f"client-{next(self._numbers)}"
        return self.authority.for_client(name, user=user, groups=groups, validity=validity)

    def compact(self) -> int:
        """Make etcd forget every revision but the newest, and say which that is."""
        return compact_etcd(Client(self.etcd, ca=self.ca))

    def _bring_up(self) -> None:
        self._write_files()
        for part in ("etcd", "apiserver"):
            self.revive(part)
        for part in PARTS[2:]:
            self._launch(part)
        admin = Client(self.server, ca=self.ca, token=self._tokens[ADMIN.file_name])
        lay_groundwork(admin)
        for part in PARTS[2:]:
            self._await(part)
        if not wait_until(lambda: has_settled(admin), seconds=START_SECONDS):
            raise PlaneError(
                "plane.unsettled",
                f"no node is Ready after {START_SECONDS:.0f} seconds",
                location=self._keep_log("kwok"),
                tail=tail_of(self.site.log("kwok")),
            )

        self._confirm_alive()

    def _confirm_alive(self) -> None:
        """A part that lost its port may have been answered for by the one that has it."""
        for part, program in self.programs.items():
            if program.ended_with is not None:
                raise self._obituary(part, status=program.ended_with)

    def _write_files(self) -> None:
        authority = self.authority
        authority.for_server("server", names=SERVER_NAMES)
        validity = Validity.from_now()
        authority.for_client(
            "kubelet-client", user="kube-apiserver", groups=[MASTERS], validity=validity
        )
        write_service_account_keys(self.site.pki)
        write_private(self.site.pki / "tokens.csv", token_file(self._tokens))
        for user in USERS:
            credentials = {"token": self.token(user.file_name)}
            self._write_kubeconfig(user.file_name, user=user.name, credentials=credentials)
        stages = read_stages(self._binaries.stages)
        write_settings(self.site, kwok_stages=stages, runs_pods=self._runs_pods)

    def _write_kubeconfig(self, name: str, *, user: str, credentials: Mapping[str, str]) -> Path:
        text = kubeconfig_text(user, server=self.server, ca=self.ca, credentials=credentials)
        return write_private(self.site.kubeconfig(name), text)

    def _launch(self, part: Part) -> None:
        self.programs[part] = Program.start(
            command(part, site=self.site, binaries=self._binaries),
            log=self.site.log(part),
            directory=self.site.state,
            is_tied=self._state.is_tied,
        )

    def _await(self, part: Part) -> None:
        server, path = self.site.health(part)
        client, program = Client(server, ca=self.ca), self.programs[part]

        def is_decided() -> bool:
            return program.ended_with is not None or client.answers(path)

        is_in_time = wait_until(is_decided, seconds=START_SECONDS)
        if not is_in_time or program.ended_with is not None:
            raise self._obituary(part, status=program.ended_with)

    def _obituary(self, part: Part, *, status: int | None) -> PlaneError:
        tail = tail_of(self.site.log(part))
        log_path = self._keep_log(part)
        if status is None:
            problem = f"`{part}` does not answer after {START_SECONDS:.0f} seconds"
            return PlaneError("plane.silent", problem, location=log_path, tail=tail)
        problem = f"`{part}` ended with status {status} instead of starting"
        if any("address already in use" in line for line in tail):
            return PortTakenError("plane.port", problem, location=log_path, tail=tail)
        return PlaneError("plane.ended", problem, location=log_path, tail=tail)

    def _keep_log(self, part: Part) -> Location:
        """Copy a log to where it outlives the plane."""
        kept = self.site.state.parent / f"failed-{part}.log"
        shutil.copyfile(self.site.log(part), kept)
        return Location(str(kept))
