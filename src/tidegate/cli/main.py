"""The `tidegate` command: finds the verb, runs it, and shows what went wrong, once.

Verbs are imported when they are called: `tidegate --help` must not wait for what it does not use.
"""

from __future__ import annotations

import errno
import gc
import importlib
import locale
import os
import sys
import traceback
from collections.abc import Iterable
from typing import NoReturn

import click

from tidegate.cli.saying import (
    CLOSED,
    forget,
    say_error,
    say_lines,
    speak_json,
    speaks_json,
    unheard,
)
from tidegate.errors import OutputError, Place, TidegateError, errors_of
from tidegate.report.places import forget_trees

COLLECTS_AFTER = (100_000, 50, 100)
"""With Python's own thresholds, a sixth of a rollout's time goes into looking for garbage.

What outlives a first look mostly stays, and looking at it again costs the more, the more there is.
"""
VERBS = {
    "app": "Look at Applications, and roll them out, by the verbs of `argocd app`.",
    "approve": "Let a unit go on that waits until somebody approves.",
    "appset": "Show what ApplicationSets generate.",
    "build": "Show what Kustomizations and HelmReleases come to, as `flux build` does.",
    "cache": "Show or clear what was fetched and rendered before.",
    "completion": "Print what a shell needs to complete commands.",
    "config": "Show what counts for a repository, and where it comes from.",
    "delete": "Delete what a unit has brought, in reverse order.",
    "diff": "Show what a rollout of Kustomizations and HelmReleases would change.",
    "doctor": "Show which tools were found, and what is missing.",
    "events": "Show the Events of units, sources and what they bring.",
    "explain": "Print the page of a rule of `lint`.",
    "get": "Show Kustomizations, HelmReleases and sources, as `flux get` does.",
    "graph": "Show who waits for whom, what is missing, and why.",
    "help": "Show how a command is called, or what exit codes mean.",
    "health": "Show how objects in files are, and which rule says so.",
    "jobs": "Show the Jobs and hooks of units, and run one again.",
    "journal": "Show what a cluster remembers of a unit.",
    "knowledge": "Show what is known of a kind: who serves it, what it needs, when it is well.",
    "lint": "Say whether the order of a repository can work.",
    "logs": "Show what the pods print of that which failed or waits of a unit.",
    "plan": "Show what a rollout would do, step by step.",
    "profile": "Learn from a cluster how long things take.",
    "reconcile": "Have units and sources of Flux reconciled now, as `flux reconcile` does.",
    "resume": "Have units and sources taken up again that somebody has suspended.",
    "render": "Show what paths or addresses render to.",
    "sandbox": "Try things on a simulated cluster.",
    "simulate": "Roll out on a simulated cluster, and show when each gate opened.",
    "status": "Show how a unit stands in the cluster.",
    "suspend": "Have nothing done to units and sources, until somebody resumes them.",
    "sync": "Roll out wave by wave, on a cluster or on a simulated one.",
    "trace": "Show where an object comes from: its unit, who brings that, its source and file.",
    "tree": "Show what a unit brings, and what units among that bring.",
    "units": "Show the units of a repository, and who brings them.",
    "verify": "Prove that the order of a rollout was kept.",
    "version": "Show the version of Tidegate.",
    "waves": "Show which units and objects come in which wave, and how many have one.",
}
"""Each has a module of its name with a function of its name; the line is its short help."""

A_BUG = "this is a bug in tidegate; please report it with the lines above"
NOWHERE = Place("")
BUG, INTERRUPTED, INPUT = 1, 130, 3
NOT_WRITTEN = (errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO)
"""Why a stream takes no more."""


class _Verbs(click.Group):
    """A group that knows its verbs by name and imports them one by one."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"tidegate.cli.commands.{name}"), name)
        if not isinstance(command, click.Command):
            raise TypeError(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Whoever misspells a verb is told the nearest one."""
        word = args[0] if args else ""
        if word and word not in VERBS and not word.startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only for who misspells

            near = get_close_matches(word, VERBS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{word}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table, so that nothing is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name]) for name in sorted(VERBS)])


