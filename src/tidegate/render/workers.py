"""Engines in worker processes, which are kept warm and can be killed: Helm's, and Jsonnet's.

    async with engine_workers("tidegate.render.jsonnet.worker", environment, ...) as workers:
        answer = await workers.ask(...)

What an engine refuses comes back as the parts of an error.
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
"""A proxy that is not there: whatever still wants to go out does not get far."""
LIMITS = Limits(time=Ms(30 * SECOND), memory=1024 * MIB, output=32 * MIB)


class WorkerError(msgspec.Struct, frozen=True, tag="refused", gc=False):
    """An engine's other answer. `absent`: the charts that it needs and does not have. `unseen`:
    what it asks a cluster for, and nobody has told it.
    """

    code: str
    problem: str
    where: Location | None = None
    hint: str = ""
    absent: tuple[ChartDependency, ...] = ()
    unseen: tuple[str, ...] = ()

    def error(self) -> RenderError:
        return RenderError(self.code, self.problem, location=self.where, hint=self.hint)


@asynccontextmanager
async def open_workers(
    module: str, environment: Mapping[str, str], *, count: int, limits: Limits
) -> AsyncIterator[Workers]:
    """Workers that run a module. They start when they are needed and end with the block."""
    with scratch_directory() as scratch:
        own = {
            "TMPDIR": str(scratch),  # what a killed worker leaves is removed with it
            "GOMAXPROCS": "1",  # there are as many workers as there is work for
            "GOTRACEBACK": "none",
        }
        argv = (sys.executable, "-I", "-X", "utf8", "-m", module)
        command = Command(argv=argv, env={**own, **environment}, cwd=scratch)
        async with Workers(command, count=count, limits=limits) as workers:
            yield workers
