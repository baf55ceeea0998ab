"""How many Kustomizations are under way at once, and what hangs on that."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.flux.repository import Layers, begins, events
from tests.acceptance.flux.test_sources import controller
from tests.fakes.repositories import deployment, kustomization, setting

NAMES = "abcdef"
FAILING = "behaviours:\n" + "".join(
    f"- {{effect: never-ready, when: {{name: {name}}}}}\n" for name in NAMES[:4]
)


def six(root: Path) -> Layers:
    made = Layers(root)
    for name in NAMES:
        made.put(f"{name}/all.yaml", deployment(name))
        made.unit(name)
    return made


def test_a_worker_is_busy_until_its_unit_is_well(tmp_path: Path) -> None:
    layers = six(tmp_path)

    four = layers.run("simulate", "--engine", "flux,tidegate", "-o", "json")
    layers.more = [controller("--concurrent=2")]
    two = layers.run("simulate", "--engine", "flux", "-o", "json")

    begun = begins(four, "flux")
    firsts = [begun[f"{name}/rest"] for name in NAMES]
    assert firsts[:4] == [0.0] * 4
    assert all(0.0 < one < 30.0 for one in firsts[4:]), firsts
    ours = begins(four, "tidegate")
    assert {ours[f"{name}/rest"] for name in NAMES} == {0.0}
    begun = begins(two)
    firsts = [begun[f"{name}/rest"] for name in NAMES]
    assert [firsts.count(one) for one in sorted(set(firsts))] == [2, 2, 2]


def test_units_that_hang_hold_up_the_others_until_their_time_is_over(tmp_path: Path) -> None:
    layers = six(tmp_path / "repository")
    for name in NAMES[:4]:
        layers.unit(name, timeout="1m", retryInterval="10m")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(FAILING)

    ran = layers.run(
        *("simulate", "--engine", "flux", "-o", "json", "--until", "5m"),
        *("--scenario", str(scenario)),
    )

    begun = begins(ran)
    assert [begun[f"{name}/rest"] for name in NAMES] == [0.0] * 4 + [60.0] * 2
    held = [one for one in events(ran) if one.get("reason") == "Slots"]
    assert "4 of 4 units of `kustomize-controller` are under way" in str(held[0]["sentence"])


def test_a_parent_that_waits_leaves_its_worker_to_its_children(tmp_path: Path) -> None:
    layers = Layers(tmp_path, more=[controller("--concurrent=1")])
    layers.put("parent/child.yaml", kustomization("child", "./child"))
    layers.put("child/all.yaml", setting("one"))
    layers.put("last/all.yaml", setting("last"))
    layers.unit("parent", into="")
    layers.unit("last", after=["parent"])

    ran = layers.run("simulate", "--engine", "flux", "-o", "json", "--until", "10m")

    assert ran.returncode == 0, ran.stderr
    begun = begins(ran)
    assert (begun["child/rest"], begun["last/rest"]) == (0.0, 30.0)
