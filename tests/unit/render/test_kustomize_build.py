"""Overlays built with the real kustomize: objects, their locations, and the options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase, both_outputs, texts
from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.external.process import MIB, Limits
from tidegate.model.times import Ms
from tidegate.model.units.rendering import (
    ArgoOverrides,
    FetchedTree,
    FluxOverrides,
    HelmOptions,
    LoadRestriction,
    Overlay,
)
from tidegate.render.kustomize import (
    Builder,
    DecryptableFile,
    FileUse,
    RemoteError,
    build,
    find_tool,
)
from tidegate.render.kustomize.build import inputs_digest
from tidegate.render.kustomize.collect import collect_inputs

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
WEB = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
REMOTE = "https://github.com/org/repo//base?ref=v1"


def put(root: Path, files: Mapping[str, str]) -> Path:
    OverlayCase(files=dict(files)).write(root)
    return root


def locations(documents: tuple[Document, ...]) -> dict[str, str]:
    """Where each object comes from."""
    places = {}
    for document in documents:
        metadata = document.body["metadata"]
        assert isinstance(metadata, dict)
        places[f"{document.body['kind']} {metadata['name']}"] = str(document.location)
    return places


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def refused(overlay: Overlay) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await build(overlay)
    return caught.value


async def test_each_object_has_its_file_and_line(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "app/kustomization.yaml": (
                "resources: [../base]\nnamePrefix: p-\nconfigMapGenerator:\n"
                "- {name: made, literals: [a=b], options: {disableNameSuffixHash: true}}\n"
            ),
            "base/kustomization.yaml": "resources: [all.yaml]\n",
            "base/all.yaml": f"{SETTINGS}---\n{WEB}",
        },
    )

    documents = await build(Overlay(root=tmp_path, path="app"))

    assert locations(documents) == {
        "ConfigMap p-settings": "base/all.yaml:1:1",
        "Service p-web": "base/all.yaml:5:1",
        "ConfigMap p-made": "app/kustomization.yaml",
    }
    assert all("annotations" not in str(document.body) for document in documents)


async def test_a_patch_that_copies_annotations_does_not_lose_the_locations(tmp_path: Path) -> None:
    patch = "- {op: copy, from: /metadata/annotations, path: /data}"
    put(
        tmp_path,
        {
            "kustomization.yaml": (
                f"resources: [a.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: '{patch}'"
            ),
            "a.yaml": SETTINGS.replace("}", ", annotations: {x: z}}"),
        },
    )

    (document,) = await build(Overlay(root=tmp_path))

    copied = document.body["data"]
    assert isinstance(copied, dict)
    assert copied["x"] == "z"
    assert "config.kubernetes.io/origin" not in copied
    assert str(document.location) == "a.yaml:1:1"


async def test_flux_reads_manifests_and_overlays_where_there_is_no_kustomization(
    tmp_path: Path,
) -> None:
    put(
        tmp_path,
        {
            "a.yaml": SETTINGS,
            "c.json": "{}",
            "sub/b.yml": WEB,
            "overlay/kustomization.yaml": "resources: [x.yaml]",
            "overlay/x.yaml": SETTINGS.replace("settings", "x"),
            "overlay/not-named.yaml": "no: object",
        },
    )

    documents = await build(Overlay(root=tmp_path, overrides=FluxOverrides()))

    assert sorted(locations(documents).values()) == [
        "a.yaml:1:1",
        "overlay/x.yaml:1:1",
        "sub/b.yml:1:1",
    ]


async def test_flux_refuses_yaml_that_is_no_object(tmp_path: Path) -> None:
    put(tmp_path, {"a.yaml": SETTINGS, ".sops.yaml": "creation_rules: []\n"})

    error = await refused(Overlay(root=tmp_path, overrides=FluxOverrides()))

    assert (error.code, str(error.location)) == ("render.kustomize.resource", ".sops.yaml")


async def test_flux_keeps_the_order_of_objects_and_argo_sorts_them_by_kind(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "kustomization.yaml": "resources: [web.yaml, a.yaml]",
            "web.yaml": WEB,
            "a.yaml": SETTINGS,
        },
    )

    flux = await build(Overlay(root=tmp_path, overrides=FluxOverrides()))
    argo = await build(Overlay(root=tmp_path, overrides=ArgoOverrides()))

    assert [document.body["kind"] for document in flux] == ["Service", "ConfigMap"]
    assert [document.body["kind"] for document in argo] == ["ConfigMap", "Service"]


async def test_a_directory_that_is_called_like_a_kustomization_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"kustomization.yaml/a.yaml": SETTINGS})

    error = await refused(Overlay(root=tmp_path, overrides=FluxOverrides()))

    assert (error.code, str(error.location)) == ("render.kustomize.file", "kustomization.yaml")


async def test_argo_needs_a_kustomization(tmp_path: Path) -> None:
    put(tmp_path, {"app/a.yaml": SETTINGS})

    error = await refused(Overlay(root=tmp_path, path="app", overrides=ArgoOverrides()))

    assert (error.code, str(error.location)) == ("render.kustomize.none", "app")


async def test_a_missing_resource_is_reported_with_its_line(tmp_path: Path) -> None:
    put(tmp_path, {"kustomization.yaml": "resources:\n- a.yaml\n- b.yaml\n", "a.yaml": SETTINGS})

    error = await refused(Overlay(root=tmp_path))

    assert error.code == "render.kustomize.missing"
    assert str(error.location) == "kustomization.yaml:3:3 (resources[1])"


async def test_all_remote_references_are_listed_before_anything_is_built(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "app/kustomization.yaml": f"resources: ['{REMOTE}', ../base]\n",
            "base/kustomization.yaml": (
                "components: ['git@host:org/parts.git']\n"
                "patches: [{path: 'https://example.com/p.yaml'}]\n"
                "helmCharts: [{name: db, version: '1.0', repo: 'https://charts.example'}]\n"
            ),
        },
    )

    error = await refused(Overlay(root=tmp_path, path="app"))

    assert isinstance(error, RemoteError)
    assert error.references == (
        "git@host:org/parts.git",
        "https://charts.example/db:1.0",
        "https://example.com/p.yaml",
        REMOTE,
    )


async def test_fetched_trees_are_used_for_remote_references(tmp_path: Path) -> None:
    tree = put(
        tmp_path / "tree",
        {"app/kustomization.yaml": f"resources: ['{REMOTE}', 'https://example.com/a.yaml']\n"},
    )
    away = put(
        tmp_path / "away",
        {
            "base/kustomization.yaml": "resources: [../pool]\nnamePrefix: far-\n",
            "pool/kustomization.yaml": "resources: [a.yaml]\n",
            "pool/a.yaml": SETTINGS,
            "web.yaml": WEB,
        },
    )
    fetched = {
        REMOTE: FetchedTree(away, "base"),
        "https://example.com/a.yaml": FetchedTree(away, "web.yaml"),
    }

    documents = await build(Overlay(root=tree, path="app", fetched=fetched))

    assert locations(documents) == {
        "ConfigMap far-settings": f"{REMOTE}: pool/a.yaml:1:1",
        "Service web": "app/.fetched-1.yaml:1:1",
    }


async def test_a_fetched_tree_cannot_refer_to_files_outside_it(tmp_path: Path) -> None:
    tree = put(tmp_path / "tree", {"kustomization.yaml": f"resources: ['{REMOTE}']\n"})
    away = put(tmp_path / "away", {"base/kustomization.yaml": "resources: [../../tree]\n"})

    error = await refused(Overlay(root=tree, fetched={REMOTE: FetchedTree(away, "base")}))

    assert error.code == "render.kustomize.outside"


async def test_charts_need_helm_options(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "kustomization.yaml": "helmCharts: [{name: db}]\n",
            "charts/db/Chart.yaml": "name: db\nversion: 1.0.0\n",
        },
    )

    assert (await refused(Overlay(root=tmp_path))).code == "render.kustomize.helm"


async def test_charts_are_rendered_with_the_given_command(tmp_path: Path) -> None:
    tree = put(
        tmp_path / "tree",
        {
            "kustomization.yaml": (
                "helmCharts:\n- {name: db, releaseName: r, valuesFile: v.yaml}\n"
                "- {name: far, version: '1.0', repo: 'https://charts.example', releaseName: s}\n"
            ),
            "v.yaml": "a: 1\n",
            "charts/db/Chart.yaml": "name: db\n",
            "charts/db/values.yaml": "{}\n",
        },
    )
    away = put(tmp_path / "away", {"Chart.yaml": "name: far\n", "values.yaml": "{}\n"})
    helm = tmp_path / "helm"
    helm.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo v3.19.0 && exit\n'
        'printf "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: %s}\\n" "$2"\n'
        'printf "data: {chart: %s}\\n" "${3##*/}"\n'
    )
    helm.chmod(0o755)

    documents = await build(
        Overlay(
            root=tree,
            fetched={"https://charts.example/far:1.0": FetchedTree(away)},
            helm=HelmOptions(command=str(helm), kube_version="1.37.0", api_versions=("a/v1",)),
        )
    )

    assert [document.body["data"] for document in documents] == [{"chart": "db"}, {"chart": "far"}]


async def test_files_that_flux_decrypts_are_passed_to_the_decryption(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "kustomization.yaml": (
                "secretGenerator:\n- {name: s, files: [key.json=secret.bin], envs: [v.env]}\n"
                "configMapGenerator:\n- {name: c, files: [plain.txt, same=secret.bin]}\n"
                "patches:\n- {path: p.yaml, target: {kind: ConfigMap}}\n"
            ),
            "secret.bin": "locked",
            "v.env": "A=locked",
            "plain.txt": "plain",
            "p.yaml": "- {op: add, path: /data/patched, value: locked}\n",
        },
    )
    shown = []

    async def decrypt(given: DecryptableFile) -> bytes:
        shown.append((given.path, given.name, given.use))
        return given.content.replace(b"locked", b"open")

    documents = await build(Overlay(root=tmp_path), decrypt=decrypt)

    assert shown == [
        ("secret.bin", "key.json", FileUse.FILE),
        ("v.env", "v.env", FileUse.ENV),
        ("p.yaml", "p.yaml", FileUse.PATCH),
    ]
    assert documents[0].body["data"] == {"plain.txt": "plain", "same": "open", "patched": "open"}
    assert documents[1].body["data"] == {"A": "b3Blbg==", "key.json": "b3Blbg=="}


async def test_a_build_leaves_no_files(tmp_path: Path) -> None:
    put(tmp_path, {"a.yaml": SETTINGS})
    root = tmp_path / "where"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\n/bin/pwd > {root}\n/bin/ls -ld . >> {root}\n")
    tool.chmod(0o755)
    before = await asyncio.to_thread(names_in, tmp_path)

    await build(
        Overlay(root=tmp_path, overrides=FluxOverrides(name_prefix="p-")),
        tool=Builder((str(tool),)),
    )

    scratch, rights = (await asyncio.to_thread(root.read_text)).splitlines()
    assert rights.startswith("drwx------")
    assert not await asyncio.to_thread(Path(scratch).exists)
    assert await asyncio.to_thread(names_in, tmp_path) == {*before, "where"}


async def test_a_build_that_takes_too_long_is_ended_and_the_next_one_works(tmp_path: Path) -> None:
    put(tmp_path, {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": SETTINGS})
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    sleeper.chmod(0o755)
    hasty = Builder((str(sleeper),), Limits(time=Ms(300)))

    with pytest.raises(RenderError) as caught:
        await build(Overlay(root=tmp_path), tool=hasty)
    documents = await build(Overlay(root=tmp_path))

    assert caught.value.code == "render.kustomize.limit"
    assert len(documents) == 1


async def test_a_build_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": SETTINGS})

    narrow = Builder(find_tool().argv, Limits(memory=8 * MIB))
    with pytest.raises(RenderError) as caught:
        await build(Overlay(root=tmp_path), tool=narrow)

    assert caught.value.code == "render.kustomize.limit"


async def test_the_digest_follows_what_is_read_and_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": SETTINGS, "b": "x"})
    overlay = Overlay(root=tmp_path)
    first = inputs_digest(collect_inputs(overlay), tool_version="v1")

    await asyncio.to_thread((tmp_path / "b").write_text, "changed")
    same = inputs_digest(collect_inputs(overlay), tool_version="v1")
    free = Overlay(root=tmp_path, restriction=LoadRestriction.NONE)
    prefixed = Overlay(root=tmp_path, overrides=ArgoOverrides(name_prefix="p-"))
    others = [
        inputs_digest(collect_inputs(free), tool_version="v1"),
        inputs_digest(collect_inputs(prefixed), tool_version="v1"),
        inputs_digest(collect_inputs(overlay), tool_version="v2"),
    ]
    await asyncio.to_thread((tmp_path / "a.yaml").write_text, WEB)
    others.append(inputs_digest(collect_inputs(overlay), tool_version="v1"))

    assert same == first
    assert len({first, *others}) == 5


async def test_a_small_overlay_has_the_output_of_kustomize(tmp_path: Path) -> None:
    case = OverlayCase(
        files={
            "app/kustomization.yaml": "resources: [a.yaml]\nnameSuffix: -s\ncommonLabels: {a: b}\n",
            "app/a.yaml": f"{SETTINGS}---\n{WEB}",
        }
    )

    ours, real = await both_outputs(case, tmp_path)

    assert texts(ours) == texts(real)
