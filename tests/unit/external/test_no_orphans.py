"""Whatever ends a program, nothing of it is left: not its children, not those who ran away.

Everything that a script starts inherits the writing end of a named pipe. Reading that pipe to its
end is possible only once all of them are gone; a test that fails here runs into its time limit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tidegate.errors import ProcessError
from tidegate.external.process import Command, Limits, run
from tidegate.model.times import Ms

CHILDREN = "exec 3>pipe; sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & sleep 600' &) ;"
READY = "echo ready >&3;"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def family(pipe: Path, end: str, *, shares_terminal: bool = False) -> Command:
    script = f"{CHILDREN} {READY} {end}"
    return Command(argv=("sh", "-c", script), cwd=pipe.parent, shares_terminal=shares_terminal)


def read_to_the_end(pipe: Path) -> str:
    with pipe.open() as reader:
        return reader.read()


async def test_a_program_that_ended_leaves_no_child(pipe: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        seen = tasks.create_task(asyncio.to_thread(read_to_the_end, pipe), name="read")
        ran = await run(family(pipe, "echo done"))

    assert ran.stdout == b"done\n"
    assert seen.result() == "ready\n"


async def test_a_program_that_is_too_slow_leaves_no_child(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(ProcessError) as caught:
        await run(family(pipe, "sleep 600"), limits=Limits(time=Ms(1000)))

    assert caught.value.code == "external.timeout"
    assert os.read(reader, 100) in (b"ready\n", b"")
    assert os.read(reader, 100) == b"", "while anyone can still write, this says: try again"
    os.close(reader)


async def test_a_program_that_writes_too_much_leaves_no_child(pipe: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        seen = tasks.create_task(asyncio.to_thread(read_to_the_end, pipe), name="read")
        with pytest.raises(ProcessError) as caught:
            await run(family(pipe, "exec yes"), limits=Limits(output=10_000))

    assert caught.value.code == "external.output"
    assert seen.result() == "ready\n"


@pytest.mark.parametrize("shares_terminal", [False, True])
async def test_cancelling_the_waiting_task_leaves_no_child(
    pipe: Path,
    shares_terminal: bool,  # noqa: FBT001
) -> None:
    async with asyncio.TaskGroup() as tasks:
        command = family(pipe, "sleep 600", shares_terminal=shares_terminal)
        running = tasks.create_task(run(command), name="run")
        reader: IO[str] = await asyncio.to_thread(pipe.open)
        ready = await asyncio.to_thread(reader.readline)
        running.cancel()
        rest = await asyncio.to_thread(reader.read)
    reader.close()

    assert (ready, rest) == ("ready\n", "")
    assert running.cancelled()


async def test_cancelling_before_anything_has_started_is_no_harm() -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(Command(argv=("sleep", "600"))), name="run")
        tasks.create_task(asyncio.to_thread(running.get_name), name="let it begin")
        running.cancel()

    assert running.cancelled()


# A shell that starts us in the background has SIGINT ignored, and children inherit that.
ALONE = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from tidegate.external.process import Command, run
asyncio.run(run(Command(argv=("sh", "-c", sys.argv[1]), cwd=Path(sys.argv[2]))))
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killing_the_parent_process_leaves_no_child(pipe: Path, blow: signal.Signals) -> None:
    script = f"{CHILDREN} {READY} sleep 600"
    argv = [sys.executable, "-c", ALONE, script, str(pipe.parent)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as alone, pipe.open() as reader:
        ready = reader.readline()

        alone.send_signal(blow)

        assert (ready, reader.read()) == ("ready\n", "")


SHARING = """
import asyncio, os
from tidegate.external.process import Command, run
script = 'read answer; echo "got $answer"; echo question >&2; ps -o pgid= -p $$'
ran = asyncio.run(run(Command(argv=("sh", "-c", script), shares_terminal=True)))
answer, group = ran.stdout.decode().splitlines()
print(answer, int(group) == os.getpgid(0))
"""


def test_a_program_can_use_the_terminal() -> None:
    argv = [sys.executable, "-c", SHARING]

    ended = subprocess.run(argv, input="yes\n", capture_output=True, text=True, check=True)

    assert (ended.stdout, ended.stderr) == ("got yes True\n", "question\n")
