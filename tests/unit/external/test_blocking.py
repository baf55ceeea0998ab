"""A worker for code without a loop: what it answers, what ends it, and that the next one works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.external.test_worker import ENOUGH, PROGRAM, program
from tidegate.errors import ProcessError
from tidegate.external.blocking_worker import BlockingWorker
from tidegate.external.process import MIB, Command, Limits
from tidegate.model.times import Ms

ALONE = """
import sys
from tidegate.external.blocking_worker import BlockingWorker
from tidegate.external.process import Command, Limits

command = Command(argv=(sys.executable, "-I", "-c", sys.argv[1]))
BlockingWorker(command, Limits()).request(b"child " + sys.argv[2].encode())
"""


@contextmanager
def started(command: Command, limits: Limits = ENOUGH) -> Iterator[BlockingWorker]:
    worker = BlockingWorker(command, limits)
    try:
        yield worker
    finally:
        worker.kill()


def refused(worker: BlockingWorker, request: bytes) -> str:
    with pytest.raises(ProcessError) as caught:
        worker.request(request)
    return caught.value.code


def test_a_worker_answers_requests_in_order_byte_for_byte() -> None:
    given = bytes(range(256)) * 10_000

    with started(program()) as worker:
        answers = [
            worker.request(b"echo " + given),
            worker.request(b"echo "),
            worker.request(b"count"),
        ]

    assert answers == [given, b"", b"3"]


@pytest.mark.parametrize(
    ("request_text", "code"),
    [
        (b"exit", "external.worker.crash"),
        (b"crash", "external.worker.crash"),
        (b"eat", "external.worker.crash"),
        (b"much 9000000", "external.worker.output"),
    ],
)
def test_a_worker_that_dies_is_one_error_and_the_next_works(request_text: bytes, code: str) -> None:
    with started(program()) as worker:
        first = worker.request(b"who")

        assert refused(worker, request_text) == code
        assert worker.request(b"who") != first


def test_a_worker_that_is_too_slow_is_killed_with_its_children(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with started(program(), Limits(time=Ms(1000), memory=512 * MIB)) as worker:
        assert refused(worker, b"child " + os.fsencode(pipe)) == "external.worker.timeout"

        # While anyone can still write to the pipe, reading it says: try again.
        assert os.read(reader, 10) == b""
        assert worker.request(b"count") == b"1"
    os.close(reader)


def test_an_idle_worker_that_ended_is_an_error_once() -> None:
    with started(program()) as worker:
        os.kill(int(worker.request(b"who")), signal.SIGKILL)

        assert refused(worker, b"echo x") == "external.worker.crash"
        assert worker.request(b"echo x") == b"x"


def test_the_block_ends_it() -> None:
    with started(program()) as worker:
        pid = int(worker.request(b"who"))

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (program("import nothing_of_this_name"), "external.worker.start"),
        (Command(argv=("no-such-program",)), "external.missing"),
    ],
)
def test_a_worker_that_cannot_start_has_its_own_code(command: Command, code: str) -> None:
    with started(command) as worker:
        assert refused(worker, b"") == code


def test_killing_the_parent_process_leaves_no_worker(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = [sys.executable, "-c", ALONE, PROGRAM, str(pipe)]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as alone, pipe.open() as reader:
        alone.kill()

        # The pipe closes when no process can write any more; otherwise this times out.
        assert reader.read() == ""
