"""The `tidegate` command: finds and runs a command, and prints its error once.

Commands are imported when they are called, so that `tidegate --help` imports none of them.
"""

from __future__ import annotations

import errno
import gc
import locale
import os
import sys
import traceback
from collections.abc import Iterable
from typing import NoReturn

import click

from tidegate.cli.command import LazyGroup
from tidegate.cli.output import (
    OUTPUT_CLOSED,
    has_json_errors,
    output_error,
    print_error,
    print_lines,
    redirect_to_devnull,
    set_json_errors,
)
from tidegate.errors import Location, OutputError, TidegateError, flatten_errors
from tidegate.model.display_paths import clear_roots

GC_THRESHOLDS = (100_000, 50, 100)
"""Garbage collection thresholds.

With the defaults of Python, a sixth of the time of a rollout is garbage collection. Objects
that survive the first collection mostly stay, and collecting them again is expensive.
"""
COMMANDS = {
    "Check": {
        "lint": "Check the deployment order of a repository for errors.",
        "diff": "Show what a change does to the deployment order.",
        "plan": "Show what a rollout would do, step by step.",
        "simulate": "Roll out on a simulated cluster and show when each gate opens.",
        "graph": "Show dependencies of units and objects, and what is missing.",
        "waves": "Show which units and objects are in which wave.",
        "render": "Render charts, overlays, directories and units.",
        "rule": "Explain a lint rule, or any other code that Tidegate prints.",
    },
    "Roll out": {
        "sync": "Roll out wave by wave to a cluster or a simulated cluster.",
        "status": "Show the sync and health status of objects in the cluster.",
        "approve": "Approve units that wait for approval.",
        "jobs": "List Jobs and hooks, and run one again.",
        "suspend": "Suspend units and sources.",
        "resume": "Resume suspended units and sources.",
        "verify": "Verify that a rollout kept its order.",
        "delete": "Delete the objects of units, in reverse order.",
    },
    "Inspect": {
        "units": "List Applications, Kustomizations and HelmReleases.",
        "tree": "Show the objects of units as a tree.",
        "trace": "Trace an object to its unit, parent units, source and file.",
        "logs": "Print logs from failing or pending pods.",
        "events": "Show the Events of units, sources and their objects.",
        "health": "Evaluate the health of objects in files.",
        "kinds": "Describe a kind: its operator, dependencies and readiness.",
    },
    "Argo CD": {"argocd": "Use `argocd app` and `argocd appset` without a server."},
    "Flux": {"flux": "Use `flux get`, `build`, `diff`, `reconcile` and others."},
    "Tools": {
        "sandbox": "Run a simulated cluster for kubectl and other clients.",
        "config": "Show the effective configuration and its origin.",
        "cache": "Show or clear the cache of fetched sources and rendered charts.",
        "doctor": "Show which external tools are installed.",
        "completion": "Print a shell completion script.",
    },
}
"""Short help by section and command. Each command has a module and an object of its name."""
HIDDEN_COMMANDS = ("help", "version")
BUG_MESSAGE = "this is a bug in tidegate; please report it with the lines above"
NO_LOCATION = Location("")
BUG, INTERRUPTED, INPUT_ERROR = 1, 130, 3
WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO)
"""Error numbers of a stream that cannot be written."""


def _show_version(ctx: click.Context, _option: click.Parameter, is_requested: bool) -> None:  # noqa: FBT001 - click's
    if is_requested:
        ctx.exit(cli.main(["version"], standalone_mode=False) or 0)


