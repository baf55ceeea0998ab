"""ApplicationSets: `units`, `plan`, `simulate` and `sync` of what they generate, by steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.appset_repository import NAMES, SetRepository
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import Repository, deployment
from tests.support.rolling_appset import URL, Ladder, spans
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import ROOT, tidegate

LADDER = ROOT / "examples" / "ladder"


@pytest.fixture
def ladder(tmp_path: Path) -> Ladder:
    return Ladder(tmp_path)


def synced(ladder: Ladder, *args: str | Path) -> tuple[list[dict[str, object]], int]:
    ran = ladder.run("sync", "--sandbox", "-o", "json", *args)
    return [json.loads(line) for line in ran.stdout.splitlines()], ran.returncode


def test_units_show_the_steps_of_a_ladder() -> None:
    ran = tidegate("units", LADDER, "--offline", "-o", "json")

    document = json.loads(ran.stdout)
    steps = [unit["step"] for unit in document["units"] if unit["set"]]
    assert ran.returncode == 0
    assert len(steps) == 72
    assert steps == sorted(steps)
    others = [unit for unit in document["units"] if unit["set"]]
    assert {other["set"] for other in others} == {"ApplicationSet/argocd/ameide"}
    assert {other["parent"] for other in others} == {"ApplicationSet/argocd/ameide"}
    assert others[0]["location"].startswith(
        "environments/dev/argocd/apps/ameide.yaml:3:1 (generator 0, "
    )


def test_a_limit_is_never_exceeded_and_each_step_waits(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b", "c", "d", "e", most="'50%'")
    ladder.step(3, "f", "g", "h", most=1)
    ladder.step(4, "i", "j", "k", "l", most="'100%'")

    events, code = synced(ladder)

    times = spans(events)
    assert code == 0
    for early, later in ("abcdefgh", "ijkl"), ("abcde", "fgh"), ("a", "bcde"):
        assert max(times[item][1] for item in early) <= min(times[item][0] for item in later)
    for names, most in ("bcde", 2), ("fgh", 1), ("ijkl", 4):
        busy = [
            sum(times[other][0] <= times[name][0] < times[other][1] for other in names)
            for name in names
        ]
        assert max(busy) <= most


def test_a_step_with_no_slots_holds_until_it_is_approved(
    wording: RecordedWording, ladder: Ladder
) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b", most=0)
    ladder.step(3, "c")

    events, code = synced(ladder, "--timeout", "60s")

    assert code != 0
    assert set(spans(events)) == {"a"}
    held = [str(event["message"]) for event in events if event.get("reason") == "Approval"]
    wording(held)


@pytest.mark.parametrize("args", [("sync", "--sandbox"), ("simulate", "--engine", "argocd")])
def test_a_unit_can_be_approved_before_the_rollout_starts(
    ladder: Ladder, args: tuple[str, ...]
) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b", most=0)
    ladder.step(3, "c")

    ran = ladder.run(*args, "-o", "json", "--approve", "Application/argocd/b")

    times = spans([json.loads(line) for line in ran.stdout.splitlines()])
    assert ran.returncode == 0, ran.stderr
    assert times["a"][1] <= times["b"][0] < times["b"][1] <= times["c"][0]


def test_a_hold_is_shown_with_the_command_that_ends_it(
    wording: RecordedWording, ladder: Ladder
) -> None:
    ladder.step(1, "b", most="'0%'")

    ran = ladder.run("sync", "--sandbox", "--timeout", "60s")

    wording(
        line for line in ran.stdout.splitlines() if "`ApplicationSet/argocd/steps step 1`" in line
    )
    assert "`tidegate approve --unit Application/argocd/b`" in ran.stdout


def test_a_unit_that_fails_stops_all_later_steps(ladder: Ladder, tmp_path: Path) -> None:
    ladder.step(1, "a", "b")
    ladder.step(2, "c")
    ladder.step(3, "d")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("behaviours:\n- effect: never-ready\n  when: {name: b}\n")

    events, code = synced(ladder, "--scenario", scenario, "--timeout", "40m")

    assert code != 0
    assert set(spans(events)) == {"a", "b"}


@pytest.mark.parametrize("engine", ["argocd", "tidegate"])
def test_a_unit_that_cannot_be_rendered_stops_all_later_steps(ladder: Ladder, engine: str) -> None:
    ladder.step(1, "a", "b")
    ladder.step(2, "c")
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b\n"
    (ladder.folder / "apps" / "b" / "web.yaml").write_text(broken)

    assert set(ladder.play(engine)) == {"a"}


def test_many_units_of_two_steps_are_tied_by_a_joint(ladder: Ladder) -> None:
    ladder.step(1, *(f"a{number}" for number in range(9)))
    ladder.step(2, *(f"b{number}" for number in range(9)))

    events, code = synced(ladder)

    times = spans(events)
    early = max(times[f"a{number}"][1] for number in range(9))
    assert code == 0
    assert early <= min(times[f"b{number}"][0] for number in range(9))


def test_progressive_syncs_that_are_off_order_nothing_for_argo_cd(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    switch = "applicationsetcontroller.enable.progressive.syncs"
    (ladder.folder / "tidegate.yaml").write_text(f"settings: {{{switch}: false}}\n")

    theirs, ours = ladder.play("argocd"), ladder.play("tidegate")
    ran = ladder.run("units")

    assert theirs["a"][0] == theirs["b"][0]
    assert ours["b"][0] >= ours["a"][1]
    assert any(
        "warning[appset.progressive]" in line and "`ApplicationSet/argocd/steps`" in line
        for line in ran.stderr.splitlines()
    )


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("- list:", "- lists:", "error[appset.generator]"),
        ("{name: b, ", "{name: a, ", "error[appset.duplicate]"),
        (
            "generators:\n    - list",
            "goTemplate: true\n  generators:\n    - list",
            "error[appset.template]",
        ),
        (", maxUpdate: 1", ", maxUpdate: abc", "error[appset.steps]"),
        ("values: ['2']", "values: ['9']", "warning[appset.steps]"),
        ("project: default", "projects: default", "error[schema.refused]"),
        ("name: a, ", "name: No_Name, ", "error[appset.name]"),
        ("elements: [", "elements: [], old: [", "warning[appset.no-results]"),
    ],
    ids=[
        *("unknown generator", "duplicate name", "unknown function", "maxUpdate", "empty step"),
        *("unknown field", "invalid name", "no results"),
    ],
)
def test_an_error_of_an_appset_is_reported_with_its_location(
    wording: RecordedWording, ladder: Ladder, old: str, new: str, code: str
) -> None:
    ladder.step(1, "a", most=1)
    ladder.step(2, "b")
    file = ladder.write() / "set.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))

    ran = tidegate("units", ladder.folder, "--offline")

    assert code in ran.stderr
    wording(line for line in ran.stderr.splitlines() if line.startswith(("error[", "warning[")))
    assert "at set.yaml:" in ran.stderr


def test_an_application_that_is_written_and_generated_is_reported_with_both_locations(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a", "b")
    folder = ladder.write()
    spec = "project: default, source: {repoURL: x, path: apps/a}, destination: {name: in-cluster}"
    (folder / "hand.yaml").write_text(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
        f"metadata: {{name: a, namespace: argocd}}\nspec: {{{spec}}}\n"
    )

    ran = tidegate("units", folder, "--offline")

    assert ran.returncode == 3
    assert any(
        "error[units.duplicate]" in line
        and "`Application/argocd/a`" in line
        and "`ApplicationSet/argocd/steps`" in line
        for line in ran.stderr.splitlines()
    )
    assert "at hand.yaml:1:1" in ran.stderr
    assert "set.yaml:1:1 (generator 0, 1: name=a" in ran.stderr


def test_a_mistake_of_a_template_of_many_applications_is_reported_once(
    wording: RecordedWording, ladder: Ladder
) -> None:
    ladder.step(1, "a", "b", "c")
    file = ladder.write() / "set.yaml"
    patch = "  templatePatch: |\n    spec: {revisionHistoryLimit: three}\n"
    file.write_text(file.read_text().rstrip("\n") + f"\n{patch}")

    ran = tidegate("units", ladder.folder, "--offline")

    assert ran.returncode == 3
    lines = ran.stderr.splitlines()
    assert (
        sum(
            "error[schema.refused]" in line and "`spec.revisionHistoryLimit`" in line
            for line in lines
        )
        == 1
    )
    assert "at set.yaml:15:5 (spec.template.spec.revisionHistoryLimit)" in ran.stderr
    wording(line for line in lines if "github.com/argoproj/argo-cd" in line)


async def test_a_change_of_one_descriptor_renders_what_it_concerns_alone(tmp_path: Path) -> None:
    made = SetRepository(Repository(tmp_path / "platform"), rolls=False)
    made.write()
    for name in NAMES:
        overlay = f"apps/{name}/objects/kustomization.yaml"
        (tmp_path / "platform" / overlay).write_text("resources: [web.yaml]\n")
    command, args = Tidegate(tmp_path), ("units", tmp_path / "platform", "--objects", "--offline")

    first, second = await command.run(*args), await command.run(*args)
    made.repository.put("apps/b2/objects/web.yaml", deployment("b2", to="2"))
    made.describe("b2", "3")
    third = await command.run(*args)

    assert (first.code, third.code) == (0, 0), third.stderr
    assert first.started - second.started >= len(NAMES)
    assert third.started - second.started == 1


def test_a_missing_parameter_is_reported_where_that_is_an_error(ladder: Ladder) -> None:
    ladder.step(1, "a")
    file = ladder.write() / "set.yaml"
    text = file.read_text().replace("{{name}}", "{{ .nobody }}").replace("{{step}}", "{{ .step }}")
    go = "spec:\n  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n"
    file.write_text(text.replace("spec:\n", go, 1))

    ran = tidegate("units", ladder.folder, "--offline")

    assert ran.returncode == 3
    assert "error[appset.template]" in ran.stderr
    assert "nobody" in ran.stderr
    assert "at set.yaml:16:16 (spec.template.metadata.name)" in ran.stderr


def test_a_glob_that_matches_nothing_is_reported(ladder: Ladder) -> None:
    ladder.step(1, "a")
    file = ladder.write() / "set.yaml"
    git = f'git: {{repoURL: "{URL}", directories: [{{path: "nowhere/*"}}]}}\n    - list'
    file.write_text(file.read_text().replace("list", git, 1))

    ran = tidegate("units", ladder.folder, "--offline")

    assert "note[appset.no-results]" in ran.stderr
    assert "at set.yaml:6:64 (spec.generators[0].git.directories)" in ran.stderr


def test_clusters_of_a_running_argo_cd_are_found_in_its_namespace(
    ladder: Ladder, tmp_path: Path
) -> None:
    ladder.step(1, "a")
    file = ladder.write() / "set.yaml"
    text = file.read_text().replace("list: {", "clusters: {values: {name: a, step: '1'}, old: {", 1)
    text = text.replace("]}\n", "]}}\n", 1).replace(
        "{{name}}", "{{values.name}}-{{nameNormalized}}"
    )
    text = text.replace("apps/{{values.name}}-{{nameNormalized}}", "apps/{{values.name}}")
    text = text.replace("name: in-cluster", 'name: "{{name}}"')
    file.write_text(text.replace("{{step}}", "{{values.step}}"))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "east",
            "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {"name": "East", "server": "https://east.example", "config": "{}"},
    }
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(json.dumps({"given": {"objects": [place, secret]}}))
    args = ("simulate", ladder.folder, "--offline", "-o", "json")

    without, ran = tidegate(*args), tidegate(*args, "--scenario", scenario)

    names = set(spans([json.loads(line) for line in ran.stdout.splitlines()]))
    assert names == {"a-east", "a-in-cluster"}, ran.stderr
    noted, silent = (
        {(item["code"], item["severity"]) for item in map(json.loads, result.stderr.splitlines())}
        for result in (without, ran)
    )
    assert ("appset.clusters", "note") in noted
    assert ("appset.clusters", "note") not in silent


def test_the_results_of_remote_generators_can_be_given_in_a_file(
    ladder: Ladder, tmp_path: Path
) -> None:
    ladder.step(1, "a")
    file = ladder.write() / "set.yaml"
    text = file.read_text()
    file.write_text(text.replace("- list: {", "- plugin: {old: {").replace("]}\n", "]}}\n", 1))
    data = tmp_path / "found.yml"
    data.write_text("sets:\n  steps:\n    plugin:\n    - {name: a, step: '1'}\n")

    without = tidegate("units", ladder.folder, "--offline")
    ran = tidegate("units", ladder.folder, "--offline", "--generator-data", data)

    assert any(
        "error[appset.unknown]" in line and "`plugin`" in line
        for line in without.stderr.splitlines()
    )
    assert "Application/argocd/a" in ran.stdout, ran.stderr
