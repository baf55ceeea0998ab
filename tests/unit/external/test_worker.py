"""Workers that stay warm: what they answer, what ends them, and that the next one works."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import ProcessError
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.worker import Workers
from tidegate.model.times import Ms

PROGRAM = """
import os, signal, sys, time
from tidegate.external.worker_main import serve

seen = []

def answer(request):
    word, _, rest = request.partition(b" ")
    seen.append(word)
    match word:
        case b"echo":
            return rest
        case b"who":
            return str(os.getpid()).encode()
        case b"count":
            return str(len(seen)).encode()
        case b"print":
            print("a library talks", flush=True)
            os.system("echo so does a child")
            return b"printed"
        case b"hang":
            time.sleep(600)
        case b"exit":
            sys.exit(7)
        case b"raise":
            raise ValueError("what went wrong")
        case b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case b"eat":
            return bytes(len(bytearray(4 * 1024 ** 3)))
        case b"much":
            return bytes(int(rest))
        case b"child":
            os.system(f"exec 3>{rest.decode()}; sleep 600 &")
            time.sleep(600)

serve(answer)
"""
ENOUGH = Limits(time=Ms(20_000), memory=512 * MIB, output=8 * MIB)


def program(script: str = PROGRAM) -> Command:
    return Command(argv=(sys.executable, "-I", "-c", script))


async def refused(workers: Workers, request: bytes) -> ProcessError:
    with pytest.raises(ProcessError) as caught:
        await workers.request(request)
    return caught.value


async def test_a_response_is_returned_byte_for_byte() -> None:
    given = bytes(range(256)) * 10_000

    async with Workers(program(), limits=ENOUGH) as workers:
        answer = await workers.request(b"echo " + given)

    assert answer == given


async def test_an_empty_answer_is_an_answer() -> None:
    async with Workers(program(), limits=ENOUGH) as workers:
        answers = [await workers.request(b"echo "), await workers.request(b"echo x")]

    assert answers == [b"", b"x"]


async def test_a_worker_answers_requests_in_order() -> None:
    async with Workers(program(), limits=ENOUGH) as workers:
        pids = {await workers.request(b"who") for _ in range(5)}

    assert len(pids) == 1


async def test_the_limit_of_concurrent_workers_is_used() -> None:
    async with Workers(program(), count=2, limits=ENOUGH) as workers, asyncio.TaskGroup() as group:
        requests = [
            group.create_task(workers.request(b"who"), name=f"ask {number}") for number in range(6)
        ]

    assert len({task.result() for task in requests}) == 2


async def test_output_of_a_library_does_not_break_the_protocol() -> None:
    async with Workers(program(), limits=ENOUGH) as workers:
        answers = [await workers.request(b"print"), await workers.request(b"echo x")]

    assert answers == [b"printed", b"x"]


@pytest.mark.parametrize(
    ("request_text", "code", "detail"),
    [
        (b"exit", "external.worker.crash", " 7"),
        (b"raise", "external.worker.crash", "ValueError: what went wrong"),
        (b"crash", "external.worker.crash", "SIGSEGV"),
        (b"eat", "external.worker.memory", "MemoryError"),
        (b"much 9000000", "external.worker.output", " 8388608 "),
    ],
)
async def test_a_worker_that_dies_is_one_error_and_the_next_works(
    request_text: bytes, code: str, detail: str
) -> None:
    async with Workers(program(), count=1, limits=ENOUGH) as workers:
        first = await workers.request(b"who")

        error = await refused(workers, request_text)

        assert error.code == code
        assert detail in error.problem
        assert await workers.request(b"who") != first


async def test_a_worker_that_is_too_slow_is_killed_and_the_next_works() -> None:
    limits = Limits(time=Ms(500), memory=512 * MIB)
    async with Workers(program(), count=1, limits=limits) as workers:
        error = await refused(workers, b"hang")

        assert error.code == "external.worker.timeout"
        assert "0.5s" in error.problem
        assert await workers.request(b"count") == b"1"


async def test_an_idle_worker_that_ended_is_replaced() -> None:
    async with Workers(program(), count=1, limits=ENOUGH) as workers:
        pid = int(await workers.request(b"who"))
        os.kill(pid, signal.SIGKILL)
        await workers._idle[0].ended.wait()

        answer = await workers.request(b"echo still here")

    assert answer == b"still here"


async def test_a_cancelled_request_ends_its_worker_and_the_next_works(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with Workers(program(), count=1, limits=ENOUGH) as workers:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(workers.request(b"child " + os.fsencode(pipe)), name="ask")
            reader = await asyncio.to_thread(pipe.open)
            asking.cancel()

        assert asking.cancelled()
        assert await asyncio.to_thread(reader.read) == "", "nobody holds the pipe any more"
        assert await workers.request(b"count") == b"1"
    reader.close()


async def test_nothing_is_left_when_a_slow_worker_is_ended(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    async with Workers(program(), limits=Limits(time=Ms(1000))) as workers:
        await refused(workers, b"child " + os.fsencode(pipe))

        # While anyone can still write to the pipe, reading it says: try again.
        assert os.read(reader, 10) == b""
    os.close(reader)


async def test_the_block_ends_its_workers() -> None:
    async with Workers(program(), limits=ENOUGH) as workers:
        pid = int(await workers.request(b"who"))

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_worker_that_cannot_start_is_reported_with_the_reason() -> None:
    async with Workers(program("import nothing_of_this_name"), limits=ENOUGH) as workers:
        error = await refused(workers, b"")

    assert error.code == "external.worker.start"
    assert "nothing_of_this_name" in error.problem


async def test_a_program_that_is_not_there_is_named() -> None:
    async with Workers(Command(argv=("no-such-program",)), limits=ENOUGH) as workers:
        error = await refused(workers, b"")

    assert error.code == "external.missing"


# A shell that starts us in the background has SIGINT ignored, and children inherit that.
ALONE = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tidegate.external.process import Command
from tidegate.external.worker import Workers

async def main():
    async with Workers(Command(argv=(sys.executable, "-I", "-c", sys.argv[1]))) as workers:
        await workers.request(b"child " + sys.argv[2].encode())

asyncio.run(main())
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killing_the_parent_process_leaves_no_worker(tmp_path: Path, blow: signal.Signals) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = [sys.executable, "-c", ALONE, PROGRAM, str(pipe)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as alone, pipe.open() as reader:
        alone.send_signal(blow)

        # The pipe closes when no process can write any more; otherwise this times out.
        assert reader.read() == ""
