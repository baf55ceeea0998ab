"""Inflates charts for kustomize, with our warm workers in the place of helm.

    kustomize ── `python template web …` ── socket ── Inflation ── a Helm worker

Kustomize runs the program that it is told is helm, with helm's arguments, in the directory of the
build. It is told our own Python: then helm's commands are names of scripts, and these lie there.
So no helm is needed, and no file has to be executable, which files in memory often must not be.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tidegate.errors import Location, RenderError, sanitize
from tidegate.external.worker import Workers
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import (
    DEFAULT_KUBE_VERSION,
    ChartRequest,
    InlineValues,
    ValuesFile,
)
from tidegate.render.helm.render import print_manifest
from tidegate.render.kustomize.helm_shim import CHUNK, SOCKET

COMMANDS = ("version", "template", "pull")
LARGEST_REQUEST = 1024 * 1024
ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
PROGRAM = sys.executable
WITH_A_VALUE = frozenset(
    {"--namespace", "--name-template", "-f", "--api-versions", "--kube-version"}
)
ALONE = frozenset(
    {"--include-crds", "--skip-tests", "--no-hooks", "--generate-name", "--debug", "--devel"}
)
"""Options of `helm template` that kustomize may give."""
_VALUES = lazy_regex(r"/?tmp/kustomize-helm-\d+/(.+?)-kustomize-values\.yaml")
_TREE = lazy_regex(r"(?<![\w./-])/?tree/")


class HelmShimServer:
    """Whoever kustomize asks, for one build. `refused` is what a chart was refused for."""

    def __init__(self, scratch: Path, workers: Workers) -> None:
        self._scratch = scratch
        self._workers = workers
        self.refused: RenderError | None = None

    def listen(self) -> socket.socket:
        """Put the scripts where kustomize will call them by name, and a socket beside them."""
        for command in COMMANDS:
            shutil.copyfile(Path(__file__).with_name("helm_shim.py"), self._scratch / command)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(self._scratch / SOCKET))
        except OSError as error:
            listener.close()
            problem = f"charts cannot be inflated in `{self._scratch}`: {sanitize(str(error))}"
            hint = "give TMPDIR a shorter path"
            raise RenderError("render.kustomize.helm", problem, hint=hint) from None
        listener.listen()
        listener.setblocking(False)
        return listener

    async def serve(self, listener: socket.socket) -> None:
        """Answer one request after another until cancelled; kustomize waits for each."""
        loop = asyncio.get_running_loop()
        while True:
            line, _ = await loop.sock_accept(listener)
            with line, suppress(ConnectionError):
                line.setblocking(False)
                await loop.sock_sendall(line, await self._answer(await _hear(line)))

    async def _answer(self, request: bytes) -> bytes:
        try:
            asked = parse_helm_call(os.fsdecode(request).split("\0"), self._scratch)
            try:
                manifest = await print_manifest(
                    asked.release, self._workers, hooks=asked.hooks, tests=asked.tests
                )
            except RenderError as error:
                raise _in_words_of_the_overlay(error, asked, self._scratch) from error
            return b"+" + manifest.encode()
        except RenderError as error:
            self.refused = self.refused or error
            # Kustomize quotes this in a message of its own, which nobody gets to see.
            return b"-" + error.code.encode()


async def _hear(line: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    request = b""
    while len(request) <= LARGEST_REQUEST and (piece := await loop.sock_recv(line, CHUNK)):
        request += piece
    return request


def _in_words_of_the_overlay(
    error: RenderError, asked: HelmTemplateCall, scratch: Path
) -> RenderError:
    """The same error with paths as they are in the source: it speaks of our copy."""
    place = error.location or Location(asked.release.chart)
    inside = f"{asked.release.chart}/{place.name}"
    name = _translated(inside if (scratch / inside).exists() else place.name)
    where = place.with_name(name)
    return RenderError(error.code, _translated(error.problem), location=where, hint=error.hint)


def _translated(text: str) -> str:
    return _TREE.sub("", _VALUES.sub(r"values of \1", text))


class HelmTemplateCall(msgspec.Struct, frozen=True):
    """One call of `helm template`."""

    release: ChartRequest
    hooks: bool = True
    tests: bool = True


def parse_helm_call(words: list[str], scratch: Path) -> HelmTemplateCall:
    """What a call asks for. All paths in it lie below the directory of the build."""
    command, *rest = words
    if command != "template":
        problem = (
            f"kustomize asks for `helm {sanitize(command)}`, and charts are only rendered here"
        )
        raise RenderError("render.kustomize.helm", problem, location=Location("."))
    named, options = _sorted(rest)
    chart = os.path.relpath(named[-1] if named else "", scratch)
    files = (os.path.relpath(path, scratch) for path in options.get("-f", ()))
    release = ChartRequest(
        root=str(scratch),
        chart=chart,
        name=_name(named[:-1], options, chart),
        namespace=_last(options, "--namespace") or "default",
        layers=(*(ValuesFile(f"/{path}") for path in files), InlineValues()),
        kube_version=_last(options, "--kube-version") or DEFAULT_KUBE_VERSION,
        api_versions=tuple(options.get("--api-versions", ())),
        include_crds="--include-crds" in options,
        repositories=(),
        builds_dependencies=False,
    )
    return HelmTemplateCall(release, "--no-hooks" not in options, "--skip-tests" not in options)


def _sorted(words: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """What stands by itself, and the values of each option."""
    named: list[str] = []
    options: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        if word in WITH_A_VALUE:
            options.setdefault(word, []).append(next(left, ""))
        elif word in ALONE:
            options[word] = []
        elif word.startswith("-"):
            problem = f"kustomize calls helm with `{sanitize(word)}`, which is not known here"
            raise RenderError("render.kustomize.helm", problem, location=Location("."))
        else:
            named.append(word)
    return named, options


def _name(named: list[str], options: dict[str, list[str]], chart: str) -> str:
    """The name of the release. Helm would make one up of the clock; ours stays the same."""
    pattern = _last(options, "--name-template")
    if pattern and (named or "{{" in pattern):
        problem = "the `nameTemplate` of a chart is not evaluated here"
        hint = "write the name as `releaseName`"
        where = Location(chart.partition("/")[2] or ".")
        raise RenderError("render.kustomize.helm", problem, location=where, hint=hint)
    made_up = f"{Path(chart).name.partition('.')[0]}-0"
    return pattern or (named[0] if named else made_up)


def _last(options: dict[str, list[str]], name: str) -> str:
    return options.get(name, [""])[-1]
