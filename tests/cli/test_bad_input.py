"""Invalid units and unreachable clusters: one clear error, and nothing is written."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, config_map, kubeconfig, tidegate, write_unit

DATABASE = "apiVersion: kinda.rocks/v1\nkind: Database\nmetadata: {name: shop}\nspec: {}\n"
OPTION = "argocd.argoproj.io/sync-options"
WAITING = DATABASE.replace(
    "{name: shop}", f"{{name: shop, annotations: {{{OPTION}: SkipDryRunOnMissingResource=true}}}}"
)
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.example.org}
spec:
  group: example.org
  names: {kind: Buoy, plural: buoys, singular: buoy, listKind: BuoyList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


class Case(NamedTuple):
    """A file of a unit, and the error that is expected: its code and location."""

    text: str
    code: str
    location: str


UNREADABLE = {
    "broken YAML": Case(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n",
        "documents.syntax",
        "bad.yaml:4:1",
    ),
    "a wave that is not a number": Case(
        config_map("late", wave="soon"),
        "dialect.wave",
        'bad.yaml:5:17 (metadata.annotations["argocd.argoproj.io/sync-wave"])',
    ),
    "two objects with one name": Case(
        f"{config_map('twin')}---\n{config_map('twin')}",
        "dialect.duplicate",
        "bad.yaml:7:1",
    ),
}


@pytest.mark.parametrize("verb", ["sync", "plan"])
@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_parsed_is_one_error_with_location_and_hint(
    wording: RecordedWording, case: Case, verb: str, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", good=config_map(), bad=case.text)

    ran = tidegate(verb, unit, *(["--sandbox"] if verb == "sync" else []))

    assert ran.returncode == 3
    problem, location, hint = ran.stderr.splitlines()
    assert problem.startswith(f"error[{case.code}]: ")
    assert location == f"  at {case.location}"
    assert hint.startswith("  hint: ")
    wording(hint)
    assert ran.stdout == ""


@pytest.mark.parametrize("verb", ["sync", "plan"])
def test_a_file_that_cannot_be_read_is_named(verb: str, tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", good=config_map())
    (unit / "loop.yaml").symlink_to("loop.yaml")

    ran = tidegate(verb, unit, *(["--sandbox"] if verb == "sync" else []))

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[render.directory.file]: ")
    assert "loop.yaml" in ran.stderr
    assert "  hint: " in ran.stderr
    assert ran.stdout == ""


def test_every_file_that_cannot_be_parsed_is_reported(tmp_path: Path) -> None:
    waves = {name: config_map(name, wave="soon") for name in ("one", "two")}

    ran = tidegate("sync", write_unit(tmp_path / "unit", **waves), "--sandbox")

    assert ran.returncode == 3
    assert ran.stderr.count("error[dialect.wave]") == 2


def assert_refused(unit: Path, code: str, name: str, wording: RecordedWording) -> None:
    """It is refused before the first write, with the location in its file and what can be done."""
    args = ("sync", unit, "--sandbox", "--empty-cluster")
    ran, in_json = tidegate(*args), tidegate(*args, "-o", "json")
    assert (ran.returncode, in_json.returncode) == (3, 3)
    (error,) = [line for line in ran.stderr.splitlines() if line.startswith("error[")]
    assert error.startswith(f"error[{code}]: {name}: ")
    assert "\n  at bad.yaml:1:1\n" in f"{ran.stderr}\n"
    wording([line for line in ran.stdout.splitlines() if line.startswith("✗ ")] + [error])
    assert event_types(in_json) == ["object.refused", "rollout.finished", "rollout.explained"]


def event_types(ran: CompletedProcess[str]) -> list[str]:
    return [json.loads(line)["event"] for line in ran.stdout.splitlines()]


def test_a_kind_that_is_not_served_is_refused_before_anything_is_written(
    wording: RecordedWording, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", good=config_map(wave="-5"), bad=DATABASE)

    assert_refused(unit, "preflight.not-served", "Database default/shop", wording)


@pytest.mark.parametrize(
    "args",
    [("sync", "--sandbox"), ("simulate", "--engine", "argocd,flux")],
    ids=["sync", "others"],
)
def test_a_kind_that_is_defined_in_the_same_wave_is_served_when_it_is_needed(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    buoy = "apiVersion: example.org/v1\nkind: Buoy\nmetadata: {name: north}\n"
    unit = write_unit(tmp_path / "unit", definition=DEFINITION, buoy=buoy)

    ran = tidegate(*args, unit, "-o", "json")

    assert ran.returncode == 0, ran.stdout
    assert "object.written" in event_types(ran)
    assert "retry.scheduled" not in event_types(ran)


def test_an_object_with_skip_dry_run_on_missing_resource_is_retried(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", database=WAITING)

    ran = tidegate("sync", unit, "--sandbox", "--empty-cluster", "-o", "json")

    assert ran.returncode == 4
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    retry = next(event for event in events if event["event"] == "retry.scheduled")
    assert retry["until"] - retry["at"] == 5_000
    assert "`kinda.rocks/v1 Database`" in retry["message"]


def test_a_missing_namespace_is_reported_before_anything_is_written(
    wording: RecordedWording, tmp_path: Path
) -> None:
    lost = config_map("lost", namespace="nowhere")
    unit = write_unit(tmp_path / "unit", good=config_map(wave="-5"), bad=lost)

    assert_refused(unit, "preflight.no-namespace", "ConfigMap nowhere/lost", wording)


def test_a_namespace_that_the_plan_creates_is_not_missing(tmp_path: Path) -> None:
    place = "apiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere}\n"
    unit = write_unit(
        tmp_path / "unit", place=place, lost=config_map("lost", namespace="nowhere", wave="1")
    )

    ran = tidegate("sync", unit, "--sandbox")

    assert ran.returncode == 0, ran.stdout


def unused_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"https://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("verb", ["sync --yes", "plan", "status"])
def test_a_cluster_that_does_not_answer_is_reported_and_the_sandbox_is_offered(
    verb: str, tmp_path: Path
) -> None:
    server = unused_address()
    config = kubeconfig(tmp_path, server)

    ran = tidegate(*verb.split(), FIRST, "--kubeconfig", config)

    assert ran.returncode == 5
    assert ran.stderr.startswith("error[cluster.unreachable]: ")
    assert f"`{server}`" in ran.stderr.splitlines()[0]
    assert f"  at {config}:" in ran.stderr
    assert "`tidegate sync --sandbox`" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("verb", ["sync", "plan", "status", "delete"])
def test_a_missing_directory_is_reported_before_the_cluster_is_contacted(
    verb: str, tmp_path: Path
) -> None:
    config = kubeconfig(tmp_path, unused_address())

    ran = tidegate(verb, "examples/nowhere", "--kubeconfig", config)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[render.path]: ")
    assert "`examples/nowhere`" in ran.stderr.splitlines()[0]
    assert ran.stdout == ""


def test_without_a_kubeconfig_the_error_suggests_the_sandbox(tmp_path: Path) -> None:
    ran = tidegate("sync", FIRST, HOME=str(tmp_path))

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[config.none]: ")
    assert "`tidegate sync --sandbox`" in ran.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("sync", "--sandbox", "--timeout"),
        ("delete", "--sandbox", "--timeout"),
        ("simulate", "--until"),
        ("sandbox", "run", "--until"),
    ],
    ids=" ".join,
)
def test_a_duration_that_cannot_be_parsed_is_a_usage_error(args: tuple[str, ...]) -> None:
    ran = tidegate(*args, "soon", FIRST)

    assert ran.returncode == 2
    assert f"{args[-1]}: `soon` " in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("verb", "code"), [(("plan",), 0), (("simulate",), 9), (("sync", "--sandbox"), 0)]
)
def test_a_directory_without_objects_is_reported(
    tmp_path: Path, verb: tuple[str, ...], code: int
) -> None:
    ran = tidegate(*verb, str(tmp_path))

    assert ran.returncode == code
    assert ran.stderr.startswith(f"warning[render.nothing]: `{tmp_path}` ")
