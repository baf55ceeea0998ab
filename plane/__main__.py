"""The command line: `python -m plane build|up|down`. Talk goes to stderr."""

from __future__ import annotations

import argparse
import platform
import shlex
import signal
import sys
from collections.abc import Sequence

from plane.binaries.build import build, say_on_stderr
from plane.detached import down, up
from plane.errors import PlaneError
from tidegate.errors import TidegateError


def main(arguments: Sequence[str]) -> int:
    """Do one command; the exit status says how it went."""
    parser = argparse.ArgumentParser(prog="python -m plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build its programs, unless they are there")
    commands.add_parser("up", help="start one, leave it running, print how to reach it")
    commands.add_parser("down", help="stop it and delete its data")
    try:
        _run(parser.parse_args(arguments).command)
    except TidegateError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _run(command: str) -> None:
    if platform.system() != "Linux":
        raise PlaneError("plane.system", "the test control plane runs on Linux only")
    say = say_on_stderr
    # Ended by a signal, `up` must still take back what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    match command:
        case "build":
            say(f"the control plane is in {build(say=say).directory}")
        case "up":
            kubeconfig = up(build(say=say), say=say)
            print(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}")
        case _:
            down(say=say)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
