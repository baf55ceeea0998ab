"""One plan under three engines, side by side, as `tests/data/timelines` keeps it.

A wave of Argo CD takes two seconds at least, its last wave is not waited for, and a child without
a health check passes at once. Flux looks at health every five seconds and at dependencies every
thirty. `--golden` rewrites the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.builders import annotate, make_deployment, make_object, make_plan_from, make_unit
from tests.support.rollout_stages import NOTHING, Stage
from tidegate.health.judge import ARGO, KSTATUS
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.units.policy import Policy
from tidegate.model.units.semantics import ARGOCD, FLUX, TIDEGATE, Semantics
from tidegate.sandbox.world import START

KEPT = Path(__file__).parents[2] / "data" / "timelines" / "engines.txt"
ENGINES = (ARGOCD, FLUX, TIDEGATE)
SHOWN = (
    EventType.STEP_APPLYING,
    EventType.GATE_UNPROVEN,
    EventType.STEP_PASSED,
    EventType.ROLLOUT_FINISHED,
)


def test_the_engines_differ_as_they_are_kept(pytestconfig: pytest.Config) -> None:
    events = {rules.name: _play(rules) for rules in ENGINES}

    shown = _table(events)

    if pytestconfig.getoption("--golden"):
        KEPT.write_text(shown)
    assert shown == KEPT.read_text()


def _play(rules: Semantics) -> list[Event]:
    stage = Stage(NOTHING)
    stage.realm.preload([a_definition_of_applications()])
    return stage.roll_out(_plan(rules)).run.events


def _plan(rules: Semantics) -> Plan:
    policy = Policy(semantics=rules, rules=KSTATUS if rules is FLUX else ARGO)
    child = make_object("argoproj.io/v1alpha1 Application", "child", spec={"project": "default"})
    shop = make_unit(
        annotate(make_deployment("db"), after="900"),
        child,
        annotate(make_deployment("web"), after="900"),
        name="shop",
        policy=policy,
    )
    mail = annotate(make_deployment("mail"), after="900")
    return make_plan_from(shop, make_unit(mail, name="mail", after=("shop",), policy=policy))


def a_definition_of_applications() -> JsonObject:
    schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names: Json = {"kind": "Application", "plural": "applications", "singular": "application"}
    return make_object(
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        "applications.argoproj.io",
        namespace="",
        spec={
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    )


def _times(events: list[Event]) -> dict[tuple[str, str], int]:
    return {
        (event.step, event.type.value): event.at - START for event in events if event.type in SHOWN
    }


def _table(events: dict[str, list[Event]]) -> str:
    """A row for each event, with its time by each engine."""
    columns = {name: _times(item) for name, item in events.items()}
    rows = dict.fromkeys(row for times in reversed(columns.values()) for row in times)
    lines = [f"{'':30}" + "".join(f"{name:>12}" for name in columns)]
    for step, result in sorted(rows, key=lambda row: columns["tidegate"].get(row, 0)):
        moments = (times.get((step, result)) for times in columns.values())
        shown = "".join(f"{_seconds(at):>12}" for at in moments)
        lines.append(f"{step:13}{result:17}{shown}")
    return "\n".join(lines) + "\n"


def _seconds(at: int | None) -> str:
    return "-" if at is None else f"{at / 1_000:.3f} s"
