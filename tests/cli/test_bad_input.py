"""What is wrong with a unit or the way to its cluster: one clear error, and nothing is written."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple

import pytest

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
    """A file of a unit, and what is told of it: the code, the place and a hint."""

    text: str
    code: str
    place: str
    hint: str


UNREADABLE = {
    "broken YAML": Case(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n",
        "documents.syntax",
        "bad.yaml:4:1",
        "add the value, or `null`",
    ),
    "a wave that is not a number": Case(
        config_map("late", wave="soon"),
        "dialect.wave",
        'bad.yaml:5:17 (metadata.annotations["argocd.argoproj.io/sync-wave"])',
        'write a number in quotes, such as "-1"',
    ),
    "two objects with one name": Case(
        f"{config_map('twin')}---\n{config_map('twin')}",
        "dialect.duplicate",
        "bad.yaml:7:1",
        "the first one is at bad.yaml:1:1; remove one of them, or give it another name",
    ),
}


@pytest.mark.parametrize("verb", ["sync", "plan"])
@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_understood_is_one_error_with_place_and_hint(
    case: Case, verb: str, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", good=config_map(), bad=case.text)

    ran = tidegate(verb, unit, *(["--sandbox"] if verb == "sync" else []))

    assert ran.returncode == 3
    head, place, hint = ran.stderr.splitlines()
    assert head.startswith(f"error[{case.code}]: ")
    assert place == f"  at {case.place}"
    assert hint == f"  hint: {case.hint}"
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


def test_every_file_that_cannot_be_understood_is_told(tmp_path: Path) -> None:
    waves = {name: config_map(name, wave="soon") for name in ("one", "two")}

    ran = tidegate("sync", write_unit(tmp_path / "unit", **waves), "--sandbox")

    assert ran.returncode == 3
    assert ran.stderr.count("error[dialect.wave]") == 2


def assert_refused(unit: Path, name: str, *sentences: str) -> None:
    """It is refused before the first write, with the place in its file and what can be done."""
    ran = tidegate("sync", unit, "--sandbox", "--empty-cluster")
    assert ran.returncode == 3
    assert "✗ nothing was written: the cluster would refuse 1 object" in ran.stdout
    (result,) = [line for line in ran.stderr.splitlines() if f"]: {name}: " in line]
    assert "\n  at bad.yaml:1:1\n" in f"{ran.stderr}\n"
    for sentence in sentences:
        assert sentence in result
    assert "applied" not in ran.stdout
    assert "tries again" not in ran.stdout


def test_a_kind_that_nobody_serves_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", good=config_map(wave="-5"), bad=DATABASE)

    assert_refused(
        unit,
        "Database default/shop",
        "the cluster does not serve `kinda.rocks/v1 Database`, nor does the plan define it",
        "install it first, or let it wait with `SkipDryRunOnMissingResource=true`",
    )


@pytest.mark.parametrize(
    "words",
    [("sync", "--sandbox"), ("simulate", "--engine", "argocd,flux")],
    ids=["sync", "others"],
)
def test_a_kind_that_is_defined_in_the_same_wave_is_served_when_it_is_needed(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    buoy = "apiVersion: example.org/v1\nkind: Buoy\nmetadata: {name: north}\n"
    unit = write_unit(tmp_path / "unit", definition=DEFINITION, buoy=buoy)

    ran = tidegate(*words, unit)

    assert ran.returncode == 0, ran.stdout
    assert "tries again" not in ran.stdout


def test_an_object_that_asks_to_wait_for_its_kind_is_tried_again(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", database=WAITING)

    ran = tidegate("sync", unit, "--sandbox", "--empty-cluster")

    assert ran.returncode == 4
    assert "tries again in 5.0s: the cluster does not serve `kinda.rocks/v1 Database`" in ran.stdout


def test_a_namespace_that_is_missing_is_told_before_anything_is_written(tmp_path: Path) -> None:
    lost = config_map("lost", namespace="nowhere")
    unit = write_unit(tmp_path / "unit", good=config_map(wave="-5"), bad=lost)

    assert_refused(
        unit,
        "ConfigMap nowhere/lost",
        "there is no namespace `nowhere`, nor does the plan bring it",
        "create it first, or add it to the plan",
    )


def test_a_namespace_that_the_plan_brings_is_not_missing(tmp_path: Path) -> None:
    place = "apiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere}\n"
    unit = write_unit(
        tmp_path / "unit", place=place, lost=config_map("lost", namespace="nowhere", wave="1")
    )

    ran = tidegate("sync", unit, "--sandbox")

    assert ran.returncode == 0, ran.stdout


def nobody_listens() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"https://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("verb", ["sync --yes", "plan", "status"])
def test_a_cluster_that_does_not_answer_is_told_and_the_sandbox_is_offered(
    verb: str, tmp_path: Path
) -> None:
    server = nobody_listens()
    config = kubeconfig(tmp_path, server)

    ran = tidegate(*verb.split(), FIRST, "--kubeconfig", config)

    assert ran.returncode == 5
    assert ran.stderr.startswith(f"error[cluster.unreachable]: connecting to `{server}`: ")
    assert f"  at {config}:" in ran.stderr
    assert "`tidegate sync --sandbox` needs no cluster" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("verb", ["sync", "plan", "status", "delete"])
def test_a_directory_that_is_not_there_is_told_before_the_cluster_is_asked(
    verb: str, tmp_path: Path
) -> None:
    config = kubeconfig(tmp_path, nobody_listens())

    ran = tidegate(verb, "examples/nowhere", "--kubeconfig", config)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[render.path]: `examples/nowhere` is not a directory\n")
    assert ran.stdout == ""


def test_where_there_is_no_kubeconfig_the_sandbox_is_offered(tmp_path: Path) -> None:
    ran = tidegate("sync", FIRST, HOME=str(tmp_path))

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[config.none]: there is no kubeconfig")
    assert "`tidegate sync --sandbox` needs no cluster" in ran.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("sync", "--sandbox", "--timeout"),
        ("delete", "--sandbox", "--timeout"),
        ("simulate", "--until"),
        ("sandbox", "run", "--until"),
    ],
    ids=" ".join,
)
def test_a_time_that_is_none_is_a_mistake_in_the_command(words: tuple[str, ...]) -> None:
    ran = tidegate(*words, "soon", FIRST)

    assert ran.returncode == 2
    assert f"{words[-1]}: `soon` is not a duration such as 90s" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("verb", [("plan",), ("simulate",), ("sync", "--sandbox")])
def test_a_directory_without_objects_is_noticed(tmp_path: Path, verb: tuple[str, ...]) -> None:
    ran = tidegate(*verb, str(tmp_path))

    assert ran.returncode == 0
    assert f"`{tmp_path}` has no objects" in ran.stderr
