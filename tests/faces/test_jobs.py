"""`tidegate jobs`: which Job is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.repositories import job, setting
from tests.fakes.tidegate_runs import FIRST, kubeconfig, tidegate, write_unit
from tests.fakes.typed import type_in
from tidegate.documents.dump import to_yaml


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("migrat", "did you mean `migrate`?"),
        ("shop", "there is no Job and no hook `shop` here"),
    ],
)
def test_a_name_that_no_job_has(name: str, told: str) -> None:
    ran = type_in("jobs", "rerun", name, "-C", FIRST, "--sandbox")

    assert (ran.code, ran.stdout) == (2, "")
    assert "error[words.job]" in ran.stderr
    assert told in ran.stderr


def test_a_name_that_several_have_is_asked_about(tmp_path: Path) -> None:
    one, other = job("load"), job("load")
    other["metadata"]["namespace"] = "kube-system"  # type: ignore[index,call-overload]
    unit = write_unit(tmp_path / "unit", one=to_yaml(one), other=to_yaml(other))

    both = type_in("jobs", "rerun", "load", "-C", unit, "--sandbox")
    exact = type_in("jobs", "rerun", "kube-system/load", "-C", unit, "--sandbox")

    assert both.code == 2
    assert "several are called `load`: Job default/load" in both.stderr
    assert exact.code == 0, exact.stderr
    assert "Job kube-system/load" in exact.stdout
    assert "Job default/load" not in exact.stdout


def test_where_there_are_none_it_is_said(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", one=to_yaml(setting("one")))

    assert (
        "there are no Jobs and no hooks here"
        in type_in("jobs", "list", "-C", unit, "--sandbox").lines
    )


def test_where_nobody_can_be_asked_nothing_is_run(tmp_path: Path) -> None:
    login = kubeconfig(tmp_path, "https://127.0.0.1:1")

    ran = tidegate("jobs", "rerun", "migrate", "-C", FIRST, "--kubeconfig", login)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--yes goes on without asking" in ran.stderr
