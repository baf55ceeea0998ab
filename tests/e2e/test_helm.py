"""What we render equals what the real helm renders, object for object."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.helm_oracle import find_helm, objects_of, run_helm, template
from tidegate.documents.dump import to_json
from tidegate.errors import Location, RenderError
from tidegate.external.worker import Workers
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import (
    ChartRequest,
    FileParameter,
    Parameter,
    ParameterType,
    ValuesFile,
)
from tidegate.render.helm import argo_layers, helm_workers, render

pytestmark = [pytest.mark.kube, pytest.mark.asyncio(loop_scope="module")]

CHARTS = Path(__file__).parents[1] / "data" / "charts"


@dataclass(frozen=True, slots=True)
class Case:
    """One chart with settings, in our words and in those of helm."""

    chart: str
    options: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    set: tuple[str, ...] = ()
    set_string: tuple[str, ...] = ()
    set_file: tuple[str, ...] = ()
    values: dict[str, Json] = field(default_factory=dict)
    changes: dict[str, object] = field(default_factory=dict)

    def release(self, root: Path) -> ChartRequest:
        release = ChartRequest(
            root=str(root),
            chart=self.chart,
            name="shop",
            values=self.values,
            layers=argo_layers(
                [ValuesFile(f"/{name}") for name in self.files],
                parameters=[
                    *(_parameter(each, ParameterType.TYPED) for each in self.set),
                    *(_parameter(each, ParameterType.STRING) for each in self.set_string),
                ],
                file_parameters=[
                    FileParameter(name, f"/{path}")
                    for name, _, path in (each.partition("=") for each in self.set_file)
                ],
            ),
        )
        return replace_fields(release, self.changes)

    def arguments(self, root: Path) -> list[str]:
        arguments = [*self.options]
        for name in self.files:
            arguments += ["--values", str(root / name)]
        if self.values:
            (root / "inline.yaml").write_bytes(to_json(self.values))
            arguments += ["--values", str(root / "inline.yaml")]
        for each in self.set:
            arguments += ["--set", each]
        for each in self.set_string:
            arguments += ["--set-string", each]
        for each in self.set_file:
            name, _, path = each.partition("=")
            arguments += ["--set-file", f"{name}={root / path}"]
        return arguments


def _parameter(text: str, how: ParameterType) -> Parameter:
    name, _, value = text.partition("=")
    return Parameter(name, value, how)


def replace_fields(release: ChartRequest, changes: dict[str, object]) -> ChartRequest:
    fields = {name: getattr(release, name) for name in release.__struct_fields__}
    return ChartRequest(**{**fields, **changes})


CRDS = ("--include-crds",)
UPGRADE: dict[str, object] = {"is_upgrade": True}
OLD: dict[str, object] = {"kube_version": "1.31.4"}
TYPES = """big: 1234567
small: 3
float: 1.5
huge: 12345678901234567890
exponent: 1e3
text: "007"
octal: 0o17
yes: yes
none: ~
date: 2026-01-02
"""

CASES = {
    "a chart as it is": Case("web", CRDS),
    "without CRDs": Case("web", changes={"include_crds": False}),
    "another namespace": Case(
        "web", (*CRDS, "--namespace", "other"), changes={"namespace": "other"}
    ),
    "an upgrade": Case("web", (*CRDS, "--is-upgrade"), changes=UPGRADE),
    "another Kubernetes": Case("web", (*CRDS, "--kube-version", "1.31.4"), changes=OLD),
    "a vendor's Kubernetes": Case(
        "web",
        (*CRDS, "--kube-version", "v1.35.2-gke.100"),
        changes={"kube_version": "v1.35.2-gke.100"},
    ),
    "more kinds": Case(
        "web",
        (*CRDS, "--api-versions", "monitoring.coreos.com/v1"),
        changes={"api_versions": ("monitoring.coreos.com/v1",)},
    ),
    "values files in order": Case(
        "web",
        CRDS,
        files={
            "a.yaml": "replicas: 3\nargs: [a, b]\nlabels: {tier: front}\n",
            "b.yaml": "replicas: 4\nlabels: {team: shop}\n",
        },
    ),
    "a values file of two documents": Case(
        "web", CRDS, files={"a.yaml": "replicas: 3\n---\nreplicas: 5\n"}
    ),
    "an empty values file": Case("web", CRDS, files={"a.yaml": ""}),
    "a value that is taken away": Case(
        "web", CRDS, files={"a.yaml": "removed:\n  key: null\nports: null\n"}
    ),
    "inline values over files": Case(
        "web", CRDS, files={"a.yaml": "replicas: 3\n"}, values={"replicas": 9, "args": ["x"]}
    ),
    "numbers in a file": Case("typed", files={"a.yaml": TYPES}),
    "a large integer": Case("typed", set=("big=1234567",)),
    "a small integer": Case("typed", set=("small=3",)),
    "the largest integers": Case("typed", set=("a=9223372036854775807", "b=-9223372036854775808")),
    "an integer too large": Case("typed", set=("a=9223372036854775808",)),
    "integers in a list": Case("typed", set=("list={7,8000000,text}",)),
    "an integer into a list of the chart": Case("typed", set=("list[1]=2000001",)),
    "an integer into a list of a file": Case(
        "typed", files={"a.yaml": "list: [5, 6000000, 7]\n"}, set=("list[1]=2000001",)
    ),
    "integers in rows": Case("typed", set=("rows[0].id=1000000", "rows[1].id=5")),
    "lists in lists": Case("typed", set=("deep[0][1]=1000000", "deep[1][0]=2")),
    "integers below strange keys": Case("typed", set=(r"a\.b/c.quo\"te=1000000", "ü.ö=5")),
    "words of --set": Case("typed", set=("a=true", "b=FALSE", "c=null", "d=", "e=0", "f=007")),
    "an integer over a file": Case(
        "typed", files={"a.yaml": "small: 4\n"}, values={"small": 5}, set=("small=6",)
    ),
    "strings by force": Case("typed", set_string=("big=1234567", "b=true")),
    "strings after integers": Case("typed", set=("a=1",), set_string=("a=2",)),
    "the content of a file": Case(
        "typed", files={"a.yaml": "x: 1, {y}\n"}, set_file=("content=a.yaml",)
    ),
    "a subchart": Case("umbrella", CRDS),
    "a subchart off": Case("umbrella", CRDS, set=("db.enabled=false",)),
    "a subchart by its tag": Case("umbrella", CRDS, set=("tags.archives=true",)),
    "an integer for a subchart": Case("umbrella", CRDS, set=("db.size=2000000",)),
    "an integer for everyone": Case(
        "umbrella", CRDS, set=("global.quota=2000000", "tags.archives=true")
    ),
    "an annotation that is a number": Case("broken", set=("how=annotation",)),
    "a schema that fits": Case("schema", set=("replicas=3",)),
    "a Kubernetes that fits": Case(
        "picky", ("--kube-version", "v1.35.2-gke.100"), changes={"kube_version": "v1.35.2-gke.100"}
    ),
}

REFUSED = {
    "an absent dependency": (Case("incomplete"), "render.helm.dependency"),
    "a library": (Case("library"), "render.helm.type"),
    "the wrong Kubernetes": (Case("picky"), "render.helm.kube-version"),
    "a broken schema": (Case("schema", set=("replicas=many",)), "render.helm.schema"),
    "a bad name of a parameter": (Case("web", set=("a[x]=1",)), "render.helm.parameter"),
    "a value inside a number": (
        Case("web", values={"a": 1}, set=("a.b=1",)),
        "render.helm.parameter",
    ),
    "fail": (Case("broken", set=("how=fail",)), "render.helm.template"),
    "required": (Case("broken", set=("how=required",)), "render.helm.template"),
    "bad YAML": (Case("broken", set=("how=yaml",)), "render.helm.yaml"),
    "a template that cannot be parsed": (Case("unparsable"), "render.helm.template"),
    "a values file that is a list": (Case("web", files={"a.yaml": "- a\n"}), "render.helm.values"),
}


@pytest.fixture(scope="session")
def helm() -> Path:
    return find_helm()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(CHARTS, tmp_path / "source")
    return tmp_path / "source"


async def ours(release: ChartRequest, workers: Workers) -> list[tuple[str, bytes]]:
    documents = await render(release, workers)
    return sorted((document.location.name, to_json(document.body)) for document in documents)


def write_files(case: Case, root: Path) -> None:
    for name, text in case.files.items():
        (root / name).write_text(text)


@pytest.mark.parametrize("name", CASES)
async def test_rendered_objects_equal_those_of_helm(
    name: str, helm: Path, root: Path, workers: Workers
) -> None:
    case = CASES[name]
    write_files(case, root)
    theirs = template(helm, root / case.chart, *case.arguments(root), user_home=root)
    assert theirs.returncode == 0, theirs.stderr

    result = await ours(case.release(root), workers)

    assert result == objects_of(theirs.stdout)
    assert result


@pytest.mark.parametrize("name", REFUSED)
async def test_input_that_helm_rejects_is_rejected(
    name: str, helm: Path, root: Path, workers: Workers
) -> None:
    case, code = REFUSED[name]
    write_files(case, root)
    theirs = template(helm, root / case.chart, *case.arguments(root), user_home=root)
    assert theirs.returncode != 0

    with pytest.raises(RenderError) as caught:
        await render(case.release(root), workers)

    assert caught.value.code == code


async def test_a_disabled_subchart_can_be_enabled_in_the_same_worker(
    helm: Path, root: Path, workers: Workers
) -> None:
    off = Case("umbrella", CRDS, values={"db": {"enabled": False}})
    on = replace(off, values={"db": {"enabled": True}})

    first = await ours(off.release(root), workers)
    second = await ours(on.release(root), workers)

    whole = template(helm, root / "umbrella", *on.arguments(root), user_home=root)
    assert second == objects_of(whole.stdout)
    assert len(first) < len(second)


async def test_a_local_dependency_is_built_as_helm_builds_it(
    helm: Path, root: Path, workers: Workers
) -> None:
    result = await ours(ChartRequest(root=str(root), chart="neighbour", name="shop"), workers)

    assert not (root / "neighbour" / "charts").exists(), "the source stays as it is"
    theirs = template(helm, root / "neighbour", "--dependency-update", user_home=root)
    assert theirs.returncode == 0, theirs.stderr
    assert result == objects_of(theirs.stdout[theirs.stdout.index("---") :])


async def test_a_matching_chart_lock_is_used_and_an_outdated_one_is_not(
    helm: Path, root: Path, workers: Workers
) -> None:
    chart = root / "neighbour"
    release = ChartRequest(root=str(root), chart="neighbour", name="shop")
    run_helm(helm, "dependency", "update", str(chart), user_home=root).check_returncode()
    shutil.rmtree(chart / "charts")

    fitting = await ours(release, workers)
    text = (chart / "Chart.yaml").read_text()
    (chart / "Chart.yaml").write_text(text.replace("repository:", "condition: a.b\n  repository:"))
    theirs = run_helm(helm, "dependency", "build", str(chart), user_home=root)
    with pytest.raises(RenderError) as raised:
        await render(release, workers)

    assert fitting
    assert raised.value.code == "render.helm.dependency"
    assert raised.value.location == Location("neighbour/Chart.lock", field="digest")
    assert "out of sync" in theirs.stderr


@pytest.mark.parametrize("version", ["^9", "0.1.0-0", ">=0.1.0", "~0.1", "0.2.x", "*"])
async def test_a_local_dependency_matches_a_version_as_in_helm(
    version: str, helm: Path, root: Path, workers: Workers
) -> None:
    chart = root / "neighbour" / "Chart.yaml"
    chart.write_text(
        re.sub(r"version: .*(?=\n\s+repo)", f"version: '{version}'", chart.read_text())
    )
    release = ChartRequest(root=str(root), chart="neighbour", name="shop")
    theirs = run_helm(helm, "dependency", "update", str(root / "neighbour"), user_home=root)
    for left in ("charts", "Chart.lock"):
        remove(root / "neighbour" / left)

    if theirs.returncode == 0:
        assert await ours(release, workers)
    else:
        with pytest.raises(RenderError) as raised:
            await render(release, workers)
        assert raised.value.code == "render.helm.dependency"
        assert f"`{version}`" in raised.value.problem


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
