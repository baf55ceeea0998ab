"""Chart inflation for kustomize, by warm Helm workers in place of helm.

kustomize ── `python template web …` ── socket ── HelmShimServer ── a Helm worker

Kustomize runs its configured helm program, with helm's arguments, in the build directory. The
program is Python: helm's commands are then names of scripts in that directory. So no helm is
needed, and no file must be executable, which files in memory often cannot be.
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
from tidegate.render.helm.chart_renderer import print_manifest
from tidegate.render.kustomize.helm_shim import CHUNK, SOCKET

COMMANDS = ("version", "template", "pull")
MAX_REQUEST_SIZE = 1024 * 1024
ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
PROGRAM = sys.executable
VALUE_OPTIONS = frozenset(
    {"--namespace", "--name-template", "-f", "--api-versions", "--kube-version"}
)
FLAG_OPTIONS = frozenset(
    {"--include-crds", "--skip-tests", "--no-hooks", "--generate-name", "--debug", "--devel"}
)
"""Options of `helm template` that kustomize may pass, without a value."""
_VALUES_PATH = lazy_regex(r"/?tmp/kustomize-helm-\d+/(.+?)-kustomize-values\.yaml")
_TREE_PREFIX = lazy_regex(r"(?<![\w./-])/?tree/")


class HelmShimServer:
    """Server of the helm calls of one build."""

    def __init__(self, scratch: Path, workers: Workers) -> None:
        self._scratch = scratch
        self._workers = workers
        self.error: RenderError | None = None

    def listen(self) -> socket.socket:
        """Write the scripts that kustomize calls, and open a socket in the same directory."""
        for command in COMMANDS:
            shutil.copyfile(Path(__file__).with_name("helm_shim.py"), self._scratch / command)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(self._scratch / SOCKET))
        except OSError as error:
            listener.close()
            problem = f"cannot inflate charts in `{self._scratch}`: {sanitize(str(error))}"
            hint = "set TMPDIR to a shorter path"
            raise RenderError("render.kustomize.helm", problem, hint=hint) from None
        listener.listen()
        listener.setblocking(False)
        return listener

    async def serve(self, listener: socket.socket) -> None:
        """Answer one request after another until cancelled; kustomize waits for each."""
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            with connection, suppress(ConnectionError):
                connection.setblocking(False)
                await loop.sock_sendall(connection, await self._answer(await _receive(connection)))

    async def _answer(self, request: bytes) -> bytes:
        try:
            call = parse_helm_call(os.fsdecode(request).split("\0"), self._scratch)
            try:
                manifest = await print_manifest(
                    call.release,
                    self._workers,
                    include_hooks=call.include_hooks,
                    include_tests=call.include_tests,
                )
            except RenderError as error:
                raise _overlay_error(error, call, self._scratch) from error
            return b"+" + manifest.encode()
        except RenderError as error:
            self.error = self.error or error
            # Kustomize quotes this text in its message, which is not shown.
            return b"-" + error.code.encode()


async def _receive(connection: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    request = b""
    while len(request) <= MAX_REQUEST_SIZE and (chunk := await loop.sock_recv(connection, CHUNK)):
        request += chunk
    return request


def _overlay_error(error: RenderError, call: HelmTemplateCall, scratch: Path) -> RenderError:
    """Return the error with paths of the source instead of the copy."""
    location = error.location or Location(call.release.chart)
    chart_path = f"{call.release.chart}/{location.name}"
    name = _translate_paths(chart_path if (scratch / chart_path).exists() else location.name)
    translated = location.with_name(name)
    return RenderError(
        error.code, _translate_paths(error.problem), location=translated, hint=error.hint
    )


def _translate_paths(text: str) -> str:
    return _TREE_PREFIX.sub("", _VALUES_PATH.sub(r"values of \1", text))


class HelmTemplateCall(msgspec.Struct, frozen=True):
    """One call of `helm template`.

    The arguments are those of `AsHelmArgs` in `types/helmchartargs.go` of sigs.k8s.io/kustomize/api
    0.21.1.
    """

    release: ChartRequest
    """The chart and its values."""
    include_hooks: bool = True
    """Whether hooks are printed."""
    include_tests: bool = True
    """Whether tests are printed."""


def parse_helm_call(arguments: list[str], scratch: Path) -> HelmTemplateCall:
    """Parse a call of helm. All its paths are below the build directory."""
    command, *rest = arguments
    if command != "template":
        problem = f"kustomize calls `helm {sanitize(command)}`; only `helm template` is supported"
        raise RenderError("render.kustomize.helm", problem, location=Location("."))
    positional, options = _split_options(rest)
    chart = os.path.relpath(positional[-1] if positional else "", scratch)
    files = (os.path.relpath(path, scratch) for path in options.get("-f", ()))
    release = ChartRequest(
        root=str(scratch),
        chart=chart,
        name=_release_name(positional[:-1], options, chart),
        namespace=_last_value(options, "--namespace") or "default",
        layers=(*(ValuesFile(f"/{path}") for path in files), InlineValues()),
        kube_version=_last_value(options, "--kube-version") or DEFAULT_KUBE_VERSION,
        api_versions=tuple(options.get("--api-versions", ())),
        include_crds="--include-crds" in options,
        builds_dependencies=False,
    )
    return HelmTemplateCall(release, "--no-hooks" not in options, "--skip-tests" not in options)


def _split_options(arguments: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the positional arguments, and the values of each option."""
    positional: list[str] = []
    options: dict[str, list[str]] = {}
    remaining = iter(arguments)
    for argument in remaining:
        if argument in VALUE_OPTIONS:
            options.setdefault(argument, []).append(next(remaining, ""))
        elif argument in FLAG_OPTIONS:
            options[argument] = []
        elif argument.startswith("-"):
            problem = f"kustomize calls helm with the unknown option `{sanitize(argument)}`"
            raise RenderError("render.kustomize.helm", problem, location=Location("."))
        else:
            positional.append(argument)
    return positional, options


def _release_name(positional: list[str], options: dict[str, list[str]], chart: str) -> str:
    """Return the name of the release. Helm would generate one by time; this one is constant."""
    pattern = _last_value(options, "--name-template")
    if pattern and (positional or "{{" in pattern):
        problem = "the `nameTemplate` of a chart is not supported"
        hint = "set `releaseName` instead"
        location = Location(chart.partition("/")[2] or ".")
        raise RenderError("render.kustomize.helm", problem, location=location, hint=hint)
    generated = f"{Path(chart).name.partition('.')[0]}-0"
    return pattern or (positional[0] if positional else generated)


def _last_value(options: dict[str, list[str]], name: str) -> str:
    return options.get(name, [""])[-1]