def _show_version(ctx: click.Context, _option: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001 - click's
    if is_asked:
        ctx.exit(cli.main(["version"], standalone_mode=False) or 0)


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Prove, preview and roll out the order of a GitOps repository."""


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    _speak_utf8()
    if sys.stdout is None:
        sys.exit(_show_unheard(unheard(errno.EBADF)))
    try:
        code = run_words(sys.argv[1:])
    except SystemExit as left:  # a shell was told what it may complete, or nobody reads its help
        code = OutputError.exit_code if left.code else 0
    gc.freeze()  # a sixth of a short verb would go into looking for garbage on the way out
    sys.exit(code)


def _speak_utf8() -> None:
    """Start again where the locale wants another encoding: the same input gives the same bytes."""
    if not sys.flags.utf8_mode and locale.getencoding().lower() not in {"utf-8", "utf8"}:
        again = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execv(sys.executable, again)  # noqa: S606 - it is ourselves


def run_words(arguments: list[str]) -> int:
    """Run a verb as it is typed, show what went wrong, and give the exit code."""
    gc.set_threshold(*COLLECTS_AFTER)
    speak_json(_wants_json(arguments))
    forget_trees()
    try:
        result = cli.main(arguments, prog_name="tidegate", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _tell("interrupted", _last_words(error), INTERRUPTED)
    except click.ClickException as error:
        told = error.format_message() if speaks_json() else _usage(error)
        return _tell("usage", told, error.exit_code)
    except TidegateError as error:
        return _show_unheard(error) if isinstance(error, OutputError) else _show(error)
    except ExceptionGroup as group:
        return _show_group(group)
    except Exception as error:  # noqa: BLE001 - whatever else comes here is a bug, but for help
        return _show_bug(error)
    return result if isinstance(result, int) else 0


def _show_unheard(error: OutputError) -> int:
    """Who closed a pipe has read enough."""
    return error.exit_code if error.code == CLOSED else _show(error)


def _show_bug(error: Exception) -> int:
    """Whatever is not ours; but click itself prints help, which nobody may be there to read."""
    if isinstance(error, OSError) and error.filename is None and error.errno in NOT_WRITTEN:
        forget(sys.stdout)
        return _show_unheard(unheard(error.errno))
    spent = _show_spent(error)
    if not spent:
        say_lines("".join(traceback.format_exception(error)), err=True)
    return spent or _show_as(TidegateError("bug", A_BUG), BUG)


def _show_spent(error: Exception) -> int:
    """What a machine has nothing left of. Gives 0 where that is not what is wrong."""
    from tidegate.cli.exhaustion import spent_errors  # noqa: PLC0415 - only where it happens

    return _show_all(spent_errors(error))


def _usage(error: click.ClickException) -> str:
    """How a verb is called, and what is wrong with how it was; arguments are strangers' as well."""
    context = getattr(error, "ctx", None)
    problem = f"Error: {error.format_message()}"
    if context is None:
        return problem
    help_line = f"Try '{context.command_path} --help' for help."
    return f"{context.get_usage()}\n{help_line}\n\n{problem}"


def _last_words(error: BaseException) -> str:
    """What whoever was interrupted leaves to say; click puts a cause of its own before that."""
    return str(error.__cause__ or error) or "interrupted"


def _show_group(group: ExceptionGroup[Exception]) -> int:
    """Several errors of ours, by place; anything else in there is a bug, or the machine's."""
    ours, others = group.split(TidegateError)
    if others is not None or ours is None:
        return _show_bug(group)
    return _show_all(errors_of(ours)) or INPUT


def _show_all(errors: Iterable[TidegateError]) -> int:
    """Each once, by place. Gives the largest of their codes."""
    told = sorted(errors, key=lambda error: (error.where or NOWHERE, error.code))
    for error in told:
        _show(error)
    return max((error.exit_code for error in told), default=0)


def _wants_json(arguments: list[str]) -> bool:
    """Whether a program reads what is told, by words that may be wrong otherwise."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return any(
        one in {"-ojson", "--output=json"} or (one in {"-o", "--output"} and value == "json")
        for one, value in pairs
    )


def _show(error: TidegateError) -> int:
    say_error(error)
    return error.exit_code


def _tell(code: str, text: str, exit_code: int) -> int:
    """What is no error of ours: a word that is not known, or an interruption."""
    return (
        _show_as(TidegateError(code, text), exit_code) if speaks_json() else _say(text, exit_code)
    )


def _show_as(error: TidegateError, exit_code: int) -> int:
    _show(error)
    return exit_code


def _say(text: str, code: int) -> int:
    say_lines(text, err=True)
    return code
