"""`app wait`, `--watch`, edits that are refused, and names that a shell completes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import chdir
from functools import partial
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    application,
    git_repository,
    job,
    kustomization,
    setting,
)
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import ROOT, tidegate, tidegate_in
from tidegate.cli.completion import complete_names
from tidegate.cli.main import cli
from tidegate.clusters.sandboxes import CONTEXT, KUBECONFIG

PLATFORM = ROOT / "examples" / "platform"
# A shell that starts us in the background has SIGINT ignored, and children inherit that.
INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("tidegate", run_name="__main__", alter_sys=True)
"""


def one_app(root: Path) -> Repository:
    made = Repository(root)
    made.put("apps/red.yaml", application("red", "red", into="default"))
    made.put("red/all.yaml", setting("web"))
    return made


async def test_wait_shows_changes_and_ends_when_all_is_healthy(tmp_path: Path) -> None:
    made = one_app(tmp_path / "platform")
    async with served_cluster(tmp_path) as cluster:
        timed_out = await cluster.run(
            "argocd", "app", "wait", "red", "--timeout", "1s", "-C", made.root
        )
        async with cluster.typing(
            "argocd", "app", "wait", "red", "--sync", "-C", made.root
        ) as typed:
            await cluster.has_printed(typed, "argocd/red  OutOfSync  Missing")
            synced = await cluster.roll_out(
                "argocd", "app", "sync", "red", "--yes", "-C", made.root
            )
            ran = await typed.ran
        at_once = await cluster.run(
            "argocd", "app", "wait", "--all", "--timeout", "1s", "-C", made.root
        )

    assert timed_out.code == 8
    assert 'timed out (1s) waiting for app "red" match desired state' in timed_out.stderr
    assert synced.code == 0, synced.stdout + synced.stderr
    assert ran.code == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("argocd/red  Synced  ")
    assert at_once.code == 0, at_once.stdout + at_once.stderr


@pytest.mark.parametrize("served", [True, False])
def test_wait_supports_a_deletion_and_a_single_resource(
    wording: RecordedWording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: bool,  # noqa: FBT001
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, served=served, failing=["broken"])
    made = one_app(tmp_path / "platform")
    made.put("red/all.yaml", setting("web"), job("broken", wave=1))
    wait = ("argocd", "app", "wait", "red", "-C", made.root, "--timeout", "5s")
    assert cluster.sync(made.root).code == 4

    whole = cluster.reach(*wait, "--health")
    result = cluster.reach(*wait, "--health", "-o", "json")
    part = cluster.reach(*wait, "--resource", ":ConfigMap:web")
    ill = cluster.reach(*wait, "--resource", "batch:Job:default/broken", "--degraded")
    unknown = cluster.reach(*wait, "--resource", ":ConfigMap:wob")
    there = cluster.reach(*wait, "--delete")
    both = cluster.reach(*wait, "--delete", "--health")
    assert cluster.run("argocd", "app", "delete", "red", "-C", made.root, "--sandbox").code == 0
    gone = cluster.reach(*wait, "--delete")

    assert (whole.code, part.code, ill.code) == (8, 0, 0), part.stderr + ill.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    (failure,) = last["failures"]
    assert (result.code, last["event"], last["outcome"]) == (8, "wait.explained", "timed-out")
    assert (failure["unit"], failure["name"]) == ("Application/argocd/red", "broken")
    assert any(event.startswith("BackoffLimitExceeded: ") for event in failure["events"])
    wording(line for line in whole.stdout.splitlines() if "Job default/broken" in line)
    assert part.stdout == "argocd/red  Synced  Healthy: Resource is always ready\n"
    assert any(
        "error[plan.selection]" in line and "`:ConfigMap:wob`" in line
        for line in unknown.stderr.splitlines()
    )
    assert (there.code, both.code, gone.code) == (8, 2, 0), gone.stdout + gone.stderr