@click.group(
    cls=LazyGroup,
    package="tidegate.cli.commands",
    sections=COMMANDS,
    hidden=HIDDEN_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Check, preview and roll out the deployment order of a GitOps repository.

    \b
    Examples:
      tidegate lint
      tidegate simulate clusters/prod
      tidegate sync overlays/prod --context prod
    """


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    _ensure_utf8()
    if sys.stdout is None:
        sys.exit(_show_output_error(output_error(errno.EBADF)))
    try:
        code = run_argv(sys.argv[1:])
    except SystemExit as exit_error:  # after shell completion, or if standard output was closed
        code = OutputError.exit_code if exit_error.code else 0
    gc.freeze()  # collecting garbage at exit takes a sixth of the time of a short command
    sys.exit(code)


def _ensure_utf8() -> None:
    """Restart in UTF-8 mode under another locale, so that equal input gives equal output."""
    if not sys.flags.utf8_mode and locale.getencoding().lower() not in {"utf-8", "utf8"}:
        argv = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execv(sys.executable, argv)  # noqa: S606 - it is ourselves


def run_argv(arguments: list[str]) -> int:
    """Run the command line, print errors, and return the exit code."""
    gc.set_threshold(*GC_THRESHOLDS)
    set_json_errors(_is_json_requested(arguments))
    clear_roots()
    try:
        result = cli.main(arguments, prog_name="tidegate", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _show_message("interrupted", _interruption_message(error), INTERRUPTED)
    except click.ClickException as error:
        message = error.format_message() if has_json_errors() else _usage_text(error)
        return _show_message("usage", message, error.exit_code)
    except TidegateError as error:
        return _show_output_error(error) if isinstance(error, OutputError) else _show_error(error)
    except ExceptionGroup as group:
        return _show_group(group)
    except Exception as error:  # noqa: BLE001 - whatever else comes here is a bug, but for help
        return _show_bug(error)
    return result if isinstance(result, int) else 0


def _show_output_error(error: OutputError) -> int:
    """Print an output error; a closed pipe is not reported."""
    return error.exit_code if error.code == OUTPUT_CLOSED else _show_error(error)


def _show_bug(error: Exception) -> int:
    """Print an unexpected error as a bug, except a write error while click prints help."""
    if isinstance(error, OSError) and error.filename is None and error.errno in WRITE_ERRORS:
        redirect_to_devnull(sys.stdout)
        return _show_output_error(output_error(error.errno))
    exit_code = _show_resource_errors(error)
    if not exit_code:
        print_lines("".join(traceback.format_exception(error)), err=True)
    return exit_code or _show_with_code(TidegateError("bug", BUG_MESSAGE), BUG)


def _show_resource_errors(error: Exception) -> int:
    """Print errors of exhausted system resources. Return 0 if the error is another one."""
    from tidegate.cli.os_errors import resource_errors  # noqa: PLC0415 - only where it happens

    return _show_all(resource_errors(error))


def _usage_text(error: click.ClickException) -> str:
    """Return the usage of the command and the problem with its arguments."""
    context = getattr(error, "ctx", None)
    problem = f"Error: {error.format_message()}"
    if context is None:
        return problem
    help_line = f"Try '{context.command_path} --help' for help."
    return f"{context.get_usage()}\n{help_line}\n\n{problem}"


def _interruption_message(error: BaseException) -> str:
    """Return the message of an interruption; click wraps it in an exception of its own."""
    return str(error.__cause__ or error) or "interrupted"


def _show_group(group: ExceptionGroup[Exception]) -> int:
    """Print several Tidegate errors by location; any other error in the group is a bug."""
    ours, others = group.split(TidegateError)
    if others is not None or ours is None:
        return _show_bug(group)
    return _show_all(flatten_errors(ours)) or INPUT_ERROR


def _show_all(errors: Iterable[TidegateError]) -> int:
    """Print each error once, by location, and return the largest exit code."""
    sorted_errors = sorted(errors, key=lambda error: (error.location or NO_LOCATION, error.code))
    for error in sorted_errors:
        _show_error(error)
    return max((error.exit_code for error in sorted_errors), default=0)


def _is_json_requested(arguments: list[str]) -> bool:
    """Return whether JSON is requested, by arguments that may be invalid otherwise."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(
        argument in {"-ojson", "--output=json"}
        or (argument in {"-o", "--output"} and value == "json")
        for argument, value in pairs
    )


def _show_error(error: TidegateError) -> int:
    print_error(error)
    return error.exit_code


def _show_message(code: str, text: str, exit_code: int) -> int:
    """Print a usage error or an interruption, and return the exit code."""
    return (
        _show_with_code(TidegateError(code, text), exit_code)
        if has_json_errors()
        else _print_with_code(text, exit_code)
    )


def _show_with_code(error: TidegateError, exit_code: int) -> int:
    _show_error(error)
    return exit_code


def _print_with_code(text: str, code: int) -> int:
    print_lines(text, err=True)
    return code
