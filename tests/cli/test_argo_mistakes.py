"""Common mistakes in repositories for Argo CD: each is reported, and nothing else is."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.manifest_texts import URL, application, config_map, notes, pods, service
from tests.support.recorded_wording import RecordedWording
from tests.support.rule_pages import write_files

DATABASE = (
    pods("StatefulSet", "db", notes(wave=2), spec="  serviceName: db\n")
    + "---\n"
    + service("db", notes(wave=2))
)


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, args)


def results_by_name(folder: Path) -> dict[str, str]:
    """The locations of the findings of lint, by code."""
    ran = run(folder, "lint", "--offline", "-o", "json", ".")
    return {
        finding["code"]: finding.get("location", "")
        for finding in json.loads(ran.stdout)["findings"]
    }


def migrating(variable: str, host: str = "db") -> str:
    job = pods("Job", "migrate", notes(wave=1), calls=(host,))
    return job.replace("SERVER_0_HOST", variable)


@pytest.mark.parametrize("variable", ["PGHOST", "DBHOST", "MYSQLHOST", "DB_HOSTNAME", "DB_HOST"])
def test_a_job_calls_the_database_that_its_variable_names(variable: str, tmp_path: Path) -> None:
    shop = {"shop/job.yaml": migrating(variable), "shop/db.yaml": DATABASE}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert results_by_name(tmp_path)["ORD006"].startswith("shop/job.yaml:")
    assert ran.code == 4
    lines = ran.stdout.splitlines()
    assert any(re.search(rf"\b{variable}\b", line) and "dial-fails" in line for line in lines)


@pytest.mark.parametrize("variable", ["RABBITMQ_VHOST", "HOSTNAME", "SERVER_NAME"])
def test_a_variable_that_resembles_a_host_is_not_a_dependency(
    variable: str, tmp_path: Path
) -> None:
    shop = {"shop/job.yaml": migrating(variable, "shop"), "shop/db.yaml": DATABASE}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert "ORD006" not in results_by_name(tmp_path)
    assert ran.code == 0


def test_a_path_that_this_repository_does_not_have_is_an_error_of_lint(tmp_path: Path) -> None:
    apps = {"a.yaml": application(), "b.yaml": application("web", "weeb")}
    write_files(tmp_path, {**apps, "shop/a.yaml": config_map("a")})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert ran.code == 3
    assert any(
        "error[source.path]" in line and "`Application/argocd/web`" in line and "`weeb`" in line
        for line in ran.stdout.splitlines()
    )


def test_an_unavailable_source_is_not_an_error_of_the_repository(
    wording: RecordedWording, tmp_path: Path
) -> None:
    elsewhere = application("far", "far").replace(URL, "https://git.example.com/other/away.git")
    write_files(tmp_path, {"app.yaml": application(), "shop/far.yaml": elsewhere})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert ran.code == 0, ran.stdout
    wording(ran.stdout)


def test_an_unknown_hook_is_reported_once(tmp_path: Path) -> None:
    job = pods("Job", "tidy", ", annotations: {helm.sh/hook: post-insntall}")
    write_files(tmp_path, {"app.yaml": application(), "shop/job.yaml": job})

    result = results_by_name(tmp_path)

    assert result["argo.hook"].startswith("shop/job.yaml:3:")
    assert "ORD025" not in result


@pytest.mark.parametrize(
    ("kind", "field"), [("Job", "suspend"), ("Deployment", "paused")], ids=["Job", "Deployment"]
)
def test_an_object_paused_in_git_blocks_its_wave(kind: str, field: str, tmp_path: Path) -> None:
    paused = pods(kind, "import", notes(wave=1), spec=f"  {field}: true\n")
    shop = {"shop/a.yaml": paused, "shop/web.yaml": config_map("late", notes(wave=2))}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    theirs = run(tmp_path, "simulate", ".")
    ours = run(tmp_path, "simulate", "--engine", "tidegate", ".")

    assert results_by_name(tmp_path)["ORD060"].startswith("shop/a.yaml:")
    assert (theirs.code, ours.code) == (4, 0)


def test_an_object_paused_in_the_last_wave_blocks_no_unit(tmp_path: Path) -> None:
    paused = pods("Job", "import", notes(wave=2), spec="  suspend: true\n")
    shop = {"shop/a.yaml": paused, "shop/web.yaml": config_map("early", notes(wave=1))}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert "ORD060" not in results_by_name(tmp_path)
    assert ran.code == 0


ROOT = application("root", "apps").replace("namespace: shop", "namespace: argocd")
CHART = {
    "root.yaml": ROOT,
    "apps/Chart.yaml": "apiVersion: v2\nname: apps\nversion: 0.1.0\n",
    "cart/cart.yaml": config_map("cart"),
    "web/web.yaml": config_map("web"),
}
EACH = (
    "{{- range .Values.apps }}\n---\n"
    + application("{{ .name }}", "{{ .path }}")
    .replace(f"repoURL: {URL}", f'repoURL: "{URL}"')
    .replace("https://kubernetes.default.svc, namespace: shop", "{{ .server }}, namespace: shop")
    + "{{- end }}\n"
)
HERE = "https://kubernetes.default.svc"


def chart_of_apps(folder: Path, **apps: tuple[str, str]) -> None:
    """A chart that makes an Application of each path and server."""
    rows = [f"- {{name: {name}, path: {at}, server: '{to}'}}" for name, (at, to) in apps.items()]
    values = "apps:\n" + "\n".join(rows) + "\n"
    write_files(folder, {**CHART, "apps/values.yaml": values, "apps/templates/all.yaml": EACH})


def test_each_application_that_one_template_makes_has_its_own_faults(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", ""), web=("weeb", HERE))

    ran = run(tmp_path, "lint", "--offline", ".")

    assert any(
        "error[argo.destination]" in line and "`Application/argocd/cart`" in line
        for line in ran.stdout.splitlines()
    )
    assert "  at apps/templates/all.yaml:9:3 (spec.destination)" in ran.stdout
    assert any(
        "error[source.path]" in line and "`Application/argocd/web`" in line
        for line in ran.stdout.splitlines()
    )


def test_only_the_invalid_application_of_a_template_is_skipped(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", ""), web=("web", HERE))

    ran = run(tmp_path, "sync", "--sandbox", "--yes", "--skip-broken", "--offline", ".")

    assert any(
        "web wave 0" in line and "ConfigMap shop/web" in line for line in ran.stdout.splitlines()
    )
    assert not any(
        "cart wave 0  " in line and "ConfigMap shop/cart" in line
        for line in ran.stdout.splitlines()
    )


def test_an_error_of_all_objects_of_a_template_is_reported_once(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", HERE), web=("web", HERE))
    template = tmp_path / "apps" / "templates" / "all.yaml"
    template.write_text(template.read_text().replace("CreateNamespace=", "CreateNamespaces="))

    ran = run(tmp_path, "lint", "--offline", ".")

    assert ran.stdout.count("ORD055") == ran.stdout.count("`CreateNamespaces=true`") == 1
    assert any(
        "ORD055" in line and "`Application/argocd/cart`" in line for line in ran.stdout.splitlines()
    )


def test_an_object_of_a_template_is_found_by_its_whole_name(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, web=("shop", HERE))
    jobs = [pods("Job", name, notes(wave=1), spec="  suspend: true\n") for name in ("cart", "c")]
    chart = {"shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n"}
    text = jobs[0].replace("suspend: true", "{{- if true }}\n  suspend: true\n  {{- end }}")
    later = config_map("late", notes(wave=2))
    files = {"shop/templates/jobs.yaml": "---\n".join([text, jobs[1], later])}
    write_files(tmp_path, {**chart, **files})

    ran = run(tmp_path, "lint", "--offline", "-o", "json", ".")

    lines = (tmp_path / "shop" / "templates" / "jobs.yaml").read_text().splitlines()
    marked = [at for at, line in enumerate(lines, 1) if "suspend: true" in line]
    matches = [
        finding["line"]
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD060"
    ]
    assert sorted(matches) == marked


def test_an_app_of_apps_in_a_chart_is_a_root(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", HERE), web=("web", HERE))
    (tmp_path / "root.yaml").unlink()
    write_files(tmp_path, {"spare/a.yaml": config_map("spare")})

    units = run(tmp_path, "units", "--offline", ".")

    assert units.code == 0, units.stderr
    assert [line.split()[0] for line in units.stdout.splitlines()[1:]] == [
        "default/apps",
        "Application/argocd/cart",
        "Application/argocd/web",
    ]
    assert any(
        "note[units.not-included]" in line and "`spare`" in line
        for line in units.stderr.splitlines()
    )


def test_a_chart_of_another_kind_of_argo_is_no_beginning(tmp_path: Path) -> None:
    rollout = pods("Deployment", "web").replace("apps/v1", "argoproj.io/v1alpha1")
    files = {"web/Chart.yaml": CHART["apps/Chart.yaml"], "cart/cart.yaml": config_map("cart")}
    rollout = rollout.replace("Deployment", "Rollout")
    write_files(tmp_path, {**files, "web/templates/web.yaml": rollout})

    ran = run(tmp_path, "units", "--offline", ".")

    assert "error[render.ambiguous]" in ran.stderr


def test_a_chart_of_applications_that_no_unit_deploys_is_reported(tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", HERE))
    (tmp_path / "root.yaml").write_text(application("web", "web"))

    ran = run(tmp_path, "units", "--offline", ".")

    assert any(
        "note[units.not-included]" in line and "`apps`" in line for line in ran.stderr.splitlines()
    )
    assert "  at apps/Chart.yaml" in ran.stderr


def test_a_missing_file_of_an_overlay_without_a_unit_is_a_note(tmp_path: Path) -> None:
    idle = {"plugin/kustomization.yaml": "resources: [all.yaml]\n"}
    base = {"shop/kustomization.yaml": "resources: [../base]\n"}
    missing_files = {"base/kustomization.yaml": "resources: [gone.yaml]\n"}
    write_files(tmp_path, {"app.yaml": application(), **idle, **base, **missing_files})

    ran = run(tmp_path, "lint", "--offline", "-o", "json", ".")

    by_name = {
        finding["location"].partition(":")[0]: finding["severity"]
        for finding in json.loads(ran.stdout)["findings"]
        if finding["code"] == "ORD049"
    }
    assert by_name == {"plugin/kustomization.yaml": "note", "base/kustomization.yaml": "error"}


def test_a_simulation_names_the_skipped_units(wording: RecordedWording, tmp_path: Path) -> None:
    chart_of_apps(tmp_path, cart=("cart", HERE), web=("weeb", HERE))

    ran = run(tmp_path, "simulate", "--offline", ".")
    written = run(tmp_path, "simulate", "--offline", "-o", "json", ".")

    assert ran.code == 3
    wording(line for line in ran.stdout.splitlines() if "argocd: " in line)
    assert json.loads(written.stdout.splitlines()[-1])["skippedUnits"] == ["Application/argocd/web"]


def test_a_failure_in_the_last_wave_is_reported_although_argo_cd_passes(
    wording: RecordedWording, tmp_path: Path
) -> None:
    web = pods("Deployment", "web", secrets=("made-by-hand",))
    write_files(tmp_path, {"app.yaml": application(), "shop/web.yaml": web})

    ran = run(tmp_path, "simulate", "--offline", ".")

    assert ran.code == 4
    wording(line for line in ran.stdout.splitlines() if "Secret shop/made-by-hand" in line)


def test_a_last_wave_that_becomes_healthy_is_not_reported(
    wording: RecordedWording, tmp_path: Path
) -> None:
    write_files(tmp_path, {"app.yaml": application(), "shop/web.yaml": pods("Deployment", "web")})

    ran = run(tmp_path, "simulate", "--offline", ".")

    assert ran.code == 0
    wording(ran.stdout)


def test_a_child_without_automated_sync_is_reported_to_block_its_dependents(
    tmp_path: Path,
) -> None:
    chart_of_apps(tmp_path, cart=("cart", HERE), web=("web", HERE))
    template = tmp_path / "apps" / "templates" / "all.yaml"
    template.write_text(template.read_text().replace("automated: {}, ", ""))
    rule = "resource.customizations.health.argoproj.io_Application: |\n    return obj.status.health"
    data = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm}}\ndata:\n  {rule}\n"
    write_files(tmp_path, {"argocd/argocd-cm.yaml": data})

    ran = run(tmp_path, "simulate", "--offline", ".")

    assert any(
        "warning[argo.manual]" in line
        and "`Application/argocd/cart`" in line
        and "`Application/argocd/root`" in line
        for line in ran.stderr.splitlines()
    )


def test_waves_name_all_sources_of_an_application(tmp_path: Path) -> None:
    source = f"source: {{repoURL: {URL}, path: shop, targetRevision: v1.0.0}}"
    values = f"{{repoURL: {URL}, targetRevision: v1.0.0, ref: values}}"
    several = source.replace("source: ", "sources: [") + f", {values}]"
    app = application().replace(source, several)
    write_files(tmp_path, {"app.yaml": app, "shop/a.yaml": config_map("a")})

    ran = run(tmp_path, "waves", "--offline", ".")

    assert "platform//shop, platform//" in ran.stdout


def test_an_application_without_a_valid_destination_is_not_simulated(
    wording: RecordedWording, tmp_path: Path
) -> None:
    both = application().replace("svc, namespace", "svc, name: in-cluster, namespace")
    write_files(tmp_path, {"app.yaml": both, "shop/a.yaml": config_map("a")})

    ran = run(tmp_path, "simulate", "--offline", ".")

    assert ran.code == 4
    assert any(
        "error[argo.destination]" in line and "`server`" in line and "`name`" in line
        for line in ran.stderr.splitlines()
    )
    wording(line for line in ran.stdout.splitlines() if "argocd: " in line)
