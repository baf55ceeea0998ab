"""Long lists of files, which are built in parts: the output is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase, both_outputs
from tidegate.errors import RenderError
from tidegate.model.units.rendering import FluxOverrides
from tidegate.render.kustomize import build
from tidegate.render.kustomize.collect import collect_inputs
from tidegate.render.kustomize.file_parts import MAX_FILES, split_inputs

LONG = MAX_FILES + 40
ODD = {
    3: "# nothing\n",
    5: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n",
    7: "a: &a {x: 010, y: yes, z: 1e3}\napiVersion: v1\nkind: Odd\nmetadata: {name: o}\nb: *a\n",
    MAX_FILES + 1: """\
apiVersion: v1
kind: ConfigMap
metadata: {name: own, annotations: {config.kubernetes.io/local-config: "true"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c-0001, namespace: elsewhere}
""",
}


def settings(number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c-{number:04}}}\n"


def a_list(odd: dict[int, str], kustomization: str = "") -> OverlayCase:
    """Files that Flux finds in a directory, or that a kustomization names in another order."""
    files = {f"app/{n:04}.yaml": odd.get(n, settings(n)) for n in range(LONG)}
    if not kustomization:
        names = "".join(f"- {path.removeprefix('app/')}\n" for path in files)
        made = f"sortOptions: {{order: fifo}}\nresources:\n{names}"
        return OverlayCase(files=files, flux=FluxOverrides(), stands_for=made)
    names = "".join(f"- ./{path.removeprefix('app/')}\n" for path in reversed(files))
    return OverlayCase(
        files={**files, "app/kustomization.yaml": f"resources:\n{names}{kustomization}"}
    )


@pytest.mark.parametrize(
    "kustomization",
    ["", "sortOptions: {order: fifo}\n", "metadata: {name: x}\n", "namePrefix: my-\n"],
)
async def test_a_long_list_has_the_output_of_kustomize_itself(
    tmp_path: Path, kustomization: str
) -> None:
    ours, theirs = await both_outputs(a_list(ODD, kustomization), tmp_path)

    assert ours == theirs


async def test_each_object_keeps_its_file_and_line(tmp_path: Path) -> None:
    case = a_list(ODD)
    case.write(tmp_path)

    built = await build(case.overlay(tmp_path))

    parts = split_inputs(collect_inputs(case.overlay(tmp_path)))
    last = [str(item.location) for item in built][-1]
    assert (len(parts), last) == (2, f"app/{LONG - 1:04}.yaml:1:1")


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        ({LONG - 1: settings(0)}, "c-0000"),
        ({LONG - 1: settings(0).replace("}", ", namespace: default}")}, "c-0000"),
        ({LONG - 1: "apiVersion: v1\nkind: ConfigMap\n"}, f"{LONG - 1:04}.yaml"),
    ],
    ids=["same name", "same name in namespace default", "no name"],
)
async def test_an_overlay_that_kustomize_refuses_is_refused_with_the_object_or_file(
    tmp_path: Path, odd: dict[int, str], name: str
) -> None:
    case = a_list(odd)
    case.write(tmp_path)

    with pytest.raises(RenderError, match=name):
        await build(case.overlay(tmp_path))
