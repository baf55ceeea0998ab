"""Values that were encrypted are not shown as a difference, whatever their kind."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.support.deletions import SETTINGS, deploy
from tests.support.sessions import a_session
from tests.support.sops_program import AgeKey, encrypt
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.inspection.diff import preview
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.change import MASK, DiffAction
from tidegate.render.sops import Keys
from tidegate.workspace.request import unit_for_path

CONFIG = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: {0}\n  motto: {0}\n"
)


async def test_a_changed_decrypted_field_is_shown_without_its_value(tmp_path: Path) -> None:
    key, world, file = (
        AgeKey.generate(),
        build_sandbox(SimulationConfig()),
        tmp_path / "unit" / "web.yaml",
    )
    file.parent.mkdir()
    file.write_text(CONFIG.format("blue"))
    unit = unit_for_path(str(file.parent), name="shop")
    await deploy(world, unit)
    sealed = encrypt(file, CONFIG.format("kea"), key, "--encrypted-regex", "^motto$")
    file.write_bytes(sealed)
    session = a_session(world)
    keys = Keys.from_environment({"SOPS_AGE_KEY": key.identity})
    session.render_settings = replace(session.render_settings, keys=keys)

    result = await preview([await make_unit_tree(unit, session)], session)

    difference = result.differences[ClusterRef("", Ref(SETTINGS, "default", "web"))]
    assert difference.action is DiffAction.CHANGE
    assert {field.path: (field.before, field.after) for field in difference.fields} == {
        "data.colour": ("blue", "kea"),
        "data.motto": (MASK, MASK),
    }
