"""Repositories as others write them for Argo CD: each fault is named, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fakes.repo_texts import URL, application, config_map, notes, pods, service
from tests.fakes.rule_pages import write_files
from tests.hostile.inside import Said, typed

DATABASE = (
    pods("StatefulSet", "db", notes(wave=2), spec="  serviceName: db\n")
    + "---\n"
    + service("db", notes(wave=2))
)


def run(folder: Path, *words: str) -> Said:
    return typed(folder, os.environ, words)


def told(folder: Path) -> dict[str, str]:
    """What lint says of a repository: the place of each, by code."""
    ran = run(folder, "lint", "--offline", "-o", "json", ".")
    return {one["code"]: one.get("where", "") for one in json.loads(ran.stdout)["findings"]}


def migrating(variable: str, host: str = "db") -> str:
    job = pods("Job", "migrate", notes(wave=1), calls=(host,))
    return job.replace("SERVER_0_HOST", variable)


@pytest.mark.parametrize("variable", ["PGHOST", "DBHOST", "MYSQLHOST", "DB_HOSTNAME", "DB_HOST"])
def test_a_job_calls_the_database_that_its_variable_names(variable: str, tmp_path: Path) -> None:
    shop = {"shop/job.yaml": migrating(variable), "shop/db.yaml": DATABASE}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert told(tmp_path)["ORD006"].startswith("shop/job.yaml:")
    assert ran.code == 4
    assert f"the variable {variable} names it" in ran.stdout


@pytest.mark.parametrize("variable", ["RABBITMQ_VHOST", "HOSTNAME", "SERVER_NAME"])
def test_a_variable_that_only_looks_like_a_host_calls_nobody(variable: str, tmp_path: Path) -> None:
    shop = {"shop/job.yaml": migrating(variable, "shop"), "shop/db.yaml": DATABASE}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert "ORD006" not in told(tmp_path)
    assert ran.code == 0


def test_a_path_that_this_repository_does_not_have_is_an_error_of_lint(tmp_path: Path) -> None:
    apps = {"a.yaml": application(), "b.yaml": application("web", "weeb")}
    write_files(tmp_path, {**apps, "shop/a.yaml": config_map("a")})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert ran.code == 3
    assert "error[source.path]: `Application/argocd/web` is not rendered" in ran.stdout
    assert "there is no `weeb`" in ran.stdout


def test_what_cannot_be_fetched_is_nobodys_mistake(tmp_path: Path) -> None:
    elsewhere = application("far", "far").replace(URL, "https://git.example.com/other/away.git")
    write_files(tmp_path, {"app.yaml": application(), "shop/far.yaml": elsewhere})

    ran = run(tmp_path, "lint", "--offline", ".")

    assert ran.code == 0, ran.stdout
    assert "not known: one thing is not known" in ran.stdout


def test_a_hook_that_there_is_not_is_told_once(tmp_path: Path) -> None:
    job = pods("Job", "tidy", ", annotations: {helm.sh/hook: post-insntall}")
    write_files(tmp_path, {"app.yaml": application(), "shop/job.yaml": job})

    found = told(tmp_path)

    assert found["argo.hook"].startswith("shop/job.yaml:3:")
    assert "ORD025" not in found


@pytest.mark.parametrize(
    ("kind", "field"), [("Job", "suspend"), ("Deployment", "paused")], ids=["Job", "Deployment"]
)
def test_what_git_pauses_holds_a_wave_of_argo_cd(kind: str, field: str, tmp_path: Path) -> None:
    paused = pods(kind, "import", notes(wave=1), spec=f"  {field}: true\n")
    shop = {"shop/a.yaml": paused, "shop/web.yaml": config_map("late", notes(wave=2))}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    theirs = run(tmp_path, "simulate", ".")
    ours = run(tmp_path, "simulate", "--engine", "tidegate", ".")

    assert told(tmp_path)["ORD060"].startswith("shop/a.yaml:")
    assert (theirs.code, ours.code) == (4, 0)


def test_what_git_pauses_in_the_last_wave_holds_nobody(tmp_path: Path) -> None:
    paused = pods("Job", "import", notes(wave=2), spec="  suspend: true\n")
    shop = {"shop/a.yaml": paused, "shop/web.yaml": config_map("early", notes(wave=1))}
    write_files(tmp_path, {"app.yaml": application(), **shop})

    ran = run(tmp_path, "simulate", ".")

    assert "ORD060" not in told(tmp_path)
    assert ran.code == 0
