"""One control plane that outlives the command that started it: `up` and `down`.

Its state is in the user's state directory. The system is asked whether its processes still run:
after a reboot, or when a part has died, the plane counts as dead and its files are removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from plane.binaries.build import Binaries
from plane.binaries.toolchain import Say
from plane.client import wait_until
from plane.cluster import ControlPlane
from plane.errors import PlaneError
from plane.identity.users import ADMIN, write_private
from plane.parts.site import PARTS
from tidegate.errors import Location

DEATH_SECONDS = 10.0


class Remembered(msgspec.Struct, frozen=True):
    """A plane that was started and left running."""

    state: str
    kubeconfig: str
    pids: Mapping[str, int]


def up(binaries: Binaries, *, say: Say) -> Path:
    """Start a plane unless one runs; give the kubeconfig of its administrator."""
    with _memory() as memory:
        known = _recall(memory)
        if known is not None and is_running(known):
            say("a control plane is running already")
            return Path(known.kubeconfig)
        if known is not None:
            say("the last control plane died: cleaning up")
            _end(known)
        plane = ControlPlane.start(is_tied=False, binaries=binaries)
        kubeconfig = plane.kubeconfig(ADMIN.file_name)
        pids = {str(part): program.pid for part, program in plane.programs.items()}
        known = Remembered(str(plane.site.state), str(kubeconfig), pids)
        write_private(memory, msgspec.json.encode(known).decode())
        say(f"a control plane is up at {plane.server}; its logs are in {plane.site.logs}")
        return kubeconfig


def down(*, say: Say) -> None:
    """Stop the plane and delete its data; that there is none is fine."""
    with _memory() as memory:
        known = _recall(memory)
        if known is None:
            say("no control plane is running")
            return
        was_running = is_running(known)
        _end(known)
        memory.unlink()
        say("the control plane is gone" if was_running else "it was dead already: cleaned up")


def is_running(known: Remembered) -> bool:
    """Whether every part is still running. A plane without one of them is useless."""
    return len(known.pids) == len(PARTS) and all(
        _is_ours(pid, known.state) for pid in known.pids.values()
    )


def _is_ours(pid: int, state: str) -> bool:
    """Whether a pid is still the program we started: their command lines name the directory."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return os.fsencode(state) in words


def _end(known: Remembered) -> None:
    alive = [pid for pid in known.pids.values() if _is_ours(pid, known.state)]
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    are_gone = wait_until(
        lambda: not any(_is_ours(pid, known.state) for pid in alive), seconds=DEATH_SECONDS
    )
    if not are_gone:
        raise PlaneError(
            "plane.undead",
            "a part of the control plane does not die",
            location=Location(known.state),
        )
    shutil.rmtree(known.state, ignore_errors=True)


def _recall(memory: Path) -> Remembered | None:
    try:
        return msgspec.json.decode(memory.read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError):
        return None


@contextmanager
def _memory() -> Iterator[Path]:
    """Open the state file, locked against other `up` and `down` commands."""
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    directory = Path(root) / "tidegate" / "plane"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory / "up.json"
