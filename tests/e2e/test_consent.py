"""Before a real cluster is changed, somebody is asked: what is shown, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.support.builders import make_object
from tests.support.cluster_client import require_live
from tests.support.on_terminal import on_terminal
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.messages import NotFound

pytestmark = pytest.mark.kube


async def test_who_says_no_has_changed_nothing_and_who_says_yes_has(
    site: Site, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", web=config_map("web"))
    login = site.kubeconfig()
    async with site.client(login) as client:
        place = ("--kubeconfig", str(login), "--namespace", client.namespace)
        web = Ref(Kind("", "v1", "ConfigMap"), client.namespace, "web")

        def answer(verb: str, question: str, keys: str) -> tuple[int, list[str]]:
            with on_terminal("tidegate", verb, str(unit), *place, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: question in vt.text)
                program.type(keys)
                return program.finish(), program.vt.history + program.vt.screen

        for verb, question in (("sync", "Roll out?"), ("delete", "Delete 1 object?")):
            before = await client.get(web)
            code, shown = answer(verb, question, "n\n")
            assert code == 130, shown
            assert shown[0].startswith("target: context ")
            assert "nothing was changed" in "\n".join(shown)
            assert isinstance(await client.get(web), NotFound) == isinstance(before, NotFound)

            code, shown = answer(verb, question, "y\n")
            assert code == 0, shown
            assert isinstance(await client.get(web), NotFound) == (verb == "delete")


async def test_what_goes_along_is_named_before_the_question(site: Site, tmp_path: Path) -> None:
    login = site.kubeconfig()
    async with site.client(login) as client:
        place = f"{client.namespace}-place"
        space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {place}}}\n"
        unit = write_unit(tmp_path / "unit", web=config_map("web"), place=space)
        where = ("--kubeconfig", str(login), "--namespace", client.namespace)
        brought = await Tidegate(tmp_path / "home").run("sync", unit, "--yes", *where)
        theirs = make_object("v1 ConfigMap", "theirs", namespace=place)
        require_live(await client.apply(theirs, manager="x"))

        def asked(verb: str, question: str, *more: str) -> str:
            words = (verb, str(unit), *where, "--yes-delete-contents", *more)
            with on_terminal("tidegate", *words, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: question in vt.text)
                program.type("n\n")
                assert program.finish() == 130
                return " ".join("".join(program.vt.history + program.vt.screen).split())

        deleting = asked("delete", "Delete 2 objects?")
        (unit / "place.yaml").unlink()
        pruning = asked("sync", "Roll out?", "--prune")

    assert brought.code == 0, brought
    for shown in (deleting, pruning):
        assert "takes an object of others along" in shown
        assert f"{place}/theirs" in shown
