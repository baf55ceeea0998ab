"""What the commands said about a checkout: units, objects, findings, exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.corpus.commands import TIMED_OUT, CommandRun, run_command

COMMANDS = ("units", "lint", "graph", "plan", "simulate")
_NAMES = re.compile(r"`[^`]*`|\d+")


class CorpusFinding(Struct, frozen=True, kw_only=True):
    """A finding of `lint`, or an error that ended it."""

    code: str
    severity: str
    message: str
    location: str | None = None
    why: str = ""
    fix: str = ""
    file: str | None = None
    line: int | None = None
    also: tuple[str, ...] = ()
    story: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """The code and the message without names and numbers."""
        return f"{self.code} {_NAMES.sub('…', self.message)}"


class CoverageOutput(Struct, frozen=True, kw_only=True):
    """How much of a checkout `lint` looked at."""

    incomplete: bool
    units: int
    rendered: int
    objects: int
    gaps: tuple[msgspec.Raw, ...]


class LintOutput(Struct, frozen=True, kw_only=True):
    """The part of the JSON of `lint` that is read here."""

    findings: tuple[CorpusFinding, ...]
    coverage: CoverageOutput


class PlanOutput(Struct, frozen=True, kw_only=True):
    """The part of a plan that is read here."""

    objects: tuple[msgspec.Raw, ...] = ()


class SimulationEnd(Struct, frozen=True, kw_only=True):
    """The part of the last event of a simulation that is read here."""

    outcome: str = ""


class Timing(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: int
    seconds: float
    traceback: str = ""
    """The last lines of what the command printed, if it crashed."""


class CheckoutResult(Struct, frozen=True, kw_only=True):
    """What the commands said about one checkout."""

    name: str
    commands: dict[str, Timing]
    findings: tuple[CorpusFinding, ...] = ()
    units: int = 0
    rendered: int = 0
    """Units that were rendered, at least in part."""

    objects: int = 0
    """Objects that `lint` looked at."""

    read: str = "no"
    """How much was looked into: `whole`, `part`, `little` (`lint` is incomplete) or `no`."""

    planned: int = 0
    """Objects that a rollout of the whole checkout would apply."""

    simulated: str = ""
    """The outcome of `simulate`, empty if it refused to run."""


def examine_checkout(
    checkout: Path, commands: Sequence[str] = COMMANDS, *, limit: float
) -> CheckoutResult:
    """Run `commands` over `checkout`, each for at most `limit` seconds."""
    runs = {command: run_command(command, checkout, limit=limit) for command in commands}
    result = CheckoutResult(
        name=checkout.name, commands={name: _timing_of(run) for name, run in runs.items()}
    )
    for command, run in runs.items():
        if command in _READERS:
            result = _READERS[command](result, run)
    return result


def _with_lint(result: CheckoutResult, run: CommandRun) -> CheckoutResult:
    if run.exit_code == TIMED_OUT or not run.output.strip():
        return replace(result, findings=tuple(_refusals(run.errors)))
    lint = msgspec.json.decode(run.output, type=LintOutput)
    coverage = lint.coverage
    return replace(
        result,
        findings=lint.findings,
        units=coverage.units,
        rendered=coverage.rendered,
        objects=coverage.objects,
        read=_how_much(coverage),
    )


def _how_much(coverage: CoverageOutput) -> str:
    if coverage.incomplete:
        return "little" if coverage.objects else "no"
    return "part" if coverage.gaps else "whole"


def _with_plan(result: CheckoutResult, run: CommandRun) -> CheckoutResult:
    """Add the number of objects of all plans; roots that are alternatives have one each."""
    if run.exit_code == TIMED_OUT:
        return result
    plans = (msgspec.json.decode(line, type=PlanOutput) for line in run.output.splitlines())
    return replace(result, planned=sum(len(plan.objects) for plan in plans))


def _with_simulation(result: CheckoutResult, run: CommandRun) -> CheckoutResult:
    """Add the outcome of the last event, or `stopped` if the simulation did not end."""
    lines = run.output.splitlines()
    if run.exit_code == TIMED_OUT:
        return replace(result, simulated="stopped")
    return replace(result, simulated=_outcome_of(lines[-1])) if lines else result


def _outcome_of(line: str) -> str:
    return msgspec.json.decode(line, type=SimulationEnd).outcome


_READERS: dict[str, Callable[[CheckoutResult, CommandRun], CheckoutResult]] = {
    "lint": _with_lint,
    "plan": _with_plan,
    "simulate": _with_simulation,
}


def _timing_of(run: CommandRun) -> Timing:
    tail = "\n".join(run.errors.splitlines()[-12:]) if run.has_traceback else ""
    return Timing(exit_code=run.exit_code, seconds=round(run.seconds, 1), traceback=tail)


def _refusals(errors: str) -> Iterator[CorpusFinding]:
    """Yield the errors that a command printed instead of a result."""
    for line in errors.splitlines():
        try:
            yield msgspec.json.decode(line, type=CorpusFinding)
        except msgspec.DecodeError:
            continue
