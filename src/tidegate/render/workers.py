"""Worker processes of render engines (Helm, Jsonnet), which stay warm and can be killed.

async with open_workers("tidegate.render.jsonnet.worker", environment, ...) as workers:
        reply = await workers.request(...)

An engine that rejects a request replies with a `WorkerError`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from tidegate.errors import Location, RenderError
from tidegate.external.process import MIB, Command, Limits
from tidegate.external.worker import Workers
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.chart_request import ChartDependency
from tidegate.render.scratch import scratch_directory

NO_NETWORK = dict.fromkeys(
    ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
)
"""A proxy that does not exist, so that no engine reaches the network."""
LIMITS = Limits(time=Ms(30 * SECOND), memory=1024 * MIB, output=32 * MIB)


class WorkerError(msgspec.Struct, frozen=True, tag="refused", gc=False):
    """Error reply of a worker."""

    code: str
    """Error code."""
    problem: str
    """Message for people."""
    location: Location | None = None
    """Where the error is; None if unknown."""
    hint: str = ""
    """Hint for the user."""
    missing_charts: tuple[ChartDependency, ...] = ()
    """Charts that must be fetched first."""
    missing_lookups: tuple[str, ...] = ()
    """API paths whose objects templates look up and the request does not contain."""

    def to_error(self) -> RenderError:
        """Return the error to raise."""
        return RenderError(self.code, self.problem, location=self.location, hint=self.hint)


@asynccontextmanager
async def open_workers(
    module: str, environment: Mapping[str, str], *, count: int, limits: Limits
) -> AsyncIterator[Workers]:
    """Open workers that run a module. They start on first use and end with the block."""
    with scratch_directory() as scratch:
        defaults = {
            "TMPDIR": str(scratch),  # the files of a killed worker are removed with it
            "GOMAXPROCS": "1",  # each worker runs on one core
            "GOTRACEBACK": "none",
        }
        argv = (sys.executable, "-I", "-X", "utf8", "-m", module)
        command = Command(argv=argv, env={**defaults, **environment}, cwd=scratch)
        async with Workers(command, count=count, limits=limits) as workers:
            yield workers
