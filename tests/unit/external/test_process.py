"""Running other people's programs: what goes in, what comes out, and which limits hold."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import ProcessError
from tidegate.external.process import MIB, Command, Limits, run
from tidegate.model.times import Ms

SECRET = "hunter2-hunter2"


def shell(script: str) -> Command:
    return Command(argv=("sh", "-c", script))


async def refused(command: Command, limits: Limits | None = None) -> ProcessError:
    with pytest.raises(ProcessError) as caught:
        await run(command, limits=limits)
    return caught.value


async def test_the_output_of_a_program_is_bytes() -> None:
    ran = await run(shell("printf 'out\\000put'; printf talk >&2"))

    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, b"out\0put", b"talk")


async def test_a_program_reads_what_it_is_given() -> None:
    given = bytes(range(256)) * 4096

    ran = await run(Command(argv=("cat",), stdin=given))

    assert ran.stdout == given


async def test_a_program_may_open_its_stdin_by_name() -> None:
    ran = await run(Command(argv=("cat", "/dev/stdin"), stdin=b"by name"))

    assert ran.stdout == b"by name"


async def test_stdin_is_at_its_end_where_nothing_is_given() -> None:
    ran = await run(shell("cat; readlink /proc/self/fd/0 || true"))

    assert ran.stdout in (b"/dev/null\n", b"")


async def test_a_program_runs_in_the_directory_it_is_given(tmp_path: Path) -> None:
    ran = await run(Command(argv=("sh", "-c", "echo here > note; pwd"), cwd=tmp_path))

    assert ran.stdout.decode().strip().endswith(tmp_path.name)
    assert await asyncio.to_thread((tmp_path / "note").read_text) == "here\n"


async def test_a_path_with_a_slash_starts_at_that_directory(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    ran = await run(Command(argv=("./tool",), cwd=tmp_path))

    assert ran.stdout == b"found\n"


async def test_a_program_sees_only_the_variables_it_needs_and_those_it_is_given() -> None:
    assert "PYTEST_CURRENT_TEST" in os.environ

    ran = await run(Command(argv=("env",), env={"TOKEN": SECRET, "EMPTY": ""}))

    lines = set(ran.stdout.decode().splitlines())
    names = {line.partition("=")[0] for line in lines}
    assert {f"TOKEN={SECRET}", "EMPTY=", f"PATH={os.environ['PATH']}"} <= lines
    assert "PYTEST_CURRENT_TEST" not in names


async def test_arguments_arrive_as_they_are() -> None:
    odd = ("", " two  words ", "$HOME", "line\nbreak", "ü", "-n", "a=b")

    ran = await run(Command(argv=("printf", "%s|", *odd)))

    assert ran.stdout.decode() == "".join(f"{word}|" for word in odd)


async def test_signals_are_as_a_program_expects_them() -> None:
    script = "import signal; print([s.name for s in signal.Signals if signal.getsignal(s) == 1])"

    ran = await run(Command(argv=(sys.executable, "-I", "-c", script)))

    assert ran.stdout.decode().strip() == "['SIGPIPE', 'SIGXFSZ']"  # python's own doing


async def test_a_program_that_fails_is_an_error_with_its_last_lines() -> None:
    error = await refused(shell("echo usage: x >&2; echo 'no such key' >&2; exit 3"))

    assert error.code == "external.failed"
    assert error.problem.startswith("`sh` ")
    assert error.problem.endswith(" 3: usage: x no such key")


async def test_the_last_lines_are_short_and_have_no_control_characters() -> None:
    error = await refused(shell(f"printf '{'a' * 5000}\\n\\033[31mred\\007 end\\n' >&2; exit 1"))

    assert error.problem.startswith("`sh` ")
    assert error.problem.endswith(" 1: [31mred end")


async def test_a_long_last_line_is_truncated() -> None:
    error = await refused(shell(f"echo {'a' * 5000} >&2; exit 1"))

    assert len(error.problem) < 250


async def test_an_error_never_shows_arguments_or_variables() -> None:
    command = Command(argv=("sh", "-c", "exit 1", SECRET), env={"KEY": SECRET}, stdin=b"x")

    error = await refused(command)

    assert SECRET not in str(error)
    assert SECRET not in repr(Command(argv=("sh",), env={"KEY": SECRET}, stdin=SECRET.encode()))


async def test_an_exit_code_can_be_an_answer() -> None:
    ran = await run(
        Command(argv=("sh", "-c", "echo differs; exit 1"), accepted_codes=frozenset({0, 1}))
    )

    assert (ran.exit_code, ran.stdout) == (1, b"differs\n")


async def test_the_signal_that_ended_a_program_is_named() -> None:
    error = await refused(shell("kill -SEGV $$"))

    assert error.code == "external.failed"
    assert error.problem.startswith("`sh` ")
    assert "SIGSEGV" in error.problem


async def test_a_program_that_is_not_there_is_named_with_a_way_out() -> None:
    error = await refused(Command(argv=("no-such-tool", SECRET)))

    assert error.code == "external.missing"
    assert "`no-such-tool`" in error.problem
    assert "`no-such-tool`" in error.hint
    assert "PATH" in error.hint


async def test_a_program_in_the_current_directory_is_not_taken_by_its_bare_name(
    tmp_path: Path,
) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    error = await refused(Command(argv=("tool",), cwd=tmp_path, env={"PATH": f".:{os.pathsep}"}))

    assert error.code == "external.missing"


async def test_a_script_without_its_interpreter_cannot_be_started(
    tmp_path: Path, wording: RecordedWording
) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/no/such/interpreter\n")
    tool.chmod(0o755)

    error = await refused(Command(argv=(str(tool),)))

    assert error.code == "external.start"
    wording(error.hint)


async def test_a_nul_byte_in_an_argument_is_refused_before_anything_starts() -> None:
    error = await refused(Command(argv=("echo", "a\0b")))

    assert error.code == "external.start"


async def test_a_program_that_takes_too_long_is_ended() -> None:
    error = await refused(shell("sleep 600"), Limits(time=Ms(200)))

    assert error.code == "external.timeout"
    assert error.problem.startswith("`sh` ")
    assert error.problem.endswith(" 0.2s")


async def test_a_program_that_writes_too_much_is_ended() -> None:
    error = await refused(Command(argv=("yes",)), Limits(output=10_000))

    assert error.code == "external.output"
    assert error.problem.startswith("`yes` ")
    assert " 10000 " in error.problem


async def test_output_up_to_the_limit_is_fine() -> None:
    ran = await run(shell("printf 12345"), limits=Limits(output=5))

    assert ran.stdout == b"12345"


async def test_much_talk_on_stderr_does_not_end_a_program() -> None:
    ran = await run(shell("yes x | head -c 1000000 >&2; echo last >&2"), limits=Limits(output=5))

    assert len(ran.stderr) == 64 * 1024
    assert ran.stderr.endswith(b"last\n")


async def test_a_program_that_needs_too_much_memory_is_an_error_with_the_limit() -> None:
    hungry = Command(argv=(sys.executable, "-I", "-c", f"bytearray({400 * MIB})"))

    error = await refused(hungry, Limits(memory=200 * MIB))

    assert error.code == "external.memory"
    assert " 200 MiB" in error.hint


async def test_a_go_program_runs_within_the_default_memory() -> None:
    kubectl = Path(sys.executable).with_name("kubectl")

    ran = await run(Command(argv=(str(kubectl), "version", "--client")))

    assert b"Client Version" in ran.stdout


async def test_a_program_writes_no_core_dump() -> None:
    ran = await run(shell("ulimit -c"))

    assert ran.stdout == b"0\n"


async def test_our_own_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGCHLD)

    await run(shell("true"))

    assert signal.getsignal(signal.SIGCHLD) == before
