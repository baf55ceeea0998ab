"""The confirmation before changes of a real cluster: its text and its effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.support.builders import make_object
from tests.support.cluster_client import require_live
from tests.support.recorded_wording import RecordedWording
from tests.support.terminal_program import on_terminal
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.messages import NotFound

pytestmark = pytest.mark.kube

QUESTION = "[y/N]"
"""How a question on a terminal ends."""


async def test_a_sync_starts_only_after_confirmation(
    site: Site, tmp_path: Path, wording: RecordedWording
) -> None:
    unit = write_unit(tmp_path / "unit", web=config_map("web"))
    login = site.kubeconfig()
    async with site.client(login) as client:
        place = ("--kubeconfig", str(login), "--namespace", client.namespace)
        web = Ref(Kind("", "v1", "ConfigMap"), client.namespace, "web")

        def answer(verb: str, keys: str) -> tuple[int, list[str]]:
            with on_terminal("tidegate", verb, str(unit), *place, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: QUESTION in vt.text)
                program.type(keys)
                return program.finish(), program.vt.history + program.vt.screen

        for verb in ("sync", "delete"):
            before = await client.get(web)
            code, shown = answer(verb, "n\n")
            assert code == 130, shown
            assert shown[0].startswith("target: context ")
            question = max(number for number, line in enumerate(shown) if QUESTION in line)
            wording(line.strip() for line in shown[question:] if line.strip())
            assert isinstance(await client.get(web), NotFound) == isinstance(before, NotFound)

            code, shown = answer(verb, "y\n")
            assert code == 0, shown
            assert isinstance(await client.get(web), NotFound) == (verb == "delete")


async def test_deletions_are_listed_before_the_confirmation(site: Site, tmp_path: Path) -> None:
    login = site.kubeconfig()
    async with site.client(login) as client:
        place = f"{client.namespace}-place"
        space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {place}}}\n"
        unit = write_unit(tmp_path / "unit", web=config_map("web"), place=space)
        target_flags = ("--kubeconfig", str(login), "--namespace", client.namespace)
        created = await Tidegate(tmp_path / "home").run("sync", unit, "--yes", *target_flags)
        theirs = make_object("v1 ConfigMap", "theirs", namespace=place)
        require_live(await client.apply(theirs, manager="x"))

        def shown_before_the_question(verb: str, *more: str) -> str:
            args = (verb, str(unit), *target_flags, "--yes-delete-contents", *more)
            with on_terminal("tidegate", *args, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: QUESTION in vt.text)
                program.type("n\n")
                assert program.finish() == 130
                text = " ".join("".join(program.vt.history + program.vt.screen).split())
                return text.partition(QUESTION)[0]

        deleting = shown_before_the_question("delete")
        (unit / "place.yaml").unlink()
        pruning = shown_before_the_question("sync", "--prune")

    assert created.code == 0, created
    for shown in (deleting, pruning):
        assert "warning[plan.contents]" in shown
        assert f"{place}/theirs" in shown


async def test_objects_of_a_helm_release_are_named_and_counted_before_the_confirmation(
    site: Site, tmp_path: Path
) -> None:
    login = site.kubeconfig()
    async with site.client(login) as client:
        namespace = client.namespace
        unit = write_unit(tmp_path / "unit", web=config_map("web"))
        body = make_object("v1 ConfigMap", "web", namespace=namespace)
        body["metadata"] = {
            "name": "web",
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": "another",
                "meta.helm.sh/release-namespace": namespace,
            },
        }
        require_live(await client.apply(body, manager="helm"))
        target_flags = ("--kubeconfig", str(login), "--namespace", namespace)

        for verb in ("sync", "delete"):
            args = ("tidegate", verb, str(unit), *target_flags)
            with on_terminal(*args, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: QUESTION in vt.text)
                question = program.vt.text.replace("\n", "")  # a terminal wraps long lines
                program.type("y\n")
                assert program.finish() == 0
            assert f"Helm release `{namespace}/another`" in question
            assert "(1 of another owner)" in question
