"""Which of other people's programs and libraries are here, and what each is needed for.

A program is looked for where it will be looked for when it is needed.
"""

from __future__ import annotations

import asyncio
import os
import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Literal

import msgspec

from tidegate.errors import ProcessError, RenderError, foreign
from tidegate.external.process import Command, Limits, run
from tidegate.external.tools import find_program
from tidegate.model.moment import SECOND, Ms
from tidegate.model.patterns import late
from tidegate.render.kustomize import find_tool

PATIENCE = Limits(time=Ms(10 * SECOND))
# kubectl says its own version before that of its kustomize.
_VERSION = late(r"(?:.*Kustomize Version:)?.*?(\d+\.\d+[\w.+-]*)", re.DOTALL)


class Checkup(msgspec.Struct, frozen=True):
    """One thing that is here or is not. `detail` is where it is, or how it can be had."""

    name: str
    state: Literal["found", "missing"]
    detail: str
    purpose: str
    version: str = ""


class NeededTool(msgspec.Struct, frozen=True):
    """A program: what makes it tell its version, what it is for, and how it can be had."""

    name: str
    ask: str
    purpose: str
    advice: str


PROGRAMS = (
    NeededTool("git", "--version", "sources in Git repositories", "install git 2.39 or newer"),
    NeededTool("ssh", "-V", "Git repositories over ssh", "install an ssh client"),
    NeededTool(
        "sops", "--version", "files encrypted for PGP, cloud services or Vault", "install sops"
    ),
    NeededTool("gpg", "--version", "sops with PGP keys of your own ring", "install gnupg"),
)
LIBRARIES = (
    ("helm-python-sdk", "Helm charts", "install tidegate[helm]"),
    ("pyrage", "files encrypted for age recipients", "install tidegate[sops]"),
    ("cryptography", "files encrypted for age recipients", "install tidegate[sops]"),
    ("gojsonnet", "Jsonnet in directories", "install tidegate[jsonnet]"),
    ("cel-expr-python", "health expressions in CEL", "install tidegate[cel]"),
    ("lupa", "health rules in Lua", "install tidegate[lua]"),
    ("jq", "jq expressions of ignored differences", "install tidegate[jq]"),
)


async def examine() -> tuple[Checkup, ...]:
    """Everything that some repository may need."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_kustomize(), name="look for kustomize"),
            *(group.create_task(_program(one), name=f"look for {one.name}") for one in PROGRAMS),
        ]
    libraries = (_library(*one) for one in LIBRARIES)
    return *(task.result() for task in tasks), *libraries


async def _kustomize() -> Checkup:
    purpose = "Kustomize overlays"
    try:
        program, word = find_tool().argv
    except RenderError:
        advice = "install tidegate[kustomize], or kubectl or kustomize"
        return Checkup("kustomize", "missing", advice, purpose)
    words = ("version", "--client") if word == "kustomize" else ("version",)
    return Checkup("kustomize", "found", program, purpose, await _version(program, *words))


async def _program(tool: NeededTool) -> Checkup:
    try:
        program = str(find_program(tool.name, path=os.environ.get("PATH", os.defpath)))
    except ProcessError:
        return Checkup(tool.name, "missing", tool.advice, tool.purpose)
    return Checkup(tool.name, "found", program, tool.purpose, await _version(program, tool.ask))


async def _version(program: str, *words: str) -> str:
    """What it says of itself; nothing where it says no version."""
    # Not a word to the network: some programs look for a newer one of themselves.
    quiet = {"SOPS_DISABLE_VERSION_CHECK": "1"}
    try:
        ran = await run(Command(argv=(program, *words), env=quiet), limits=PATIENCE)
    except ProcessError:
        return ""
    found = _VERSION.match((ran.stdout + ran.stderr).decode(errors="replace"))
    return foreign(found[1]) if found else ""


def _library(name: str, purpose: str, advice: str) -> Checkup:
    try:
        return Checkup(name, "found", "installed with Tidegate", purpose, version_of(name))
    except PackageNotFoundError:
        return Checkup(name, "missing", advice, purpose)
