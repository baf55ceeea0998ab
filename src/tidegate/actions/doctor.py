"""Check of external programs and libraries: which are installed, and what they are needed for.

A program is searched in the same way as when it is needed.
"""

from __future__ import annotations

import asyncio
import os
import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Literal

import msgspec

from tidegate.errors import ProcessError, RenderError, sanitize
from tidegate.external.process import Command, Limits, run
from tidegate.external.tools import find_program
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import SECOND, Ms
from tidegate.render.kustomize import find_tool

VERSION_LIMITS = Limits(time=Ms(10 * SECOND))


# kubectl prints its own version before that of Kustomize.
_VERSION = lazy_regex(r"(?:.*Kustomize Version:)?.*?(\d+\.\d+[\w.+-]*)", re.DOTALL)


class ToolCheck(msgspec.Struct, frozen=True):
    """An installed or missing program or library.

    `detail`: its path, or how to install it.
    """

    name: str
    state: Literal["found", "missing"]
    detail: str
    purpose: str
    version: str = ""


class RequiredTool(msgspec.Struct, frozen=True):
    """An external program."""

    name: str
    version_flag: str
    """Argument that prints its version."""
    purpose: str
    advice: str
    """How to install it."""


PROGRAMS = (
    RequiredTool("git", "--version", "sources in Git repositories", "install git 2.39 or newer"),
    RequiredTool("ssh", "-V", "Git repositories over ssh", "install an ssh client"),
    RequiredTool(
        "sops", "--version", "files encrypted for PGP, cloud services or Vault", "install sops"
    ),
    RequiredTool("gpg", "--version", "sops with PGP keys from your keyring", "install gnupg"),
)
LIBRARIES = (
    ("helm-python-sdk", "Helm charts", "install tidegate[helm]"),
    ("pyrage", "files encrypted for age recipients", "install tidegate[sops]"),
    ("cryptography", "files encrypted for age recipients", "install tidegate[sops]"),
    ("gojsonnet", "Jsonnet files", "install tidegate[jsonnet]"),
    ("cel-expr-python", "health expressions in CEL", "install tidegate[cel]"),
    ("lupa", "health rules in Lua", "install tidegate[lua]"),
    ("jq", "jq expressions of ignored differences", "install tidegate[jq]"),
)


async def check_tools() -> tuple[ToolCheck, ...]:
    """Check everything that some repository may need."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_check_kustomize(), name="look for kustomize"),
            *(
                group.create_task(_check_program(tool), name=f"look for {tool.name}")
                for tool in PROGRAMS
            ),
        ]
    libraries = (_check_library(*library) for library in LIBRARIES)
    return *(task.result() for task in tasks), *libraries


async def _check_kustomize() -> ToolCheck:
    purpose = "Kustomize overlays"
    try:
        program, subcommand = find_tool().argv
    except RenderError:
        advice = "install tidegate[kustomize], or kubectl or kustomize"
        return ToolCheck("kustomize", "missing", advice, purpose)
    arguments = ("version", "--client") if subcommand == "kustomize" else ("version",)
    return ToolCheck(
        "kustomize", "found", program, purpose, await _read_version(program, *arguments)
    )


async def _check_program(tool: RequiredTool) -> ToolCheck:
    try:
        program = str(find_program(tool.name, path=os.environ.get("PATH", os.defpath)))
    except ProcessError:
        return ToolCheck(tool.name, "missing", tool.advice, tool.purpose)
    return ToolCheck(
        tool.name, "found", program, tool.purpose, await _read_version(program, tool.version_flag)
    )


async def _read_version(program: str, *arguments: str) -> str:
    """Return the version that a program prints, or ""."""
    # Disable network access: sops looks for a newer version of itself.
    environment = {"SOPS_DISABLE_VERSION_CHECK": "1"}
    try:
        result = await run(
            Command(argv=(program, *arguments), env=environment), limits=VERSION_LIMITS
        )
    except ProcessError:
        return ""
    match = _VERSION.match((result.stdout + result.stderr).decode(errors="replace"))
    return sanitize(match[1]) if match else ""


def _check_library(name: str, purpose: str, advice: str) -> ToolCheck:
    try:
        return ToolCheck(name, "found", "installed with Tidegate", purpose, version_of(name))
    except PackageNotFoundError:
        return ToolCheck(name, "missing", advice, purpose)
