"""Plain directories of manifests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.documents import Document
from tidegate.errors import RenderError, TidegateError
from tidegate.model.units.rendering import Directory
from tidegate.render.plain import read_directory

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
NO_MANIFEST = "image: web\nreplicas: 2\n"


def put(root: Path, **files: str) -> Path:
    """Write files; in the names `__` is a slash and `_` a dot."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names(documents: tuple[Document, ...]) -> list[object]:
    result: list[object] = []
    for document in documents:
        metadata = document.body["metadata"]
        assert isinstance(metadata, dict)
        result.append(metadata["name"])
    return result


def refused(directory: Directory) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        read_directory(directory)
    return caught.value


def test_manifests_are_read_file_by_file_with_their_lines(tmp_path: Path) -> None:
    put(tmp_path, b_yaml=SETTINGS % "b", a_yml=SETTINGS % "a1" + "---\n" + SETTINGS % "a2")

    documents = read_directory(Directory(root=tmp_path))

    assert names(documents) == ["a1", "a2", "b"]
    assert [str(document.location) for document in documents] == [
        "a.yml:1:1",
        "a.yml:5:1",
        "b.yaml:1:1",
    ]


def test_subdirectories_count_only_with_recurse(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=SETTINGS % "a", sub__b_yaml=SETTINGS % "b", z_yaml=SETTINGS % "z")

    flat = read_directory(Directory(root=tmp_path))
    deep = read_directory(Directory(root=tmp_path, recurse=True))

    assert names(flat) == ["a", "z"]
    assert names(deep) == ["a", "b", "z"]


def test_files_with_other_extensions_are_ignored(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=SETTINGS % "a", b_txt=SETTINGS % "b")

    assert names(read_directory(Directory(root=tmp_path))) == ["a"]
    assert names(read_directory(Directory(root=tmp_path, any_extension=True))) == ["a", "b"]


def test_exclude_beats_include_and_both_see_the_path_below_the_directory(tmp_path: Path) -> None:
    put(tmp_path, app__x__a_yaml=SETTINGS % "a", app__x__b_yaml=SETTINGS % "b")
    put(tmp_path, app__y__c_yaml=SETTINGS % "c")
    directory = Directory(
        root=tmp_path, path="app", recurse=True, include="x/*", exclude="{x/b.yaml,y/*}"
    )

    assert names(read_directory(directory)) == ["a"]


def test_yaml_that_is_no_manifest_is_ignored(tmp_path: Path) -> None:
    put(tmp_path, values_yaml=NO_MANIFEST, broken_yaml="a: [", a_yaml=SETTINGS % "a")

    assert names(read_directory(Directory(root=tmp_path))) == ["a"]


def test_invalid_yaml_that_resembles_a_manifest_is_rejected(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=SETTINGS % "a" + "data: [")

    assert refused(Directory(root=tmp_path)).code.startswith("documents.")


def test_broken_yaml_after_a_manifest_is_refused(tmp_path: Path) -> None:
    put(tmp_path, a_yaml="kind: A\n---\nb: [\n")

    assert refused(Directory(root=tmp_path)).code.startswith("documents.")


def test_a_document_without_a_kind_after_a_manifest_is_refused(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=SETTINGS % "a" + "---\n" + NO_MANIFEST)

    error = refused(Directory(root=tmp_path))

    assert (error.code, str(error.location)) == ("render.directory.manifest", "a.yaml:5:1")


def test_a_file_with_the_mark_of_argo_is_skipped(tmp_path: Path) -> None:
    put(tmp_path, a_yaml="# +argocd:skip-file-rendering\n" + SETTINGS % "a")

    assert read_directory(Directory(root=tmp_path)) == ()


def test_a_json_file_is_one_object_or_a_list(tmp_path: Path) -> None:
    item = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    listed = f'{{"apiVersion": "v1", "kind": "List", "items": [{item}, {item}]}}'
    put(tmp_path, a_json=item, b_json=listed)

    assert names(read_directory(Directory(root=tmp_path))) == ["a", "a", "a"]


@pytest.mark.parametrize("text", ['{"a": 1}', "{}", '{"kind": "A"} {"kind": "B"}'])
def test_a_json_file_that_is_no_single_object_is_refused(tmp_path: Path, text: str) -> None:
    put(tmp_path, a_json=text)

    assert refused(Directory(root=tmp_path)).code == "render.directory.manifest"


def test_jsonnet_is_refused_unless_it_is_switched_off(tmp_path: Path) -> None:
    put(tmp_path, a_jsonnet="{}")

    assert refused(Directory(root=tmp_path)).code == "render.directory.jsonnet"
    assert read_directory(Directory(root=tmp_path, jsonnet=None)) == ()


def test_links_inside_the_tree_are_followed_and_dangling_links_are_ignored(
    tmp_path: Path,
) -> None:
    put(tmp_path, pool__a_yaml=SETTINGS % "a", app__x_txt="x")
    (tmp_path / "app" / "a.yaml").symlink_to("../pool/a.yaml")
    (tmp_path / "app" / "b.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "app" / "c.yaml").symlink_to("../pool")

    assert names(read_directory(Directory(root=tmp_path, path="app", recurse=True))) == ["a"]


def test_a_link_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    put(tmp_path, secret_yaml=SETTINGS % "secret", tree__a_yaml=SETTINGS % "a")
    (tmp_path / "tree" / "b.yaml").symlink_to("../secret.yaml")

    error = refused(Directory(root=tmp_path / "tree"))

    assert (error.code, str(error.location)) == ("render.directory.outside", "b.yaml")


def test_link_cycles_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")

    assert refused(Directory(root=tmp_path)).code == "render.directory.file"


def test_a_pipe_is_no_manifest(tmp_path: Path) -> None:
    put(tmp_path, b_yaml=SETTINGS % "b")
    os.mkfifo(tmp_path / "a.yaml")

    assert names(read_directory(Directory(root=tmp_path))) == ["b"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("..", "render.directory.outside"),
        ("/", "render.directory.outside"),
        ("nowhere", "render.directory.missing"),
        ("a\0b", "render.directory.missing"),
    ],
)
def test_a_directory_must_be_there_and_inside_the_tree(
    tmp_path: Path, path: str, code: str
) -> None:
    assert refused(Directory(root=tmp_path, path=path)).code == code


def test_the_total_size_of_manifests_is_limited(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=SETTINGS % "a", b_yaml=SETTINGS % "b")

    error = refused(Directory(root=tmp_path, size_limit=len(SETTINGS % "a") + 1))

    assert (error.code, str(error.location)) == ("render.directory.size", "b.yaml")


def test_an_invalid_pattern_is_refused(tmp_path: Path) -> None:
    error = refused(Directory(root=tmp_path, include="{a"))

    assert isinstance(error, RenderError)
    assert (error.code, str(error.location)) == ("render.directory.pattern", ". (include)")
