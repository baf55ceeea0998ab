"""The settings in `argocd-cm` of a repository apply to the units of the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.projects import Ran, written
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    OF_CHILDREN,
    Repository,
    application,
    argo_settings,
    deployment,
    namespace,
    setting,
    three_levels,
)
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind

OF_SETTINGS = """
hs = {status = "Healthy"}
if obj.data.to == "nowhere" then hs = {status = "Degraded", message = "it leads nowhere"} end
return hs
"""
GOLDEN = Path(__file__).parents[1] / "data" / "argo" / "timelines.txt"
CONFIG_MAP = Kind("", "v1", "ConfigMap")
RULE = "resource.customizations.health."


def settings_map(**keys: str) -> JsonObject:
    return argo_settings({**keys})


def one_unit(root: Path, *objects: JsonObject, data: dict[str, str]) -> Repository:
    made = Repository(root)
    made.put("apps/web.yaml", application("web", "web"))
    made.put("argocd/cm.yaml", settings_map(**data))
    made.put("web/all.yaml", namespace("shop"), *objects)
    return made


def json_lines(output: str) -> list[dict[str, Json]]:
    """The events of standard output, or the findings of standard error."""
    return [json.loads(line) for line in output.splitlines()]


def findings(ran: Ran, code: str) -> list[dict[str, Json]]:
    return [finding for finding in json_lines(ran.stderr) if finding["code"] == code]


def begins(ran: Ran) -> dict[str, float]:
    """By step, the second in which it began to write."""
    events = [event for event in json_lines(ran.stdout) if "at" in event]
    first = events[0]["at"]
    assert isinstance(first, int)
    result = {}
    for item in events:
        if item["event"] == "step.applying":
            step, at = item["step"], item["at"]
            assert isinstance(step, str)
            assert isinstance(at, int)
            result[step.rpartition("argocd/")[2]] = round((at - first) / 1000, 1)
    return result


def simulated(repository: Repository, engine: str = "argocd") -> Ran:
    return tidegate("simulate", repository.root, "--engine", engine, "-o", "json")


def test_with_a_health_check_for_application_a_parent_waits_until_its_children_are_healthy(
    wording: RecordedWording, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    bare, ruled = three_levels(tmp_path / "bare"), three_levels(tmp_path / "ruled")
    ruled.put("argocd/cm.yaml", argo_settings(OF_CHILDREN))

    without, with_rule = simulated(bare), simulated(ruled)
    ours = simulated(bare, "tidegate")

    free, held, best = begins(without), begins(with_rule), begins(ours)
    names = ["root/sync/-2", "root/sync/-1", "base/presync/0", "base/sync/0", "base/sync/1"]
    names += ["base/postsync/0", "red/sync/0", "red/sync/1", "blue/sync/0", "blue/sync/1"]
    names += ["root/sync/2"]
    head = f"{'step':16} argocd  ruled  tidegate"
    rows = [f"{name:16} {free[name]:6} {held[name]:6} {best[name]:9}" for name in names]
    timeline = "\n".join([head, *rows, ""])
    if pytestconfig.getoption("--golden"):
        GOLDEN.write_text(timeline)
    assert timeline == GOLDEN.read_text()
    assert free["red/sync/0"] < free["base/postsync/0"], "the missing gate"
    for before, after in (
        ("base/postsync/0", "red/sync/0"),
        ("red/sync/1", "blue/sync/0"),
        ("blue/sync/1", "root/sync/2"),
    ):
        assert held[before] <= held[after], (before, after)
    (rules,) = findings(with_rule, "argo.health-rules")
    wording([str(rules["message"]), str(rules["why"])])
    assert "argo.health-rules" not in without.stderr


@pytest.mark.parametrize("form", ["new", "old", "pattern", "chart"])
def test_a_script_of_the_repository_fails_a_wave_in_every_form(tmp_path: Path, form: str) -> None:
    old = f"  health.lua: |\n{_indented(OF_SETTINGS)}"
    data = {
        "new": {f"{RULE}ConfigMap": OF_SETTINGS},
        "old": {"resource.customizations": f"ConfigMap:\n{old}"},
        "pattern": {"resource.customizations": f'"Config*":\n{old}'},
        "chart": {},
    }[form]
    objects = (setting("first", to="nowhere"), setting("second", wave=1))
    repository = one_unit(tmp_path, *objects, data=data)
    if form == "chart":
        repository.drop("argocd/cm.yaml")
        put_argo_chart(repository, {f"{RULE}ConfigMap": OF_SETTINGS})

    failed = simulated(repository)
    repository.put("web/all.yaml", namespace("shop"), setting("first"), setting("second", wave=1))
    fixed = simulated(repository)

    assert failed.returncode == 4, failed.stderr
    assert "it leads nowhere" in failed.stdout
    assert "second" not in written(failed)
    assert fixed.returncode == 0, fixed.stderr
    assert {"first", "second"} <= written(fixed)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip().splitlines())


def put_argo_chart(repository: Repository, data: dict[str, str]) -> None:
    """Argo CD, deployed with its chart in the repository."""
    values: Json = {"configs": {"cm": {**data}}}
    source: Json = {
        "repoURL": "https://git.example.com/shop/platform.git",
        "path": "charts/argo-cd",
        "helm": {"valuesObject": values},
    }
    argo = application("argo", "charts/argo-cd", into="argocd")
    spec = argo["spec"]
    assert isinstance(spec, dict)
    repository.put("apps/argo.yaml", {**argo, "spec": {**spec, "source": source}})
    chart = repository.root / "charts" / "argo-cd"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: argo-cd\nversion: 1.0.0\n")
    place = "{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}\n"
    (chart / "templates" / "all.yaml").write_text(place)


def test_a_script_with_a_mistake_is_an_error_at_its_file(tmp_path: Path) -> None:
    wrong = {f"{RULE}a_b_c": OF_SETTINGS}
    repository = one_unit(tmp_path, setting("web"), data=wrong)

    ran = tidegate("sync", repository.root, "--sandbox")

    assert ran.returncode == 3
    assert "error[argo.health-rules]" in ran.stderr
    assert "argocd/cm.yaml" in ran.stderr


def test_health_rules_of_the_command_line_override_those_of_the_repository(tmp_path: Path) -> None:
    data = {f"{RULE}ConfigMap": OF_SETTINGS}
    repository = one_unit(
        tmp_path / "repo", setting("first", to="nowhere"), setting("second", wave=1), data=data
    )
    rules_file = tmp_path / "rules.yaml"
    rules_file.write_text(f"{RULE}ConfigMap: 'return {{status = \"Healthy\"}}'\n")

    ran = tidegate("simulate", repository.root, "--health-rules", rules_file)

    assert ran.returncode == 0, ran.stdout


def test_kinds_that_argo_cd_excludes_are_left_out_and_reported(
    wording: RecordedWording, tmp_path: Path
) -> None:
    exclusions = "- apiGroups: [apps]\n  kinds: [Deployment]\n"
    repository = one_unit(
        tmp_path, setting("web"), deployment("web"), data={"resource.exclusions": exclusions}
    )

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    (excluded,) = findings(ran, "argo.excluded")
    wording(str(excluded["message"]))
    assert written(ran) == {"shop", "web"}
    assert '"Deployment"' not in ran.stdout


def test_with_resource_inclusions_other_kinds_are_ignored(
    wording: RecordedWording, tmp_path: Path
) -> None:
    inclusions = '- apiGroups: [""]\n  kinds: ["*"]\n'
    repository = one_unit(
        tmp_path, setting("web"), deployment("web"), data={"resource.inclusions": inclusions}
    )

    ran = tidegate("sync", repository.root, "--sandbox", "-o", "json")

    (excluded,) = findings(ran, "argo.excluded")
    wording(str(excluded["message"]))
    assert '"Deployment"' not in ran.stdout


def test_objects_have_the_instance_label_of_the_settings(tmp_path: Path) -> None:
    data = {
        "application.resourceTrackingMethod": "annotation+label",
        "application.instanceLabelKey": "argocd.example/instance",
    }
    repository = one_unit(tmp_path, setting("web"), data=data)

    plan = tidegate("sync", repository.root, "--sandbox", "--dry-run", "-o", "json")

    items = [item["object"]["metadata"] for item in json.loads(plan.stdout)["objects"]]
    web = next(item for item in items if item["name"] == "web")
    assert web["labels"] == {"argocd.example/instance": "web"}
    assert web["annotations"] == {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/web"}


METHODS = pytest.mark.parametrize("method", ["annotation", "annotation+label", "label"])
INSTANCE = "app.kubernetes.io/instance"
TRACKED = {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/web"}


@METHODS
def test_the_tracking_method_determines_the_owner_of_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    data = {"application.resourceTrackingMethod": method}
    repository = one_unit(tmp_path / "platform", setting("web"), setting("old"), data=data)
    theirs = setting("web", "shop")
    get_mapping(theirs, "metadata")["labels"] = {INSTANCE: "other"}
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, namespace("shop"), theirs)

    first = cluster.sync(repository.root, "-o", "json")

    adopted = [
        event["name"] for event in json_lines(first.stdout) if event["event"] == "object.adopted"
    ]
    web = get_mapping(cluster.all(CONFIG_MAP, "shop")["web"], "metadata")
    assert first.code == 0, first.stderr
    assert adopted == (["web"] if method == "label" else []), first.stdout
    assert get_mapping(web, "annotations") == ({} if method == "label" else TRACKED)
    assert get_mapping(web, "labels") == {INSTANCE: "other" if method == "annotation" else "web"}
    again = cluster.sync(repository.root, "-o", "json")
    assert '"object.adopted"' not in again.stdout, "the unit owns it now"


@METHODS
@pytest.mark.parametrize("mark", ["label", "annotation"])
def test_an_object_that_now_belongs_to_another_unit_is_not_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, mark: str
) -> None:
    data = {"application.resourceTrackingMethod": method}
    repository = one_unit(tmp_path / "platform", setting("web"), setting("old"), data=data)
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    first = cluster.sync(repository.root)
    moved: dict[str, Json] = {
        "label": {"labels": {INSTANCE: "other"}},
        "annotation": {"annotations": {"argocd.argoproj.io/tracking-id": "other:/ConfigMap:a/b"}},
    }
    cluster.patch(CONFIG_MAP, "shop", "old", {"metadata": moved[mark]})
    repository.put("web/all.yaml", namespace("shop"), setting("web"))

    ran = cluster.sync(repository.root)

    counts = mark == "label" if method == "label" else mark == "annotation"
    assert (first.code, ran.code) == (0, 0), first.stderr + ran.stderr
    assert ("old" in cluster.all(CONFIG_MAP, "shop")) is counts


def test_objects_of_a_unit_that_left_git_are_known_by_their_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = three_levels(tmp_path / "platform", finalizer=True)
    repository.put(
        "argocd/cm.yaml", settings_map(**{"application.resourceTrackingMethod": "label"})
    )
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    first = cluster.sync(repository.root)
    repository.drop("teams/red.yaml")

    ran = cluster.sync(repository.root)

    assert (first.code, ran.code) == (0, 0), first.stderr + ran.stderr
    assert {"red-late", "blue-early"} & {*cluster.all(CONFIG_MAP, "shop")} == {"blue-early"}


def test_the_pause_between_waves_is_that_of_the_settings(tmp_path: Path) -> None:
    data = {"controller.sync.wave.delay.seconds": "9"}
    repository = one_unit(tmp_path, setting("web"), setting("late", wave=1), data=data)

    result = begins(simulated(repository))

    assert result["web/sync/1"] - result["web/sync/0"] == 9.0


def test_differences_that_argo_cd_ignores_globally_are_ignored(tmp_path: Path) -> None:
    replicas = "jsonPointers: [/spec/replicas]\nmanagedFieldsManagers: [scaler]\n"
    data = {"resource.customizations.ignoreDifferences.apps_Deployment": replicas}
    repository = one_unit(tmp_path, deployment("web"), data=data)
    repository.put("apps/other.yaml", application("other", "other"))
    repository.put("other/all.yaml", setting("other"))

    saved = tmp_path / "saved.plan"
    tidegate("plan", repository.root, "--save", saved)

    plan = json.loads(saved.read_text())["plan"]
    units = {unit["id"]["name"]: unit["policy"] for unit in plan["units"]}
    expected = {
        "kind": "Deployment",
        "group": "apps",
        "pointers": ["/spec/replicas"],
        "managers": ["scaler"],
    }
    assert units["web"]["ignore_differences"] == [expected]
    assert units["other"]["ignore_differences"] == [expected]


def test_health_takes_a_config_and_a_script(tmp_path: Path) -> None:
    objects = tmp_path / "objects.yaml"
    objects.write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {to: nowhere}}\n"
    )
    config, script = tmp_path / "argocd-cm.yaml", tmp_path / "health.lua"
    config.write_text(f"{RULE}ConfigMap: |\n{_indented(OF_SETTINGS)}")
    script.write_text('return {status = string.upper("x") == "X" and "Suspended" or "Healthy"}\n')

    by_config = tidegate("health", objects, "--config", config)
    closed = tidegate("health", objects, "--lua", script)
    opened = tidegate("health", objects, "--lua", script, "--open-libs")

    assert "Degraded" in by_config.stdout
    assert "it leads nowhere" in by_config.stdout
    assert "Unknown" in closed.stdout
    assert "Suspended" in opened.stdout
    assert f"lua {script}:1" in opened.stdout
