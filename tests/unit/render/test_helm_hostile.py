"""Hostile charts: one error each, within limits, and the next render works."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.helm_charts import a_release, names_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.process import MIB, Limits
from tidegate.external.worker import Workers
from tidegate.model.times import Ms
from tidegate.model.units.chart_request import ChartRequest, Parameter, ValuesFile
from tidegate.render.helm import helm_workers, render

TIGHT = Limits(time=Ms(2_000), memory=512 * MIB, output=MIB)


async def refused(release: ChartRequest, workers: Workers) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await render(release, workers)
    return caught.value


@pytest.mark.parametrize(
    ("chart", "code"), [("endless", "render.helm.timeout"), ("greedy", "render.helm.memory")]
)
async def test_a_chart_that_takes_too_much_is_stopped_and_the_next_works(
    chart: str, code: str
) -> None:
    async with helm_workers(count=1, limits=TIGHT) as workers:
        error = await refused(a_release(chart), workers)

        assert error.code == code
        assert error.location is not None
        assert error.location.name == chart
        assert names_of(await render(a_release("queue"), workers)) == ["ConfigMap shop-queue"]


async def test_a_chart_with_too_much_output_is_rejected(tmp_path: Path) -> None:
    write_chart(tmp_path / "web", template='a: {{ repeat 2000000 "x" }}')

    async with helm_workers(count=1, limits=TIGHT) as workers:
        error = await refused(a_release("web", root=tmp_path), workers)

    assert error.code == "render.helm.size"


async def test_endless_recursion_is_an_error_of_the_template(tmp_path: Path) -> None:
    loop = '{{ define "loop" }}{{ include "loop" . }}{{ end }}{{ include "loop" . }}'
    write_chart(tmp_path / "web", template=loop)

    async with helm_workers(count=1) as workers:
        error = await refused(a_release("web", root=tmp_path), workers)

    assert error.code == "render.helm.template"


async def test_a_crash_of_the_native_library_is_one_error_for_one_chart() -> None:
    async with helm_workers(count=2) as workers:
        await render(a_release("queue"), workers)
        worker = _worker_of(workers)
        async with asyncio.TaskGroup() as group:
            crashing = group.create_task(refused(a_release("endless"), workers), name="crash")
            await asyncio.to_thread(os.kill, worker, signal.SIGSEGV)
            other = group.create_task(render(a_release("queue"), workers), name="other")

    assert crashing.result().code == "render.helm.crash"
    assert "SIG" in crashing.result().problem
    assert names_of(other.result()) == ["ConfigMap shop-queue"]


def _worker_of(workers: Workers) -> int:
    """The process that waits for work: the only child of its warden."""
    transport = workers._idle[0]._transport
    assert transport is not None
    return _child_of(transport.get_pid())


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd"])
async def test_a_values_file_that_links_to_the_system_is_refused(
    tmp_path: Path, target: str
) -> None:
    write_chart(tmp_path / "web")
    (tmp_path / "evil.yaml").symlink_to(target)

    async with helm_workers(count=1, limits=TIGHT) as workers:
        error = await refused(a_release("web", ValuesFile("/evil.yaml"), root=tmp_path), workers)

    assert error.code == "render.helm.outside"


async def test_a_values_file_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    write_chart(tmp_path / "web")
    os.mkfifo(tmp_path / "pipe.yaml")

    async with helm_workers(count=1, limits=TIGHT) as workers:
        error = await refused(a_release("web", ValuesFile("/pipe.yaml"), root=tmp_path), workers)

    assert error.code == "render.helm.irregular"


async def test_a_template_that_links_out_of_the_source_is_refused(tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "source" / "web")
    (tmp_path / "secret.yaml").write_text("password: hunter2\n")
    (chart / "templates" / "stolen.yaml").symlink_to("../../../secret.yaml")

    async with helm_workers(count=1, limits=TIGHT) as workers:
        error = await refused(a_release("web", root=tmp_path / "source"), workers)

    assert error.code == "render.helm.outside"
    assert "hunter2" not in str(error)


async def test_many_renders_do_not_grow_a_worker() -> None:
    async with helm_workers(count=1) as workers:
        for _ in range(250):
            await render(a_release("umbrella"), workers)
        worker = _worker_of(workers)
        before = _memory_of(worker)
        for _ in range(500):
            await render(a_release("umbrella"), workers)

        assert _worker_of(workers) == worker
        assert _memory_of(worker) - before < 16 * MIB


def _memory_of(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_files_of_a_killed_worker_are_removed() -> None:
    async with helm_workers(count=1, limits=TIGHT) as workers:
        await render(a_release("neighbour"), workers)
        await refused(a_release("endless", Parameter("a", "1")), workers)
        scratch = workers._command.env["TMPDIR"]
        left = os.listdir(scratch)  # noqa: PTH208

    assert len(left) == 1, "the copy of the chart that never ended"
    with pytest.raises(FileNotFoundError):
        os.stat(scratch)  # noqa: PTH116