@pytest.mark.parametrize(
    ("args", "before", "after"),
    [
        (("argocd", "app", "list"), " OutOfSync ", " Synced "),
        (
            ("flux", "get", "ks", "blue"),
            " False False ",
            " False True ",
        ),
    ],
    ids=["app list", "get"],
)
async def test_watched_output_is_printed_again_after_a_change(
    tmp_path: Path, args: tuple[str, ...], before: str, after: str
) -> None:
    made = one_app(tmp_path / "platform")
    made.put(
        "clusters/blue.yaml", git_repository(), kustomization("blue", "./blue", into="default")
    )
    made.put("blue/all.yaml", setting("blue"))
    async with served_cluster(tmp_path) as cluster:
        target = ("-C", made.root, "--kubeconfig", tmp_path / KUBECONFIG)
        watching = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", INTERRUPTIBLE, *args, "--watch", *map(str, target)),
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE,
        )
        await read_until(watching, before)
        synced = await cluster.roll_out("sync", made.root, "--yes")
        assert synced.code == 0, synced.stdout + synced.stderr
        await read_until(watching, after)
        watching.send_signal(signal.SIGINT)

        assert await watching.wait() == 130


async def read_until(process: asyncio.subprocess.Process, cells: str) -> None:
    """Read until a row has these cells; fail where the program ends before that."""
    assert process.stdout is not None
    while cells not in " ".join((line := (await process.stdout.readline()).decode()).split()):
        assert line, f"the output ended without `{cells}`"


@pytest.mark.parametrize("verb", ["set", "patch"])
def test_an_edit_is_refused_with_the_file_to_edit(verb: str) -> None:
    ran = tidegate("argocd", "app", verb, "shop", "--parameter", "a=b", "-C", PLATFORM, "--offline")

    assert ran.returncode == 2
    assert any(
        "error[usage.git]" in line and "`Application/argocd/shop`" in line
        for line in ran.stderr.splitlines()
    )
    assert "at argocd/apps/shop.yaml:1:1" in ran.stderr


def test_a_shell_completes_the_names_of_a_repository() -> None:
    request = {"_TIDEGATE_COMPLETE": "bash_complete", "COMP_CWORD": "4"}

    ran = tidegate_in(PLATFORM, COMP_WORDS="tidegate flux reconcile ks m", **request)

    assert (ran.returncode, ran.stdout) == (0, "plain,metrics\n"), ran.stderr


@pytest.mark.parametrize(
    "verb", ["plan", "sync", "lint", "render", "argocd app list -C", "plan -f"]
)
def test_a_shell_completes_paths_by_itself(verb: str) -> None:
    shell = ShellComplete(cli, {}, "tidegate", "_TIDEGATE_COMPLETE")

    (completion,) = shell.get_completions(verb.split(), "ar")

    assert (completion.type, completion.value) == ("file", "ar")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("flux get ", ["kustomizations", "helmreleases", "sources", "gitrepositories", "all"]),
        ("flux get ks m", ["metrics"]),
        ("flux get sources ", ["flux-system"]),
        ("approve --unit s", ["shop"]),
        ("logs --unit d", ["database"]),
        ("logs --unit ks/me", ["ks/metrics"]),
        ("trace dep", ["deployment"]),
        ("trace deploy/", ["deploy/collector", "deploy/shop"]),
        ("jobs rerun ", ["migrate"]),
    ],
)
def test_a_shell_completes_what_each_verb_takes(line: str, expected: list[str]) -> None:
    *args, begun = line.split(" ")
    shell = ShellComplete(cli, {}, "tidegate", "_TIDEGATE_COMPLETE")

    with chdir(PLATFORM):
        completions = shell.get_completions(args, begun)

    assert [item.value for item in completions] == expected


async def test_a_shell_completes_names_of_the_given_context(
    tmp_path: Path,
) -> None:
    made = one_app(tmp_path / "platform")
    async with served_cluster(tmp_path, application("rose", "red")):
        context = click.Context(cli, info_name="tidegate", **cli.context_settings)
        context.params = {"path": str(made.root), "kubeconfig": str(tmp_path / KUBECONFIG)}
        complete = partial(complete_names(("Application",)), context, click.Argument(["called"]))
        here = await asyncio.to_thread(complete, "r")
        context.params["context"] = CONTEXT
        both = await asyncio.to_thread(complete, "r")

    assert (here, both) == (["red"], ["red", "rose"])
