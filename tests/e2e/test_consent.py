"""Before a real cluster is changed, somebody is asked: what is shown, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.fakes.on_terminal import on_terminal
from tests.fakes.tidegate_runs import config_map, write_unit
from tidegate.model.objects import Kind, Ref
from tidegate.world.facts import Missing

pytestmark = pytest.mark.kube


async def test_who_says_no_has_changed_nothing_and_who_says_yes_has(
    site: Site, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", web=config_map("web"))
    login = site.kubeconfig()
    async with site.desk(login) as desk:
        place = ("--kubeconfig", str(login), "--namespace", desk.namespace)
        web = Ref(Kind("", "v1", "ConfigMap"), desk.namespace, "web")

        def answer(verb: str, question: str, keys: str) -> tuple[int, list[str]]:
            with on_terminal("tidegate", verb, str(unit), *place, HOME=str(tmp_path)) as program:
                program.read_until(lambda vt: question in vt.text)
                program.type(keys)
                return program.finish(), program.vt.history + program.vt.screen

        for verb, question in (("sync", "Roll out?"), ("delete", "Delete 1 object?")):
            before = await desk.get(web)
            code, shown = answer(verb, question, "n\n")
            assert code == 130, shown
            assert shown[0].startswith("target: context ")
            assert "nothing was changed" in "\n".join(shown)
            assert isinstance(await desk.get(web), Missing) == isinstance(before, Missing)

            code, shown = answer(verb, question, "y\n")
            assert code == 0, shown
            assert isinstance(await desk.get(web), Missing) == (verb == "delete")
