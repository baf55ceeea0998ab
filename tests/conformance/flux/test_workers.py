"""How many Kustomizations are under way at once, and what hangs on that."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.flux.stage import case
from tests.conformance.flux.test_sources import controller
from tests.support.flux_repository import UNIT, Layers, begins, events
from tests.support.repositories import deployment, kustomization, setting
from tidegate.model.k8s.objects import Json

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


def test_a_worker_is_busy_until_its_unit_is_healthy(tmp_path: Path) -> None:
    layers = six(tmp_path)

    four = layers.run("simulate", "--engine", "flux,tidegate", "-o", "json")
    layers.more = [controller("--concurrent=2")]
    two = layers.run("simulate", "--engine", "flux", "-o", "json")

    begun = begins(four, "flux")
    firsts = [begun[f"{name}/rest"] for name in NAMES]
    assert firsts[:4] == [0.0] * 4
    assert all(0.0 < first < 30.0 for first in firsts[4:]), firsts
    ours = begins(four, "tidegate")
    assert {ours[f"{name}/rest"] for name in NAMES} == {0.0}
    begun = begins(two)
    firsts = [begun[f"{name}/rest"] for name in NAMES]
    assert [firsts.count(first) for first in sorted(set(firsts))] == [2, 2, 2]


def test_units_that_hang_delay_the_others_until_their_timeout(tmp_path: Path) -> None:
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
    held = [event for event in events(ran) if event.get("reason") == "ConcurrencyLimit"]
    assert "`kustomize-controller`" in str(held[0]["message"])
    assert str(held[0]["message"]).split().count("4") == 2


def parents(root: Path, *, workers: int, **spec: Json) -> Layers:
    """A parent that waits for its child, and a unit after the parent."""
    made = Layers(root, more=[controller(f"--concurrent={workers}")])
    made.put("parent/child.yaml", kustomization("child", "./child"))
    made.put("parent/own.yaml", setting("own", "shop"))
    made.put("child/all.yaml", setting("one"))
    made.put("last/all.yaml", setting("last"))
    made.unit("parent", into="", **spec)
    made.unit("last", after=["parent"])
    return made


@case(14)
def test_a_waiting_parent_occupies_a_worker_that_its_children_need(tmp_path: Path) -> None:
    layers = parents(tmp_path, workers=1, timeout="2m", retryInterval="1m")

    ran = layers.run("simulate", "--engine", "flux", "-o", "json", "--until", "10m")
    layers.more = [controller("--concurrent=2")]
    two = layers.run("simulate", "--engine", "flux", "-o", "json", "--until", "10m")

    assert (ran.returncode, two.returncode) == (0, 0), ran.stderr + two.stderr
    begun = begins(ran)
    assert begun["child/rest"] == 120.0, "when the parent's time is over"
    assert begun["parent/rest"] == 180.0, "it is tried again"
    assert begun["last/rest"] == 210.0
    messages = [event for event in events(ran) if event["event"] == "retry.scheduled"]
    assert [(item["step"], item["reason"]) for item in messages] == [
        (f"{UNIT}parent/rest", "Deadline")
    ]
    assert f"`{UNIT}child`" in str(messages[0]["message"])
    begun = begins(two)
    assert (begun["child/rest"], begun["last/rest"]) == (0.0, 30.0)
    assert not [event for event in events(two) if event["event"] == "retry.scheduled"]


def test_children_continue_while_their_parent_waits_for_a_retry(tmp_path: Path) -> None:
    layers = parents(tmp_path / "repository", workers=4, timeout="1m", retryInterval="5m")
    layers.put("child/all.yaml", deployment("slow"))
    layers.put("parent/more.yaml", kustomization("second", "./second", after=("child",)))
    layers.put("second/all.yaml", setting("two"))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("behaviours:\n- {effect: unpullable, for: 90s, when: {name: slow}}\n")

    ran = layers.run(
        *("simulate", "--engine", "flux", "-o", "json", "--until", "20m"),
        *("--scenario", str(scenario)),
    )

    assert ran.returncode == 0, ran.stderr
    begun = begins(ran)
    assert begun["parent/rest"] == 360.0
    assert 60.0 < begun["second/rest"] < 360.0
